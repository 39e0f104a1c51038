"""Compute from the weights what a visitor asks for: searches by seed words, relations, runs of the model, other
readings. Only `wire`, `seed_words` and `by_words.chance` can be imported without torch."""
