"""The home page: which models there are, how far each is built, and where to start."""

from dataclasses import dataclass
from threading import Lock
from typing import Annotated
from weakref import WeakKeyDictionary

from app.library.card import ModelCard
from app.library.library import Library
from app.views.example_texts import example_texts
from app.views.model import model_view
from app.views.tokens import PAGE_ONLY, View
from app.views.worth_reading import HeadCard, NeuronCard, richest
from precompute.errors import LexiscopeError
from precompute.index.index import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a visitor who knows nothing of a model may look at first."""

    model: str
    lens: str  # of the neuron
    neuron: NeuronCard | None  # whose key and value agree; where no keys are stored, the clearest
    head: HeadCard | None  # one of the clearest, the one with the most words
    text: Annotated[str, PAGE_ONLY]  # to run it on


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeView(View):
    models: tuple[ModelCard, ...]
    start: Start | None  # None while no layer is ready


_starts: WeakKeyDictionary[Index, Start] = WeakKeyDictionary()
_starts_lock = Lock()


def home_view(library: Library) -> HomeView:
    cards = library.cards()
    return HomeView(models=cards, start=_start(library, [card.model for card in cards if card.layers]))


def _start(library: Library, names: list[str]) -> Start | None:
    """Where to start in the first model that can be read; kept as long as its index is."""
    for name in names:
        try:
            index = library.index(name)
            with _starts_lock:
                if index not in _starts:
                    _starts[index] = _choose_start(index)
                return _starts[index]
        except LexiscopeError:  # its card says what is wrong
            continue
    return None


def _choose_start(index: Index) -> Start:
    view = model_view(index, index.stored.lens)
    neurons = view.neurons if view.agreeing is None else view.agreeing
    neuron = neurons[0] if neurons else None
    head, text = richest(index, view.heads or ()), example_texts(index)[0]
    return Start(model=view.model, lens=view.lens, neuron=neuron, head=head, text=text)
