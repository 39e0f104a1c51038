"""The implementation of `import lexiscope`: models from an index in this process, or from a server's JSON, as objects
that display themselves. torch, pandas and polars are imported only when they are needed."""
