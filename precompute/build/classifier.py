"""Make the arrays of a classification head: the lists of its vectors, which read the stream and belong to no layer."""

from itertools import product

import numpy as np
import torch

from lexiscope.precompute.build.layer import Arrays, BuildContext, norms_of, of_lenses
from lexiscope.precompute.build.unchanged import with_unchanged
from lexiscope.precompute.index.layout import number_dtype
from lexiscope.precompute.project.coherence import DEPTH, coherence
from lexiscope.precompute.shape import ENDS
from lexiscope.precompute.weights.classifier_head import ClassifierHead


def make_classifier(context: BuildContext, head: ClassifierHead) -> Arrays:
    """Make the arrays. No token counts as a hub, because two labels have too few lists to tell."""
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
