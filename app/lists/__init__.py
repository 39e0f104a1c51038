"""Read the lists of an index into plain data that pages show, such as entries, vectors, pairs, labels and matches."""
