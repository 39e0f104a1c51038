"""What a visitor types, computed from the weights: seed words, relations, runs of the model, other readings.
Only `wire` and `seed_words` can be imported without torch.
"""
