"""The subcommands of `lexiscope`, one module each: add_parser(subparsers) declares it, run(args) does it.
A module here imports what it needs to run inside run, so that every command starts at once."""
