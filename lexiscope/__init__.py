"""Read a transformer's weights as words, in Python: the lists of a model as objects and as frames.

    import lexiscope

    model = lexiscope.open("gpt2")  # of the data folder; or a path, or "http://127.0.0.1:8000/gpt2"
    model.neuron(10, 2361)
    model.head(8, 11).vo(lens="cosine", preset="words").to_pandas()
    model.neurons(layers=range(8, 11), kinds=["ff_value"], k=10).to_pandas()
    lexiscope.run(model, "The capital of France is").evolution

The names in `__all__` are all there are. Importing it takes neither torch nor pandas: these are loaded when a run, an
exact search or a frame needs them. Errors are LexiscopeErrors, whose message says what would work."""

import os
from typing import Any

from app.notebook.by_words import Places, Search, Seeds, Token
from app.notebook.errors import NeedsIndex, NeedsPackage, Unreachable
from app.notebook.model import Model
from app.notebook.opening import Models, list_models, open_model
from app.notebook.pages import Direction, Head, Neuron, Pairs, Subhead
from app.notebook.run import PanelOfRun, Run
from app.notebook.signatures import takes_arguments_of
from app.notebook.slices import Lists
from app.workers.errors import LiveError
from precompute.errors import (
    BadRequest,
    IndexFault,
    LexiscopeError,
    NotBuilt,
    NotFound,
    NotStored,
    WeightsError,
)

__all__ = [
    "BadRequest",
    "Direction",
    "Head",
    "IndexFault",
    "LexiscopeError",
    "Lists",
    "LiveError",
    "Model",
    "Models",
    "NeedsIndex",
    "NeedsPackage",
    "Neuron",
    "NotBuilt",
    "NotFound",
    "NotStored",
    "Pairs",
    "PanelOfRun",
    "Places",
    "Run",
    "Search",
    "Seeds",
    "Subhead",
    "Token",
    "Unreachable",
    "WeightsError",
    "models",
    "open",
    "run",
]


def open(  # noqa: A001 (lexiscope.open is how people say it)
    model: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    weights: bool = False,
    device: str = "auto",
) -> Model:
    """A model by its name in the data folder, by the path of its index, or by its address on a server.

    `data`: the folder with the indexes (default: the environment's LEXISCOPE_DATA, else ./data). `weights`: `seeds` are
    computed from the weights, too; they are loaded when they are first needed, on `device` (auto, cpu, cuda, ...).
    NotFound says which models there are; Unreachable, that no server answers."""
    return open_model(model, data, weights, device)


def models(where: str | os.PathLike[str] | None = None) -> Models:
    """The models of a data folder (default: as for `open`), or of a server by its address."""
    return list_models(where)


@takes_arguments_of(Model.run)
def run(model: Model | str, *arguments: Any, **named: Any) -> Run:
    """Runs a model on a text: `Model.run`, whose arguments it takes. A name is opened first."""
    return (model if isinstance(model, Model) else open(model)).run(*arguments, **named)
