"""Redirect to the page of a random neuron."""

import random as by_chance
from typing import Annotated, Literal, NoReturn

import numpy as np
from pydantic import Field

from lexiscope.app.pages.page import Address, Arguments, ModelSite, Moved, Page
from lexiscope.app.pages.parameter import NeuronView
from lexiscope.app.urls import link
from lexiscope.precompute.errors import NotBuilt
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.not_stored import check_kinds
from lexiscope.precompute.rebuild_command import unless_running


class RandomAt(Address):
    pattern = "random"


class RandomArguments(Arguments):
    lens: Annotated[
        Literal["dot", "cosine"] | None, Field(description="If it is not given: the lens that reads best")
    ] = None


def random(site: ModelSite, at: RandomAt, ask: RandomArguments) -> NoReturn:  # noqa: ARG001
    """Redirects to the page of a random neuron, under the lens (dot or cosine) whose lists are the most readable if
    none is given."""
    index = site.index
    address = link("neuron", index.manifest.model, *_neuron(index), lens=ask.lens or index.best_lens)
    raise Moved(address, by_chance=True)


def _neuron(index: Index) -> tuple[int, int]:
    check_kinds(index, *(kind for kind in index.shape.kinds if kind.startswith("ff_")))
    if not index.layers:
        manifest = index.manifest
        raise NotBuilt(f"no layer of {manifest.model} is ready yet. {unless_running(manifest.rebuild_command)}")
    if index.stored.difference and (changed := _changed_neuron(index)):
        return changed
    return by_chance.choice(index.layers), by_chance.randrange(index.shape.d_mlp)


def _changed_neuron(index: Index) -> tuple[int, int] | None:
    """Choose a neuron that changed between two models, in a random layer; return None if none did."""
    kinds = [kind for kind in index.stored.kinds if kind.startswith("ff_")]
    for layer in by_chance.sample(index.layers, len(index.layers)):
        changed = np.any([index.shard(layer).all_norms(kind) > 0 for kind in kinds], axis=0)
        if changed.any():
            return layer, int(by_chance.choice(np.flatnonzero(changed)))
    return None


RANDOM = Page(
    name="random", title="", at=RandomAt, arguments=RandomArguments, view=NeuronView, make=random, formats=(),
    leads_to="The page of a neuron",
)  # fmt: skip
