"""Searches that start from words and run no part of the model: seeds, relations, words through heads."""
