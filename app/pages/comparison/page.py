"""Show two models in one space: how similar their layers are, which layer is assigned to which, and which vectors
match."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from pydantic import AfterValidator, Field

from lexiscope.app.formats.table import Table
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.library.library import Library
from lexiscope.app.lists.difference import Minus, public_minus
from lexiscope.app.lists.matches import WordsOf
from lexiscope.app.lists.view import OMIT_NONE, PAGE_ONLY, ShownError, View
from lexiscope.app.pages.comparison.layers import KindView, in_order_by_chance, kind_view, layer_tables
from lexiscope.app.pages.comparison.maps import Figure as MapFigure
from lexiscope.app.pages.comparison.maps import LayerMap, figure, layer_maps
from lexiscope.app.pages.comparison.sentence import (
    Sentence,
    compared_indexes,
    sentence_asks,
    sentence_of,
    sentence_table,
)
from lexiscope.app.pages.comparison.stitching import run_table, stitching_table
from lexiscope.app.pages.comparison.strongest import MatchedVectors, strongest_matches, strongest_table
from lexiscope.app.pages.page import Address, Arguments, Moved, Page, TwoModelsSite, VectorKind
from lexiscope.app.urls import FIGURE_FORMATS, link
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotBuilt, NotFound, ShardDamaged
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.comparison_record import ComparedModel
from lexiscope.precompute.index.origin import origin, proper_name, public_source
from lexiscope.precompute.live.wire.asks import MAX_NUMBER, plain_lines
from lexiscope.precompute.rebuild_command import compare_command_for, rebuild_command


class ComparisonAt(Address):
    pattern = "vs/{other:name}"
    other: Annotated[str, Field(description="The other one", examples=["gte-small"])]


class ComparisonArguments(Arguments):
    kind: Annotated[VectorKind | None, Field(description="Only vectors of this kind, with more of its matches")] = None
    text: Annotated[
        str,
        Field(
            description="A sentence: what states of the first model become in the second", examples=["The capital of"]
        ),
        AfterValidator(plain_lines),
    ] = ""
    layer: Annotated[
        int | None, Field(ge=0, le=MAX_NUMBER, description="Of the first model: the states after it; the last")
    ] = None

    def query(self) -> dict[str, Any]:
        """Return the arguments as an address has them: a layer is left out if there is no text."""
        return {"kind": self.kind, "text": self.text, "layer": self.layer if self.text else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two compared models: its weights, and its index if the data folder has one."""

    model: str
    name: str  # the public name of the model; "" if it is not known
    source: str
    revision: str
    origin: str  # the origin of the weights, as text for people
    weights_sha256: str
    minus: Annotated[Minus | None, OMIT_NONE]  # the base, if the model is a difference
    n_layers: int
    d_model: int
    words: Annotated[bool, Field(description="Whether an index of these weights is here, so that matches have words")]
    lens: Annotated[str, Field(description='Of the words; "" where there are none')]
    fault: Annotated[str, PAGE_ONLY]  # why no words can be shown
    command: Annotated[str, PAGE_ONLY]  # the command that makes the model's index
    # the hash of the weights of the index in the data folder, if those are not the compared ones
    other_weights: Annotated[str, PAGE_ONLY]
    layer_pages: Annotated[tuple[int, ...], PAGE_ONLY]  # layers that have a page of neurons


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView(View):
    a: str
    b: str
    build: Annotated[str, Field(description="Of the comparison: as long as it is the same, so are the numbers")]
    tokens: Annotated[int, Field(description="That both models have: r is over these")]
    matched: Annotated[str, Field(description="How tokens of one were found in the other: by `ids` or by `text`")]
    models: Annotated[tuple[ComparedSide, ComparedSide], Field(description="A and B as they were compared")]
    kind: Annotated[str | None, Field(description="If one kind alone was asked for")]
    kinds: dict[str, KindView]
    unfinished: Annotated[tuple[str, ...], PAGE_ONLY]  # kinds that are missing because they are not compared yet
    missing: Annotated[dict[str, str], Field(description="Kinds that both have and that cannot be shown, and why")]
    strongest: list[MatchedVectors]
    stitching: Annotated[list[dict[str, Any]], Field(description="What `lexiscope stitch` measured, run by run")]
    stitching_fault: Annotated[str, Field(description='Why they cannot be shown; "" if they can')]
    all_kinds: Annotated[tuple[str, ...], PAGE_ONLY]  # kinds that both models have
    command: Annotated[str, PAGE_ONLY]  # the command that compares the models again
    sentence: Annotated[Sentence | None, Field(description="Of a `text`: what states of A become in B")] = None
    sentence_error: Annotated[ShownError | None, PAGE_ONLY] = None  # why the workers could not read the sentence
    stitches: Annotated[bool, PAGE_ONLY]  # whether both models can run, and the kernel can be read
    takes_sentence: Annotated[bool, PAGE_ONLY] = False  # whether workers answer for both models

    @property
    def in_order_by_chance(self) -> float:
        """Return how many layers would be in order by chance if layers were assigned at random."""
        return in_order_by_chance(min(side.n_layers for side in self.models))

    @property
    def disagree(self) -> bool:
        """Return True if some layer is assigned to another layer than the one with most of its best matches."""
        return any(pair not in of["assignment"] for of in self.kinds.values() for pair in of["best_layers"])

    @property
    def share_same_index(self) -> float | None:
        """Return the share of matching vectors with the same index in both models, over all kinds for which it is
        known."""
        shares = [of["same_index"] for of in self.kinds.values() if of["same_index"] is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def same_weights(self) -> bool:
        a, b = self.models
        return (a.weights_sha256, a.minus) == (b.weights_sha256, b.minus)

    def maps(self, kind: str) -> list[LayerMap]:
        return layer_maps(self.kinds[kind])

    def map_figure(self) -> MapFigure:
        """Return a figure with the maps of all kinds of vectors."""
        return figure(self.kinds, *(side.n_layers for side in self.models))

    def run_table(self, run: dict[str, Any]) -> Table:
        return run_table(self.a, self.b, run)

    def sources(self) -> str:
        return f"weights {' and '.join(side.weights_sha256[:12] for side in self.models)}, comparison {self.build}"

    def about(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "common_tokens": self.tokens, "build": self.build}

    def tables(self) -> list[Table]:
        return [
            *layer_tables(self.a, self.b, self.kinds),
            strongest_table(self.a, self.b, self.strongest),
            *([stitching_table(self.a, self.b, self.stitching)] if self.stitching else []),
            *([sentence_table(self.a, self.b, self.sentence)] if self.sentence else []),
        ]


def comparison(site: TwoModelsSite, at: ComparisonAt, ask: ComparisonArguments) -> ComparisonView:  # noqa: ARG001
    """Two models in one space: how similar their layers are, which is assigned to which, and the vectors that match.

    `stitching` says how well the last layers of the second model work on states of the first. With a `text`, workers
    show what the first model reads in its states after a `layer`, and what these become in the second. With `.svg` it
    is a figure of the maps, of one kind of vectors or of all.
    """
    found = _compared(site, ask)
    view = _view(site.library, found, ask.kind, site.hide_hubs)
    takes_sentence = _are_live(site) and view.stitches and all(side.words for side in view.models)
    view = replace(view, takes_sentence=takes_sentence, sentence_error=site.error)
    if site.answers:
        a, b = compared_indexes(site.library, found)
        view = replace(view, sentence=sentence_of(a, b, ask.text, *site.answers))
    if site.format not in ("html", "json"):
        _check_has_data(view)
    return view


def sentence(site: TwoModelsSite, at: ComparisonAt, ask: ComparisonArguments) -> Iterable[Any]:  # noqa: ARG001
    """Yield the requests for the workers of both models, if there is a text."""
    found = _compared(site, ask)
    return sentence_asks(site, found, ask.text, ask.layer) if ask.text else ()


def _compared(site: TwoModelsSite, ask: ComparisonArguments) -> Comparison:
    """Return the comparison of the two models; raise Moved if they are compared the other way round."""
    a, b = site.model, site.other
    try:
        found = site.library.comparisons.find(a, b)
    except NotFound:
        if any((card.a, card.b) == (b, a) for card in site.library.comparisons.cards()):
            raise Moved(link("comparison", b, a, kind=ask.kind, text=ask.text)) from None
        raise
    if ask.kind is not None and ask.kind not in found.record.kinds:
        raise NotFound(f"{ask.kind}: {found.a.model} and {found.b.model} both have {', '.join(found.record.kinds)}")
    return found


def _are_live(site: TwoModelsSite) -> bool:
    return site.serves(site.model) and site.serves(site.other)


def _version(site: TwoModelsSite) -> str:
    """Return a text that changes with what the page shows besides the comparison: the words of both models, and whether
    workers can run them."""
    return " ".join((*map(site.library.index_version, (site.model, site.other)), str(_are_live(site))))


_views: WeakKeyDictionary[Comparison, dict[tuple[object, ...], ComparisonView]] = WeakKeyDictionary()
_views_lock = Lock()


def _view(library: Library, comparison: Comparison, kind: str | None, hide_hubs: bool) -> ComparisonView:
    """Make the data of the page, and keep it as long as the comparison and the indexes of both models stay the same."""
    a, b = (WordsOf.of(library, model, hide_hubs=hide_hubs) for model in (comparison.a, comparison.b))
    key = (kind, hide_hubs, *(words.index.version if words.index else words.error for words in (a, b)))
    with _views_lock:
        views = _views.setdefault(comparison, {})
        if key not in views:
            view = _read(comparison, a, b, kind)
            if {*view.missing} - {*view.unfinished}:
                return view  # not kept, so that a repaired file is seen at the next request
            views[key] = view
        return views[key]


def _check_has_data(view: ComparisonView) -> None:
    """Raise an error if nothing that was asked for is there, because some formats have no place to say what is
    missing."""
    if view.kinds or (view.kind is None and (view.stitching or view.sentence)):
        return
    damaged = [why for kind, why in view.missing.items() if kind not in view.unfinished]
    if damaged:
        raise ShardDamaged("; ".join(damaged))
    raise NotBuilt(f"{', '.join(view.unfinished)}: not compared yet. `{view.command}` goes on with it")


def _read(comparison: Comparison, a: WordsOf, b: WordsOf, only: str | None) -> ComparisonView:
    data = comparison.folder.parents[2]
    kinds: dict[str, KindView] = {}
    missing: dict[str, str] = {}
    unfinished: list[str] = []
    strongest: list[MatchedVectors] = []
    for kind in (only,) if only else comparison.record.kinds:
        try:
            kinds[kind] = kind_view(comparison, kind)
            strongest += strongest_matches(comparison, kind, a, b, of_many=only is None)
        except (IndexFault, NotBuilt) as error:
            kinds.pop(kind, None)
            missing[kind] = for_visitors(error, data)
            unfinished += [kind] if isinstance(error, NotBuilt) else []
    stitching, stitching_fault = [], ""
    try:
        stitching = comparison.stitching()
    except LexiscopeError as error:
        stitching_fault = for_visitors(error, data)
    return ComparisonView(
        a=comparison.a.model,
        b=comparison.b.model,
        build=comparison.record.build,
        tokens=comparison.tokens,
        matched=comparison.record.matched,
        models=(_side(comparison.a, a), _side(comparison.b, b)),
        kind=only,
        kinds=kinds,
        unfinished=tuple(unfinished),
        missing=missing,
        strongest=strongest,
        stitching=stitching,
        stitching_fault=stitching_fault,
        all_kinds=comparison.record.kinds,
        command=compare_command_for(comparison.folder),
        stitches=not (comparison.a.minus or comparison.b.minus) and _has_kernel(comparison),
    )


def _has_kernel(comparison: Comparison) -> bool:
    try:
        comparison.kernel()
    except LexiscopeError:
        return False
    return True


def _side(model: ComparedModel, words: WordsOf) -> ComparedSide:
    index = words.index
    return ComparedSide(
        model=model.model,
        name=proper_name(model.source, model.revision),
        source=public_source(model.source, model.revision),
        revision=model.revision,
        origin=origin(model.source, model.revision),
        weights_sha256=model.weights_sha256,
        minus=public_minus(model.minus),
        n_layers=model.n_layers,
        d_model=model.d_model,
        words=index is not None,
        lens=words.lens,
        fault=words.error,
        command=rebuild_command(model.source, model.minus.source if model.minus else ""),
        other_weights=words.other_weights,
        layer_pages=index.layers if index and not {"ff_key", "ff_value"}.isdisjoint(index.stored.kinds) else (),
    )


COMPARISON = Page(
    name="comparison", title="Compared with {other}", at=ComparisonAt, arguments=ComparisonArguments,
    view=ComparisonView, make=comparison, asks=sentence, version=_version, formats=FIGURE_FORMATS, of="two models",
    is_slow=True, made_without_answers=True, leads_to="They are compared the other way round: goes there",
)  # fmt: skip
