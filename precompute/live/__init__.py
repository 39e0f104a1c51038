"""What a visitor types, computed from the weights: seed words, relations, runs of the model, other readings.
Importing this needs no torch (nor does wire); everything else here does. Serving it is for app/worker.
"""
