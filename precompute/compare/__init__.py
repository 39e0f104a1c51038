"""Compare two models in one space: how similar their layers are, which of their vectors match, and what one model
predicts from states of the other (stitching)."""
