"""The pieces that a build makes one by one: what all layers share, a classification head, the nearest tokens of every
token, each layer. A piece is a pure function of weights and options, and becomes one file."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lexiscope.precompute.build.classifier import make_classifier
from lexiscope.precompute.build.layer import Arrays, BuildContext, Costs, Step, make_layer
from lexiscope.precompute.index.tokens import pack
from lexiscope.precompute.project.nearest_tokens import nearest_tokens
from lexiscope.precompute.weights.classifier_head import read_head

Piece: TypeAlias = int | Literal["vocabulary", "classifier", "neighbours"]  # a number is a layer's

PIECE_NAMES = {"vocabulary": "vocabulary", "classifier": "classification head", "neighbours": "nearest tokens"}


def piece_name(piece: Piece) -> str:
    return f"layer {piece}" if isinstance(piece, int) else PIECE_NAMES[piece]


def make_piece(
    context: BuildContext,
    piece: Piece,
    step: Step = lambda _: None,
    measured: Callable[[Costs], None] | None = None,
) -> Arrays:
    """The arrays of a piece, as FORMAT.md lists them; `step` and `measured` are those of a layer."""
    if isinstance(piece, int):
        return make_layer(context, piece, step, measured)
    if piece == "vocabulary":
        return _vocabulary_arrays(context)
    if piece == "neighbours":
        return nearest_tokens(context.projectors["reads"].embedding, context.pool)
    head = read_head(context.model)
    assert head, f"{context.model.checkpoint.name} has no classification head"
    return make_classifier(context, head)


def _vocabulary_arrays(context: BuildContext) -> Arrays:
    offsets, data = pack(context.tokens)
    arrays: dict[str, NDArray[Any]] = {"token.offsets": offsets, "token.bytes": data}
    sides = {"embedding": "reads"} if context.model.shape.tied else {"embedding": "reads", "unembedding": "writes"}
    for name, side in sides.items():
        embedding = context.projectors[side].embedding
        arrays[f"{name}.norm"] = embedding.norm.astype(np.float32)
        arrays[f"{name}.centred_norm"] = embedding.centred_norm.astype(np.float32)
    return arrays
