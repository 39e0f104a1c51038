"""Offer example texts to run a model on."""

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import Predicts

# Example texts: the prediction is interesting at the end or, in an encoder, at the mask.
TEXTS: dict[Predicts, tuple[str, ...]] = {
    "next": (
        "The capital of France is",
        "The baseball player hit a home",
        "The Eiffel Tower is in the city of",
        "When Mary and John went to the store, John gave a drink to",
    ),
    "masked": (
        "The capital of France is {mask}.",
        "The {mask} barked at the postman all morning.",
        "When Mary and John went to the store, John gave a drink to {mask}.",
    ),
    "nearest": (
        "They went fishing at the river bank",
        "She took her savings to the bank",
        "The capital of France is Paris",
    ),
}


def example_texts(index: Index) -> list[str]:
    """Return example texts for a model; if it predicts masked tokens, the texts hold its own mask token."""
    return [text.replace("{mask}", index.tokens.mask or "") for text in TEXTS[index.shape.predicts]]
