"""What a visitor types, computed from the weights: seed words, relations, runs of the model, other readings.
Only `wire` can be imported without torch.
"""
