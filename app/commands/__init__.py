"""The command line. Each subcommand of `lexiscope` is a module, whose `run` is a Command: its options and what it does.
A module imports what a command needs inside `run`, so that every command starts at once."""
