"""Turn a transformer's weights into lists of words: read the weights, project vectors, build an index and read it."""

if __name__ != "lexiscope.precompute":  # if the root of a clone were on sys.path, every module would have a second name
    raise ImportError("import lexiscope.precompute, not precompute")
