"""Shows an index to people: views and the command line."""
