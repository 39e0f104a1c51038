"""The command line. Each subcommand of `lexiscope` is a module whose `run` is a Command: a function with its options. A
module imports what a command needs inside `run`, so that every command starts quickly."""
