"""Show an index to people: the web site, the command line, the worker and the notebook."""

# Without this check a clone's folder on sys.path would give every module a second name.
if __name__ != "lexiscope.app":
    raise ImportError("import lexiscope.app, not app")
