"""The lists that the paper printed of a model beside ours: heads, neurons, looked-up neurons, fine-tuned vectors, and
numbers; and what all of it comes to, in a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from app.views.difference import minus_of
from app.views.paper_finetuning import WordsCompared, words_compared
from app.views.paper_heads import HeadCompared, head_compared
from app.views.paper_neurons import LookupCompared, NeuronCompared, SpeltRank, lookup_compared, neuron_compared
from app.views.paper_numbers import NumberCompared, numbers_compared
from app.views.paper_summary import Orientation, details, orientations, summary
from app.views.tokens import ViewOfModel
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.index.manifest import Manifest
from precompute.index.not_stored import check_lens
from precompute.paper import lists

LISTS: Any = Field(description="Whose printed lists these are; null: the paper printed none of this model")
BY_NAME: Any = Field(description="Whether the model has that name, or is only compared `as` if it were that model")
SUMMARY: Any = Field(description="How much of the printed lists is in ours")


class PaperSource(TypedDict):
    citation: str
    url: str
    licence: str


SOURCE: PaperSource = {"citation": lists.CITATION, "url": lists.URL, "licence": lists.LICENCE}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperView(ViewOfModel):
    lists: Annotated[str | None, LISTS]
    by_name: Annotated[bool, BY_NAME]
    lens: str
    source: PaperSource
    summary: Annotated[str, SUMMARY]
    details: list[str]
    orientation: list[Orientation]
    heads: list[HeadCompared]
    neurons: list[NeuronCompared]
    lookups: list[LookupCompared]
    words: Annotated[list[WordsCompared], Field(description="Of vectors changed by fine-tuning")]
    numbers: list[NumberCompared]
    chosen: Annotated[str | None, Field(description="The one list that was asked for, such as vo/21/7")] = None
    differences: Annotated[list[str], Field(description="Of gpt2: indexes here of models fine-tuned from it")]


def lists_of(manifest: Manifest) -> str | None:
    """Whose printed lists belong to an index: of a difference, those of its base."""
    if manifest.minus:
        base = lists.published_lists(manifest.minus.model, manifest.minus.source)
        return base if base == lists.BASE else None
    return lists.published_lists(manifest.model, manifest.source)


def paper_view(
    index: Index,
    compared_as: str | None = None,
    lens: str = "dot",
    chosen: str | None = None,
    ranks: Mapping[tuple[int, int], list[SpeltRank]] = MappingProxyType({}),
    differences: Sequence[str] = (),
) -> PaperView:
    """`chosen` is one list, such as vo/21/7; `ranks` are those of looked-up neurons, by layer and neuron, if they are
    known, and `differences` names of indexes."""
    check_lens(index, lens)
    own = lists_of(index.manifest)
    published = compared_as or own
    medium = published == lists.MEDIUM
    heads = [each for each in lists.heads() if medium and chosen in (None, f"{each.matrix}/{each.layer}/{each.head}")]
    neurons = [each for each in lists.neurons() if medium and chosen in (None, f"ff/{each.layer}/{each.neuron}")]
    lookups = [
        (each, result)
        for each in lists.lookups()
        for result in each.results
        if medium and chosen in (None, f"ff/{result.layer}/{result.neuron}")
    ]
    if chosen and not (heads or neurons or lookups):
        printed = ", ".join(f"{each.matrix}/{each.layer}/{each.head}" for each in lists.heads()[:3])
        raise NotFound(
            f"the paper printed no list {chosen[:40]!r} of {published or 'this model'}: there is {printed}, ..."
        )
    compared_heads = [head_compared(index, each, lens) for each in heads]
    compared_neurons = [neuron_compared(index, each, lens) for each in neurons]
    compared_lookups = [
        replace(lookup_compared(index, printed, result, lens), ranks=ranks.get((result.layer, result.neuron)))
        for printed, result in lookups
    ]
    words: list[WordsCompared] = []
    if published == lists.BASE and index.stored.difference and not chosen:
        words = words_compared(index, lists.differences(), lens)
    return PaperView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        lists=published,
        by_name=published is not None and published == own,
        lens=lens,
        source=SOURCE,
        summary=summary(compared_heads, compared_neurons, words),
        details=details(index, compared_heads, compared_neurons, compared_lookups, words),
        orientation=orientations(compared_heads),
        heads=compared_heads,
        neurons=compared_neurons,
        lookups=compared_lookups,
        words=words,
        numbers=[] if chosen or not published else numbers_compared(index, published, compared_lookups),
        chosen=chosen,
        differences=[*differences],
    )
