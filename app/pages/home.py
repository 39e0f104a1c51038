"""Show the home page: which models there are, how much of each is built, and where to start."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Annotated
from weakref import WeakKeyDictionary

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.library.comparisons import ComparisonCard
from lexiscope.app.library.library import Library, ModelCard
from lexiscope.app.lists.difference import Minus
from lexiscope.app.lists.notes import example_texts
from lexiscope.app.lists.view import OF_DIFFERENCE, PAGE_ONLY, View
from lexiscope.app.lists.worth_reading import HeadCard, NeuronCard, richest
from lexiscope.app.pages.model import read_model
from lexiscope.app.pages.page import Address, Arguments, Page, Site
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.index import Index, ranges
from lexiscope.precompute.index.origin import DEMO_NAME
from lexiscope.precompute.live.wire.grammar import write_words

CARDS_SHOWN = 5  # how many neurons and heads of the first model are shown
SEEDS = ("horse", "dog", "lion")  # words to find neurons with, where the first neuron has none
N_SEEDS = 3
SEARCHED = 5  # how many models have a button at the search box


class HomeAt(Address):
    pattern = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Suggestions for a visitor who does not know the model: what to look at first."""

    model: str
    minus: Annotated[Minus | None, OF_DIFFERENCE] = None
    lens: str  # the lens (dot or cosine) whose lists are the most readable
    # A neuron whose key's and value's lists are similar; if no keys are stored, or for a difference, the clearest
    # neuron.
    neuron: NeuronCard | None
    head: HeadCard | None  # the one of the clearest heads with the most words
    neurons: Annotated[tuple[NeuronCard, ...], PAGE_ONLY]  # more neurons to look at, shown by what they write
    heads: Annotated[tuple[HeadCard, ...], PAGE_ONLY]
    text: Annotated[str, PAGE_ONLY]  # a text to run the model on
    words: Annotated[tuple[str, ...], PAGE_ONLY]  # to find neurons with: the first words of the neuron

    @property
    def seeds(self) -> str:
        """Return the words as the page of seed words takes them."""
        return write_words(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeView(View):
    models: tuple[ModelCard, ...]
    comparisons: tuple[ComparisonCard, ...]  # comparisons of two models
    label_faults: Annotated[tuple[str, ...], PAGE_ONLY] = ()  # errors in files of labels
    start: Start | None  # None while no layer is ready

    @property
    def chosen_model(self) -> str | None:
        """Return the model in which the page starts."""
        return self.start.model if self.start else None

    @property
    def ordered(self) -> list[ModelCard]:
        """Return the models as people see them: the demo, then the most complete; differences of two models last."""
        return sorted(self.models, key=_rank)

    @property
    def searched(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Return the models that the search box offers, each with the lens (dot or cosine) whose lists are the most
        readable, and the lenses that it has."""
        ready = [card for card in self.ordered if card.layers]
        return {card.model: (card.best_lens, card.lenses) for card in ready[:SEARCHED]}

    @property
    def of_two(self) -> list[ComparisonCard]:
        """Return the comparisons of two different models: one of a model with itself is only a test of the method."""
        return [card for card in self.comparisons if card.a != card.b]

    def tables(self) -> list[Table]:
        compared = (
            Column("a", get=lambda card: card.a),
            Column("b", get=lambda card: card.b),
            Column("tokens", "number", get=lambda card: card.tokens, heading="common tokens"),
            Column("kinds", get=lambda card: ", ".join(card.kinds)),
        )
        tables = [models_table(self.models)]
        if self.comparisons:
            tables.append(Table("Comparisons", compared, self.comparisons, "people"))
        return tables


_starts: WeakKeyDictionary[Index, Start] = WeakKeyDictionary()
_starts_lock = Lock()


def models_table(models: Iterable[ModelCard]) -> Table:
    columns = (
        Column("model", get=lambda card: card.model),
        Column("architecture", get=lambda card: card.architecture),
        Column("n_layers", "number", get=lambda card: card.n_layers, heading="layers"),
        Column("layers", get=lambda card: ranges(card.layers), heading="ready"),
        Column("bytes", "number", get=lambda card: card.bytes),
        Column("revision", get=lambda card: card.revision, audience="programs"),
        Column("build", get=lambda card: card.build, audience="programs"),
        Column("origin", get=lambda card: card.origin, audience="programs"),
        Column("name", get=lambda card: card.name, audience="programs"),
        Column("tuned", get=lambda card: card.tuned, audience="programs"),
        Column("base", get=lambda card: card.base, heading="less"),
    )
    return Table("Models", columns, models)


def home(site: Site, at: HomeAt, ask: Arguments) -> HomeView:  # noqa: ARG001
    """The models: how large each is, and how many of its layers are ready."""
    library = site.library
    cards = library.cards()
    readable = [card for card in sorted(cards, key=_rank) if card.layers]
    start = _start(library, {card.model: card.best_lens for card in readable})
    return HomeView(
        models=cards, comparisons=library.comparisons.cards(), start=start, label_faults=library.labels.errors()
    )


def _rank(card: ModelCard) -> tuple[bool, bool, float, int, str]:
    ready = len(card.layers) / max(1, card.n_layers)
    return bool(card.base), card.model != DEMO_NAME, -ready, -card.bytes, card.model


def _start(library: Library, best_lenses: Mapping[str, str]) -> Start | None:
    """Return what to look at first in the first of these models that can be read. The result is kept as long as the
    model's index."""
    for name, lens in best_lenses.items():
        try:
            index = library.index(name)
            with _starts_lock:
                if index not in _starts:
                    _starts[index] = _choose_start(index, lens)
                return _starts[index]
        except LexiscopeError:  # the card of the model shows the error
            continue
    return None


def _choose_start(index: Index, lens: str) -> Start:
    view = read_model(index, lens)
    neurons = [
        card for card in (view.neurons if view.agreeing is None else view.agreeing) or () if card["end"] == "top"
    ]
    texts = [token["token"].strip().lower() for token in neurons[0]["tokens"]] if neurons else []
    heads, clearest = view.heads or (), [card for card in view.neurons or () if card not in neurons]
    return Start(
        model=view.model,
        minus=view.minus,
        lens=view.lens,
        neuron=neurons[0] if neurons else None,
        head=richest(index, heads),
        neurons=(*neurons, *clearest)[:CARDS_SHOWN],
        heads=heads[:CARDS_SHOWN],
        text=example_texts(index)[0],
        words=(*dict.fromkeys(filter(str.isalpha, texts)),)[:N_SEEDS] or SEEDS,
    )


HOME = Page(name="home", title="", at=HomeAt, arguments=Arguments, view=HomeView, make=home, of="site")
