"""Turns a transformer's weights into lists of words: sources, architectures, projection, index, build."""
