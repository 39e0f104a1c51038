"""What stands behind `import lexiscope`: an index in this process, or a server's JSON, as objects that show themselves.
torch, pandas and polars are imported when they are needed, and not before."""
