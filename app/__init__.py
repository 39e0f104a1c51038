"""Shows an index to people: views and the command line."""

if __name__ != "lexiscope.app":  # a clone's root on sys.path would give every module a second name
    raise ImportError("import lexiscope.app, not app")
