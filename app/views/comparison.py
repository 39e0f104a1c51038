"""Two models in one space: how alike their layers are, which layer is assigned to which, and which vectors match."""

from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.library.checks import for_visitors
from lexiscope.app.library.library import Library
from lexiscope.app.views.difference import Minus, public_minus
from lexiscope.app.views.layer_order import LayerPair, Verdict, in_order_by_chance, verdict
from lexiscope.app.views.matched_vectors import WordsOf
from lexiscope.app.views.sentence import Sentence
from lexiscope.app.views.strongest_matches import MatchedVectors, strongest_matches
from lexiscope.app.views.tokens import OMIT_NONE, PAGE_ONLY, View
from lexiscope.app.views.trouble import Trouble
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotBuilt, NotFound, ShardDamaged
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.comparison_record import ComparedModel
from lexiscope.precompute.index.origin import origin, proper_name, public_source
from lexiscope.precompute.rebuild_command import compare_command_for, rebuild_command

FEATURE_SPACE: Any = Field(description="The same of the vectors' own coordinates; null where d_model differs")


class KindView(TypedDict):
    """Layers of A by layers of B."""

    similarity: Annotated[list[list[float]], Field(description="Mean |r| over all pairs of a vector of either layer")]
    assignment: Annotated[list[LayerPair], Field(description="One to one, with the largest sum of similarities")]
    feature_space: Annotated[list[list[float]] | None, FEATURE_SPACE]
    feature_assignment: list[LayerPair] | None
    chance: Annotated[float | None, Field(description="The similarity of random vectors; null where not measured")]
    feature_chance: Annotated[float | None, Field(description="The same in feature space")]
    best: Annotated[
        list[list[float]], Field(description="Share of the vectors of a layer of A whose best match is in one of B")
    ]
    best_layers: Annotated[
        list[LayerPair], Field(description="Of each assigned layer of A, the layer of B that holds most best matches")
    ]
    same_index: Annotated[
        float | None,
        Field(description="Share of A's vectors whose best match has the same number; null where layers are not alike"),
    ]
    verdict: Verdict
    feature_verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One of the two models, as it was compared."""

    model: str
    name: str  # what others call it; "" if that is not known
    source: str
    revision: str
    origin: str  # the same for people
    weights_sha256: str
    minus: Annotated[Minus | None, OMIT_NONE]  # of a difference: the base
    n_layers: int
    d_model: int
    words: Annotated[bool, Field(description="Whether an index of these weights is here, so that matches have words")]
    lens: Annotated[str, Field(description='Of the words; "" where there are none')]
    fault: Annotated[str, PAGE_ONLY]  # why there are no words
    command: Annotated[str, PAGE_ONLY]  # that makes its index
    other_weights: Annotated[str, PAGE_ONLY]  # of the index here, if these are others
    layer_pages: Annotated[tuple[int, ...], PAGE_ONLY]  # layers that have a page of their neurons


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
    unfinished: Annotated[tuple[str, ...], PAGE_ONLY]  # those of the missing that are not compared yet
    missing: Annotated[dict[str, str], Field(description="Kinds that both have and that cannot be shown, and why")]
    strongest: list[MatchedVectors]
    stitching: Annotated[list[dict[str, Any]], Field(description="What `lexiscope stitch` measured, run by run")]
    stitching_fault: Annotated[str, Field(description='Why they cannot be shown; "" if they can')]
    all_kinds: Annotated[tuple[str, ...], PAGE_ONLY]  # that both models have
    command: Annotated[str, PAGE_ONLY]  # that compares them again
    sentence: Annotated[Sentence | None, Field(description="Of a `text`: what states of A become in B")] = None
    sentence_trouble: Annotated[Trouble | None, PAGE_ONLY] = None  # why the workers gave none
    stitches: Annotated[bool, PAGE_ONLY]  # whether both can run, and the kernel can be read
    takes_sentence: Annotated[bool, PAGE_ONLY] = False  # whether workers answer for both models

    @property
    def in_order_by_chance(self) -> float:
        """Of the layers of an assignment."""
        return in_order_by_chance(min(side.n_layers for side in self.models))

    @property
    def disagree(self) -> bool:
        """Whether a layer is assigned to another one than most of its best matches are in."""
        return any(pair not in of["assignment"] for of in self.kinds.values() for pair in of["best_layers"])

    @property
    def share_same_index(self) -> float | None:
        """Over all kinds that can tell."""
        shares = [of["same_index"] for of in self.kinds.values() if of["same_index"] is not None]
        return sum(shares) / len(shares) if shares else None

    @property
    def same_weights(self) -> bool:
        a, b = self.models
        return (a.weights_sha256, a.minus) == (b.weights_sha256, b.minus)


_views: WeakKeyDictionary[Comparison, dict[tuple[object, ...], ComparisonView]] = WeakKeyDictionary()
_views_lock = Lock()


def comparison_view(
    library: Library, comparison: Comparison, kind: str | None = None, hide_hubs: bool = False
) -> ComparisonView:
    """Kept as long as the comparison, and what the indexes of both models hold."""
    a, b = (WordsOf.of(library, model, hide_hubs=hide_hubs) for model in (comparison.a, comparison.b))
    if kind is not None and kind not in comparison.record.kinds:
        both = ", ".join(comparison.record.kinds)
        raise NotFound(f"{kind}: {comparison.a.model} and {comparison.b.model} both have {both}")
    key = (kind, hide_hubs, *(words.index.version if words.index else words.fault for words in (a, b)))
    with _views_lock:
        views = _views.setdefault(comparison, {})
        if key not in views:
            view = _read(comparison, a, b, kind)
            if {*view.missing} - {*view.unfinished}:
                return view  # a file that is put right is seen at the next look
            views[key] = view
        return views[key]


def check_has_data(view: ComparisonView) -> None:
    """For formats that have no place to say what is missing: an error, if nothing that was asked for is there."""
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
            kinds[kind] = _kind_view(comparison, kind)
            strongest += strongest_matches(comparison, kind, a, b, of_many=only is None)
        except (IndexFault, NotBuilt) as fault:
            kinds.pop(kind, None)
            missing[kind] = for_visitors(fault, data)
            unfinished += [kind] if isinstance(fault, NotBuilt) else []
    stitching, stitching_fault = [], ""
    try:
        stitching = comparison.stitching()
    except LexiscopeError as fault:
        stitching_fault = for_visitors(fault, data)
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
        fault=words.fault,
        command=rebuild_command(model.source, model.minus.source if model.minus else ""),
        other_weights=words.other_weights,
        layer_pages=index.layers if index and not {"ff_key", "ff_value"}.isdisjoint(index.stored.kinds) else (),
    )


def _kind_view(comparison: Comparison, kind: str) -> KindView:
    n_layers = comparison.a.n_layers, comparison.b.n_layers
    count_a, count_b = comparison.a.kinds[kind], comparison.b.kinds[kind]
    layers, indexes, _ = (part[:, 0] for part in comparison.all_matches("a", kind))  # (L_A * count_a,) of the best
    pairs = np.repeat(np.arange(n_layers[0]), count_a) * n_layers[1] + layers
    best = np.bincount(pairs, minlength=n_layers[0] * n_layers[1]).reshape(n_layers) / count_a
    same = float((indexes == np.tile(np.arange(count_a), n_layers[0])).mean()) if count_a == count_b else None
    feature_space = comparison.feature_space(kind)
    assignment, control = comparison.assignment(kind), comparison.feature_assignment(kind)
    return {
        "similarity": comparison.similarity(kind).tolist(),
        "assignment": assignment,
        "feature_space": None if feature_space is None else feature_space.tolist(),
        "feature_assignment": control,
        "chance": comparison.chance(kind),
        "feature_chance": comparison.feature_chance(),
        "best": best.tolist(),
        "best_layers": [(layer, int(best[layer].argmax())) for layer, _ in assignment],
        "same_index": same,
        "verdict": verdict(assignment, *n_layers),
        "feature_verdict": None if control is None else verdict(control, *n_layers),
    }
