"""Write the notes beside a head's lists: how positions are encoded, what grouped heads share, and what the lists leave
out. Offer example texts to run a model on."""

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import Predicts, Shape

POSITIONS = {
    "rotary": "Positions are rotary: these are the scores at distance zero only.",
    "learned": "Positions are learned, and left out: these are the scores of the tokens alone.",
}


def pairs_note(shape: Shape, matrix: str, head: int) -> str:
    positions = POSITIONS[shape.positions] if matrix == "qk" else ""
    left_out = shape.left_out if matrix == "qk" else shape.left_out_writing
    return _joined(positions, _sharing(shape, head), _left_out(left_out))


def head_note(shape: Shape, head: int) -> str:
    return _joined(
        POSITIONS[shape.positions], _sharing(shape, head), _left_out(shape.left_out + shape.left_out_writing)
    )


def subhead_note(shape: Shape, head: int, subhead: int) -> str:
    left_out = _left_out(shape.left_out + shape.left_out_writing)
    return _joined(_sharing(shape, head), _rotary(shape, subhead), left_out)


def direction_note(shape: Shape) -> str:
    positions = POSITIONS[shape.positions].replace("these are", "QK's directions are of")
    return _joined(positions, _left_out(shape.left_out + shape.left_out_writing))


def neuron_note(shape: Shape) -> str:
    return _left_out(shape.left_out_writing)


def _sharing(shape: Shape, head: int) -> str:
    group = shape.n_heads // shape.n_kv_heads
    if group == 1:
        return ""
    first = head // group * group
    return f"Heads {first} to {first + group - 1} share their keys and values: k and v are the same for all of them."


def _rotary(shape: Shape, subhead: int) -> str:
    if shape.positions != "rotary":
        return ""
    turning = shape.d_rotary or shape.d_head
    if subhead >= turning:
        return (
            f"Rotary positions turn only the first {turning} of {shape.d_head} channels: q and k of this one meet at "
            "every distance."
        )
    other = (subhead + turning // 2) % turning
    return f"Rotary positions mix channel {subhead} with {other}: q and k of one channel meet only at distance zero."


def _left_out(what: tuple[str, ...]) -> str:
    """Return a sentence that names what the model computes between its matrices and these lists do not include."""
    return f"These lists leave out {', and '.join(what)}." if what else ""


def _joined(*notes: str) -> str:
    return " ".join(note for note in notes if note)


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
