"""Turns a transformer's weights into lists of words: sources, architectures, projection, index, build."""

if __name__ != "lexiscope.precompute":  # a clone's root on sys.path would give every module a second name
    raise ImportError("import lexiscope.precompute, not precompute")
