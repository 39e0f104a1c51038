"""Read a transformer's weights as words, in Python: the lists of a model as objects and as frames.

    import lexiscope

    model = lexiscope.open("gpt2")  # of the data folder; or a path, or "http://127.0.0.1:8000/gpt2"
    model.neuron(10, 2361)
    model.head(8, 11).vo(lens="cosine", preset="words").to_pandas()
    model.neurons(layers=range(8, 11), kinds=["ff_value"], k=10).to_pandas()
    lexiscope.run(model, "The capital of France is").evolution

The names in `__all__` are all there are. A name is imported when it is first used; torch and pandas are loaded
when a run, an exact search or a frame needs them. Errors are LexiscopeErrors, whose message says what would work.
`lexiscope.index` reads an index with numpy and pydantic alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexiscope.app.notebook.by_words import Places, Relation, Search, Seeds, ThroughHeads, Token
    from lexiscope.app.notebook.errors import NeedsIndex, NeedsPackage, Unreachable
    from lexiscope.app.notebook.model import Model
    from lexiscope.app.notebook.opening import Models, models, open, run  # noqa: A004
    from lexiscope.app.notebook.pages import Direction, Head, Neuron, Pairs, Subhead
    from lexiscope.app.notebook.run import PanelOfRun, Run
    from lexiscope.app.notebook.slices import Lists
    from lexiscope.precompute.errors import (
        BadRequest,
        IndexFault,
        LexiscopeError,
        NotBuilt,
        NotFound,
        NotStored,
        WeightsError,
    )
    from lexiscope.precompute.live.wire.errors import LiveError

_HOMES = {
    "app.notebook.by_words": ("Places", "Relation", "Search", "Seeds", "ThroughHeads", "Token"),
    "app.notebook.errors": ("NeedsIndex", "NeedsPackage", "Unreachable"),
    "app.notebook.model": ("Model",),
    "app.notebook.opening": ("Models", "models", "open", "run"),
    "app.notebook.pages": ("Direction", "Head", "Neuron", "Pairs", "Subhead"),
    "app.notebook.run": ("PanelOfRun", "Run"),
    "app.notebook.slices": ("Lists",),
    "precompute.live.wire.errors": ("LiveError",),
    "precompute.errors": (
        "BadRequest", "IndexFault", "LexiscopeError", "NotBuilt", "NotFound", "NotStored", "WeightsError",
    ),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

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
    "Relation",
    "Run",
    "Search",
    "Seeds",
    "Subhead",
    "ThroughHeads",
    "Token",
    "Unreachable",
    "WeightsError",
    "models",
    "open",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'lexiscope' has no attribute {name!r}")
    value = getattr(import_module(f"lexiscope.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
