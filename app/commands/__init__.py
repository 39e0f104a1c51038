"""The subcommands of `lexiscope`, one module each, whose `run` is a Command: its options, and what it does.
A module here imports what it needs to run inside run, so that every command starts at once."""
