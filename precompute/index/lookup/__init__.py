"""Find where an index lists a token, or the words of a search, over all layers at once."""

from lexiscope.precompute.index.lookup.lookup import count_neurons, look_up_in_layer, look_up_token, look_up_words

__all__ = ["count_neurons", "look_up_in_layer", "look_up_token", "look_up_words"]
