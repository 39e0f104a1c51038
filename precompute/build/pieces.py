"""Make the pieces (files) of an index: what all layers share, a classification head, the nearest tokens of every token,
lines of chance, and the parts of each layer. A piece depends on weights and options alone."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import TypeAlias

import numpy as np
import torch

from lexiscope.precompute.build.layer import (
    Arrays,
    BuildContext,
    Costs,
    Step,
    make_layer,
    make_stats,
    norms_of,
    of_lenses,
    see_products,
)
from lexiscope.precompute.build.unchanged import with_unchanged
from lexiscope.precompute.index.layout import Piece, number_dtype, stats_layout
from lexiscope.precompute.index.tokens import pack
from lexiscope.precompute.project.chance import DRAWS, draws_of_layers, gaussian_vectors, lines, mixtures
from lexiscope.precompute.project.coherence import DEPTH, coherence
from lexiscope.precompute.project.embedding import Float32
from lexiscope.precompute.project.moments import Moments
from lexiscope.precompute.project.nearest_tokens import nearest_tokens
from lexiscope.precompute.project.positions import position_arrays
from lexiscope.precompute.shape import ENDS, SIDES
from lexiscope.precompute.weights.classifier_head import read_head
from lexiscope.precompute.weights.difference import Difference

Task: TypeAlias = tuple[Piece, ...]  # pieces that are made together: those of one layer, or one of the whole model
Measured: TypeAlias = Callable[[Costs], None]  # called once with the costs of the first work of a layer


def task_name(task: Task) -> str:
    return str(task[0])


def make_task(
    context: BuildContext, task: Task, step: Step = lambda _: None, measured: Measured | None = None
) -> dict[Piece, Arrays]:
    """Make the arrays of some pieces (files of an index), which FORMAT.md lists; `step` and `measured` are called while
    a layer is made."""
    parts, layer, made = [piece.part for piece in task], task[0].layer, dict[Piece, Arrays]()
    if layer is not None and "lists" in parts and "stats" in parts:
        arrays = make_layer(context, layer, step, measured, stats=True)
        stats = {name: arrays.pop(name) for name in stats_layout(context.stored)}
        made = {Piece("lists", layer): arrays, Piece("stats", layer): stats}
    others = [piece for piece in task if piece not in made]
    return made | {piece: MAKERS[piece.part](context, piece.layer, step, measured) for piece in others}


def _make_vocabulary(context: BuildContext, *_: object) -> Arrays:
    offsets, data = pack(context.tokens)
    arrays: Arrays = {"token.offsets": offsets, "token.bytes": data}
    sides = {"embedding": "reads"} if context.model.shape.tied else {"embedding": "reads", "unembedding": "writes"}
    for name, side in sides.items():
        embedding = context.projectors[side].embedding
        arrays[f"{name}.norm"] = embedding.norm.astype(np.float32)
        arrays[f"{name}.centred_norm"] = embedding.centred_norm.astype(np.float32)
    return arrays


def _make_neighbours(context: BuildContext, *_: object) -> Arrays:
    return nearest_tokens(context.projectors["reads"].embedding, context.pool)


def _make_classifier(context: BuildContext, *_: object) -> Arrays:
    """Make the lists of a classification head, whose vectors read the stream and belong to no layer. No token counts as
    a hub (a token in an unusual share of lists), because two labels have too few lists to tell."""
    head = read_head(context.model)
    assert head, f"{context.model.checkpoint.name} has no classification head"
    stored, projector = context.stored, context.projectors["reads"]
    no_hubs = np.zeros(stored.shape.d_vocab, np.bool_)
    arrays: Arrays = {}
    for kind, V in head.vectors.items():
        norms = arrays[f"{kind}.norm"] = norms_of(V)
        changed = np.ones(len(V), np.bool_)
        if head.base is not None:
            arrays[f"{kind}.base_norm"] = norms_of(head.base[kind])
            changed = norms > 0
        lists = of_lenses(with_unchanged(projector.lists(V[torch.from_numpy(changed)], context.pool), changed), stored)
        arrays[f"{kind}.ids"] = lists.ids[..., : stored.k].astype(number_dtype(stored.shape.d_vocab), order="C")
        arrays[f"{kind}.scores"] = np.ascontiguousarray(lists.scores[..., : stored.k])
        arrays[f"{kind}.coherence"] = np.empty(lists.ids.shape[:3], np.float32)
        for lens, end in product(range(len(stored.lenses)), range(len(ENDS))):
            made = coherence(lists.ids[:, lens, end, :DEPTH], no_hubs, context.directions["reads"])
            arrays[f"{kind}.coherence"][:, lens, end] = np.where(changed, made, np.nan)
    return arrays


def _make_chance(context: BuildContext, *_: object) -> Arrays:
    """Draw random vectors for every kind, and find the lines that z of their first tokens stays under."""
    model, stored, d_model = context.model, context.stored, context.model.shape.d_model
    drawn = {kind: np.zeros((DRAWS, d_model), np.float32) for kind in stored.kinds}
    for layer, rows in enumerate(draws_of_layers(model.shape.n_layers)):
        for kind in stored.kinds:
            V = model.vectors(layer, kind).cpu().numpy()
            drawn[kind][rows] = mixtures(V, layer, rows.stop - rows.start)
    by_side = {SIDES[kind]: kind for kind in stored.kinds}
    gaussian = {side: _lines(context, kind, gaussian_vectors(d_model)) for side, kind in by_side.items()}
    return {
        f"{kind}.line": np.stack([gaussian[SIDES[kind]], _lines(context, kind, V)], axis=1) for kind, V in drawn.items()
    }


def _lines(context: BuildContext, kind: str, V: Float32) -> Float32:
    """Return the lines (lenses, 2) of random vectors V (n, d_model) that stand for a kind."""
    made = Moments.of_zeros(len(V), len(context.stored.lenses))

    def see(rows: slice, vectors: torch.Tensor, product: torch.Tensor) -> None:
        context.moments[SIDES[kind]].write(vectors, product, made, rows)

    see_products(context, kind, torch.from_numpy(V), see)
    return np.stack([lines(of_lens) for of_lens in made.z[..., ENDS.index("top")].T])


def _make_lists(context: BuildContext, layer: int | None, step: Step, measured: Measured | None) -> Arrays:
    assert layer is not None
    return make_layer(context, layer, step, measured)


def _make_stats(context: BuildContext, layer: int | None, step: Step, _: Measured | None) -> Arrays:
    assert layer is not None
    return make_stats(context, layer, step)


def _make_heads(context: BuildContext, layer: int | None, *_: object) -> Arrays:
    model = context.model
    assert layer is not None
    assert not isinstance(model, Difference)
    return {**position_arrays(model, layer, context.projectors["reads"].embedding.on_device, context.pool)}


MAKERS: Mapping[str, Callable[[BuildContext, int | None, Step, Measured | None], Arrays]] = {
    "vocabulary": _make_vocabulary,
    "classifier": _make_classifier,
    "neighbours": _make_neighbours,
    "chance": _make_chance,
    "lists": _make_lists,
    "stats": _make_stats,
    "heads": _make_heads,
}
