"""The lists that the paper printed of a model, and how many of their entries are in ours."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app import addresses
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.tokens import ViewOfModel
from lexiscope.precompute.errors import LexiscopeError, NotBuilt, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.not_stored import check_lens
from lexiscope.precompute.paper import lists
from lexiscope.precompute.paper.matching import Entry, ranks_in_ours
from lexiscope.precompute.shape import ENDS, MATRICES

FIRST_PAIRS, FIRST_TOKENS = 50, 100  # of ours that count as found
COLUMNS = {"key": ("ff_key",), "value": ("ff_value",), "unassigned": ("ff_key", "ff_value")}
CHANGED_KINDS = {"FF keys": "ff_key", "W_Q": "w_q", "W_K": "w_k", "W_V": "w_v"}  # as printed, and ours
CHANGED_MOST, CHANGED_TOKENS = 50, 20  # vectors of a difference, and tokens of each of their ends, that are compared

LISTS: Any = Field(description="Whose printed lists these are; null: the paper printed none of this model")
BY_NAME: Any = Field(description="Whether the model has that name, or is only compared `as` if it were that model")
ADDRESS: Any = Field(description="The list as `list=` takes it, such as vo/21/7; of words, the kind and the layer")
COLUMN: Any = Field(description="vo or qk; of a neuron key, value, or unassigned where print does not tell; or words")
OF: Any = Field(description="Printed entries that could be read beyond doubt: `found` counts these alone")
FOUND: Any = Field(description="How many of them are among our first ones, up to the leading space; null: see why_not")
AMONG: Any = Field(description="How many of our first entries there are to compare with; of words, how many vectors")
BY_CHANCE: Any = Field(description="Of words: how many there would be if our lists held as many random tokens")
RANK: Any = Field(description="In our list, up to the leading space; null: it is not there")


class PaperSource(TypedDict):
    citation: str
    url: str
    licence: str


class PrintedToken(TypedDict):
    id: int | None  # None: the model's vocabulary has no such token
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedList:
    address: Annotated[str, ADDRESS]
    column: Annotated[str, COLUMN]
    section: str
    printed: int
    of: Annotated[int, OF]
    found: Annotated[int | None, FOUND] = None
    among: Annotated[int, AMONG] = 0
    by_chance: Annotated[float | None, BY_CHANCE] = None
    why_not: Annotated[str | None, Field(description="Why the list cannot be compared with ours")] = None
    ours: Annotated[str | None, Field(description="The address of our list")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedEntry:
    column: str
    tokens: list[PrintedToken]  # one, or the two of a pair
    doubtful: bool  # it may be misread
    rank: Annotated[int | None, RANK]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperView(ViewOfModel):
    lists: Annotated[str | None, LISTS]
    by_name: Annotated[bool, BY_NAME]
    lens: str
    source: PaperSource
    printed: list[PrintedList]
    entries: Annotated[list[PrintedEntry], Field(description="Of the one list that was asked for")]
    chosen: Annotated[str | None, Field(description="The one list that was asked for, such as vo/21/7")] = None
    differences: Annotated[list[str], Field(description="Of gpt2: indexes here of models fine-tuned from it")]


class _Listed(NamedTuple):
    """A printed list of a head or a neuron, and where ours is."""

    address: str
    column: str
    section: str
    layer: int
    number: int  # of the head or neuron
    entries: Sequence[Entry]
    doubtful: Collection[int]
    preset: str = ""  # of pairs

    @property
    def first(self) -> int:
        return FIRST_PAIRS if self.column in MATRICES else FIRST_TOKENS

    def ours(self, index: Index, lens: str) -> list[list[Entry]]:
        """Return our lists to compare with, tokens in ASCII only, because print has no others."""
        what, count = ("head", index.shape.n_heads) if self.column in MATRICES else ("neuron", index.shape.d_mlp)
        if self.number >= count:
            raise NotFound(f"there is no {what} {self.number} in a layer, only 0 to {count - 1}")
        shard, tokens = index.shard(self.layer), index.tokens
        if self.column in MATRICES:
            ids: Any = [shard.heads.pairs(self.column, self.number, lens, self.preset, "top").ids.tolist()]
        else:
            kinds = [kind for kind in COLUMNS[self.column] if kind in index.stored.kinds] or COLUMNS[self.column]
            found, _ = shard.vectors([(kind, self.number) for kind in kinds], lens)
            ids = [[(token,) for token in top[:FIRST_TOKENS]] for top in found[:, 0].tolist()]
        return [
            [tuple(map(tokens.text, entry)) for entry in listed if all(tokens.raw(token).isascii() for token in entry)]
            for listed in ids
        ]

    def page(self, model: str, lens: str) -> str:
        if self.column in MATRICES:
            return addresses.link("pairs", model, self.layer, self.number, self.column, lens=lens, preset=self.preset)
        return addresses.link("neuron", model, self.layer, self.number, lens=lens)


def lists_of(manifest: Manifest) -> str | None:
    """Return the model whose printed lists belong to an index: of a difference, its base."""
    if manifest.minus:
        base = lists.published_lists(manifest.minus.model, manifest.minus.source)
        return base if base == lists.BASE else None
    return lists.published_lists(manifest.model, manifest.source)


def paper_view(
    index: Index,
    compared_as: str | None = None,
    lens: str = "dot",
    chosen: str | None = None,
    differences: Sequence[str] = (),
) -> PaperView:
    """Compare all printed lists, or the `chosen` one, such as vo/21/7, entry by entry. `differences` names indexes."""
    check_lens(index, lens)
    own = lists_of(index.manifest)
    published = compared_as or own
    listed = [each for each in _printed_lists() if published == lists.MEDIUM and chosen in (None, each.address)]
    if chosen and not listed:
        printed = ", ".join(each.address for each, _ in zip(_printed_lists(), range(3), strict=False))
        raise NotFound(
            f"the paper printed no list {chosen[:40]!r} of {published or 'this model'}: there is {printed}, ..."
        )
    compared = [_compared(index, each, lens) for each in listed]
    rows = [row for row, _ in compared]
    if published == lists.BASE and index.stored.difference:
        rows = [*_words_compared(index, lens)]
    return PaperView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        lists=published,
        by_name=published is not None and published == own,
        lens=lens,
        source={"citation": lists.CITATION, "url": lists.URL, "licence": lists.LICENCE},
        printed=rows,
        entries=[entry for _, entries in compared for entry in entries] if chosen else [],
        chosen=chosen,
        differences=[*differences],
    )


def _printed_lists() -> Iterator[_Listed]:
    for head in lists.heads():
        where = f"{head.matrix}/{head.layer}/{head.head}", head.matrix, head.section, head.layer, head.head
        yield _Listed(*where, head.pairs, head.low_confidence, "distinct" if head.without_same_token else "all")
    for neuron in lists.neurons():
        for column in COLUMNS:
            if tokens := getattr(neuron, column):
                doubtful = [at for at, text in enumerate(tokens) if text in neuron.uncertain]
                yield _of_neuron(neuron.layer, neuron.neuron, column, neuron.section, tokens, doubtful)
    for lookup in lists.lookups():
        for result in lookup.results:
            yield _of_neuron(result.layer, result.neuron, "value", lookup.section, result.tokens, ())


def _of_neuron(
    layer: int, neuron: int, column: str, section: str, tokens: Sequence[str], doubtful: Collection[int]
) -> _Listed:
    return _Listed(f"ff/{layer}/{neuron}", column, section, layer, neuron, [(text,) for text in tokens], doubtful)


def _compared(index: Index, listed: _Listed, lens: str) -> tuple[PrintedList, list[PrintedEntry]]:
    n = len(listed.entries)
    counts = {"printed": n, "of": n - len(listed.doubtful)}
    why_not, ours = _or_why_not(index, listed.layer, lambda: listed.ours(index, lens))
    by_list = [ranks_in_ours(listed.entries, each, listed.doubtful) for each in ours or ()]
    ranks = [min(filter(None, (of[at].up_to_space for of in by_list)), default=None) for at in range(n)]
    if ours is not None:
        counts["among"] = min(listed.first, max(map(len, ours)))
        counts["found"] = sum(
            rank is not None and rank <= listed.first for at, rank in enumerate(ranks) if at not in listed.doubtful
        )
    row = PrintedList(
        address=listed.address,
        column=listed.column,
        section=listed.section,
        why_not=why_not,
        ours=listed.page(index.manifest.model, lens) if ours is not None else None,
        **counts,
    )
    entries = [
        PrintedEntry(
            column=listed.column,
            tokens=[{"id": index.tokens.numbers.get(text), "token": text} for text in entry],
            doubtful=at in listed.doubtful,
            rank=ranks[at],
        )
        for at, entry in enumerate(listed.entries)
    ]
    return row, entries


def _or_why_not(index: Index, layer: int | None, read: Callable[[], Any]) -> tuple[str | None, Any]:
    """Return what `read` reads of the index, or why it has no such list."""
    try:
        return None, read()
    except NotBuilt:
        return f"layer {layer} is not built", None
    except LexiscopeError as error:
        return for_visitors(error, index.folder.parent), None


def _words_compared(index: Index, lens: str) -> Iterator[PrintedList]:
    """Compare the words of fine-tuned vectors (appendix D). Which vectors these are is not printed, so the tables of a
    kind and layer are one set of words, looked for in the lists of the vectors that changed most."""
    numbers: dict[str, int] = {}  # of texts without the leading space
    of_token = np.array([numbers.setdefault(text.removeprefix(" "), len(numbers)) for text in index.tokens.texts])
    groups: dict[tuple[str, int | None], list[lists.PrintedDifference]] = {}
    for each in lists.differences():
        groups.setdefault((each.kind, each.layer), []).append(each)
    for (kind, layer), tables in groups.items():
        texts = {text for each in tables for text in (*each.diff, *each.minus_diff)}
        why_not, ours = _or_why_not(index, layer, partial(_changed, index, kind, layer, lens))
        row: dict[str, Any] = {"printed": len(texts), "of": len(texts)}
        if ours is not None:
            pages, ids = ours
            wanted = [numbers[text] for text in {text.removeprefix(" ") for text in texts} if text in numbers]
            is_wanted = np.isin(of_token[ids], wanted)
            held = np.unique(of_token[ids[:CHANGED_MOST]])
            row |= {
                "found": int(np.isin(held, wanted).sum()),
                "among": min(len(ids), CHANGED_MOST),
                "by_chance": len(wanted) * len(held) / len(numbers),
                "ours": pages(int(is_wanted.sum(axis=1).argmax())),
            }
        address = kind if layer is None else f"{kind}, layer {layer}"
        yield PrintedList(address=address, column="words", section=tables[0].section, why_not=why_not, **row)


def _changed(index: Index, kind: str, layer: int | None, lens: str) -> tuple[Callable[[int], str], NDArray[Any]]:
    """Return the first tokens of both ends of vectors, those that changed most first, and how to find their pages."""
    model = index.manifest.model
    if layer is None:
        head = index.classifier()
        first = [head.vector("classifier", at, lens).ids[:, :CHANGED_TOKENS] for at in range(len(head.entry.labels))]
        return partial(addresses.link, "classifier_vector", model, "classifier", lens=lens), np.stack(first).reshape(
            len(first), -1
        )
    ours, shard = CHANGED_KINDS[kind], index.shard(layer)
    norms = shard.all_norms(ours)
    order = np.argsort(-norms, kind="stable")[: int((norms > 0).sum())]
    if not len(order):
        raise NotFound(f"no {ours} of layer {layer} changed")

    def page(at: int) -> str:
        number = int(order[at])
        if ours == "ff_key":
            return addresses.link("neuron", model, layer, number, lens=lens)
        return addresses.link("subhead", model, layer, *index.shape.head_and_subhead(ours, number), lens=lens)

    return page, np.concatenate([shard.first_ids(ours, order, lens, CHANGED_TOKENS, end) for end in ENDS], axis=1)
