"""The home page: which models there are, how far each is built, and where to start.
Opening them is for library.py, choosing what is worth reading for worth_reading.py."""

from threading import Lock
from weakref import WeakKeyDictionary

from app.library.library import Library
from app.views.model import model_view
from app.views.page_types import HomeView, Start
from app.views.worth_reading import richest
from precompute.errors import LexiscopeError
from precompute.index.index import Index

_made: WeakKeyDictionary[Index, Start] = WeakKeyDictionary()
_making = Lock()


def home_view(library: Library) -> HomeView:
    cards = library.cards()
    return HomeView.of(models=cards, start=_start(library, [card.model for card in cards if card.layers]))


def _start(library: Library, names: list[str]) -> Start | None:
    """In the first model that can be read; kept as long as its index is."""
    for name in names:
        try:
            index = library.index(name)
            with _making:
                if index not in _made:
                    _made[index] = _of(index)
                return _made[index]
        except LexiscopeError:  # its card says what is wrong
            continue
    return None


def _of(index: Index) -> Start:
    view = model_view(index)
    neuron = view.agreeing[0] if view.agreeing else None
    return Start.of(model=view.model, lens=view.lens, neuron=neuron, head=richest(index, view.heads))
