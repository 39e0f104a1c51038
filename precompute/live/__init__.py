"""What a visitor types, computed from the weights: seed words, relations, runs of the model, other readings.
Only `wire`, `seed_words` and `by_words.chance` can be imported without torch.
"""
