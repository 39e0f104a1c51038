"""Read the lists of an index into plain data that pages show: entries, vectors, pairs, labels, matches, hubs."""
