"""Compare the lists that the paper printed of a model with those of an index: in one table of all lists, or one list
entry by entry."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app import urls
from lexiscope.app.formats.table import Column, Table, constant
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.library.library import Library
from lexiscope.app.lists.view import ViewOfModel, of_index
from lexiscope.app.pages.page import Address, LensArguments, ModelSite, Page
from lexiscope.precompute.errors import LexiscopeError, NotBuilt, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.not_stored import check_lens
from lexiscope.precompute.paper import lists
from lexiscope.precompute.paper.matching import Entry, ranks_in_ours
from lexiscope.precompute.shape import ENDS, MATRICES

PAIRS_SEARCHED, TOKENS_SEARCHED = 50, 100  # how many entries of a list of the index a printed entry is searched in
KINDS_OF_COLUMN = {"key": ("ff_key",), "value": ("ff_value",), "unassigned": ("ff_key", "ff_value")}
# The kinds of vectors as the paper calls them, and as the index does.
CHANGED_KINDS = {"FF keys": "ff_key", "W_Q": "w_q", "W_K": "w_k", "W_V": "w_v"}
# how many vectors of a difference are compared, and how many tokens at each end of their lists
CHANGED_MOST, CHANGED_TOKENS = 50, 20

LISTS: Any = Field(description="Whose printed lists these are; null: the paper printed none of this model")
BY_NAME: Any = Field(description="Whether the model has that name, or is only compared `as` if it were that model")
ADDRESS: Any = Field(description="The list as `list=` takes it, such as vo/21/7; of words, the kind and the layer")
COLUMN: Any = Field(description="vo or qk; of a neuron key, value, or unassigned where print does not tell; or words")
OF: Any = Field(description="Printed entries that could be read beyond doubt: `found` counts these alone")
FOUND: Any = Field(description="How many of them are among our first ones, up to the leading space; null: see why_not")
AMONG: Any = Field(description="How many of our first entries there are to compare with; of words, how many vectors")
BY_CHANCE: Any = Field(description="Of words: how many there would be if our lists held as many random tokens")
RANK: Any = Field(description="In our list, up to the leading space; null: it is not there")

READ = "Printed entries that could be read beyond doubt: found counts these alone"
CHANCE = "As many as there would be if our lists held random tokens"


class PaperAt(Address):
    pattern = "paper"


class PaperArguments(LensArguments):
    compared_as: Annotated[
        Literal["gpt2-medium", "gpt2"] | None,
        Field(alias="as", description="Whose printed lists to compare with, of a model that has another name"),
    ] = None
    chosen: Annotated[
        str | None,
        Field(
            alias="list",
            max_length=40,
            description="Only this printed list, such as `vo/21/7` or `ff/3/2711`, entry by entry",
            examples=["vo/21/7"],
        ),
    ] = None

    def with_lens(self, index: Index) -> Self:
        """Return the arguments with a lens (dot or cosine), and without the name of the model whose printed lists are
        compared, if that is this model."""
        own = self.compared_as == lists.lists_of(index.manifest)
        return super().with_lens(index).model_copy(update={"compared_as": None if own else self.compared_as})

    def query(self) -> dict[str, Any]:
        """Return the arguments as they are written in an address, the lens last."""
        return {"as": self.compared_as, "list": self.chosen, "lens": self.lens}


class PaperSource(TypedDict):
    citation: str
    url: str
    licence: str


class PrintedToken(TypedDict):
    id: int | None  # None if the model's vocabulary has no such token
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
    tokens: list[PrintedToken]  # one token, or the two tokens of a pair
    doubtful: bool  # True if the printed entry may have been misread
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

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "lists": self.lists, "lens": self.lens}

    def tables(self) -> list[Table]:
        title = f"{self.lists or 'nothing'} as printed, in {self.model} ({self.lens})"
        columns = tuple(column for column in LIST_COLUMNS if column.name != "by_chance" or self.lists == lists.BASE)
        tables: list[tuple[str, Any, Any]] = [("list", columns, self.printed), ("entry", ENTRY_COLUMNS, self.entries)]
        return [Table(title, (constant("what", what), *shown), rows) for what, shown, rows in tables if rows]

    def list_table(self) -> Table:
        """Make the table of printed lists, for the page. For lists of words, it also has what chance gives, and how
        many vectors were compared."""
        words = self.printed[0].column == "words"
        by_chance = [
            Column(
                "by_chance", "number", get=lambda row: row.by_chance, heading="by chance", tip=CHANCE, format=".1f"
            )
        ]  # fmt: skip
        columns = (
            Column("address", "address", get=lambda row: row.address, heading="list"),
            Column("section", get=lambda row: row.section, heading="in the paper"),
            Column("printed", "number", get=lambda row: row.printed),
            Column("found", "number", get=lambda row: row.found, instead=lambda row: row.why_not),
            Column("of", "number", get=lambda row: row.of, tip=READ),
            *(by_chance if words else ()),
            Column("among", "number", get=lambda row: row.among, heading="vectors" if words else "among our first"),
            Column("ours", get=lambda row: row.ours, heading="our list"),
        )
        return Table("", columns, self.printed)

    def entry_table(self) -> Table:
        """Make the table of the entries of one list, for the page."""
        columns = (
            Column("at", "number", get=lambda row: row[0], heading="#"),
            Column("printed", get=lambda row: row[1]),
            Column("rank", "number", get=lambda row: row[1].rank, heading="our rank"),
        )
        return Table("", columns, [*enumerate(self.entries, 1)])


class _Listed(NamedTuple):
    """A printed list of a head or a neuron, and the list of the index to compare it with."""

    address: str
    column: str
    section: str
    layer: int
    number: int  # the number of the head or neuron
    entries: Sequence[Entry]
    doubtful: Collection[int]
    preset: str = ""  # the preset of pairs

    @property
    def first(self) -> int:
        return PAIRS_SEARCHED if self.column in MATRICES else TOKENS_SEARCHED

    def ours(self, index: Index, lens: str) -> list[list[Entry]]:
        """Return the lists of the index to compare with, only with tokens in ASCII, because the paper prints no
        others."""
        what, count = ("head", index.shape.n_heads) if self.column in MATRICES else ("neuron", index.shape.d_mlp)
        if self.number >= count:
            raise NotFound(f"there is no {what} {self.number} in a layer, only 0 to {count - 1}")
        shard, tokens = index.shard(self.layer), index.tokens
        if self.column in MATRICES:
            ids: Any = [shard.heads.pairs(self.column, self.number, lens, self.preset, "top").ids.tolist()]
        else:
            kinds = [kind for kind in KINDS_OF_COLUMN[self.column] if kind in index.stored.kinds] or KINDS_OF_COLUMN[
                self.column
            ]
            found, _ = shard.vectors([(kind, self.number) for kind in kinds], lens)
            ids = [[(token,) for token in top[:TOKENS_SEARCHED]] for top in found[:, 0].tolist()]
        return [
            [tuple(map(tokens.text, entry)) for entry in listed if all(tokens.raw(token).isascii() for token in entry)]
            for listed in ids
        ]

    def page(self, model: str, lens: str) -> str:
        if self.column in MATRICES:
            return urls.link("pairs", model, self.layer, self.number, self.column, lens=lens, preset=self.preset)
        return urls.link("neuron", model, self.layer, self.number, lens=lens)


def paper(site: ModelSite, at: PaperAt, ask: PaperArguments) -> PaperView:  # noqa: ARG001
    """The lists that the paper printed of a model (GPT-2 medium, and GPT-2 after fine-tuning): for each, how many
    entries are printed, how many of them are among the first ones of the index, and where the list of the index is.

    With `list`, one printed list entry by entry, with the rank of each entry in the list of the index.
    """
    index, lens, chosen = site.index, ask.lens, ask.chosen
    check_lens(index, lens)
    own = lists.lists_of(index.manifest)
    published = ask.compared_as or own
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
        **of_index(index),
        lists=published,
        by_name=published is not None and published == own,
        lens=lens,
        source={"citation": lists.CITATION, "url": lists.URL, "licence": lists.LICENCE},
        printed=rows,
        entries=[entry for _, entries in compared for entry in entries] if chosen else [],
        chosen=chosen,
        differences=_tuned_from_base(site.library) if published == lists.BASE else [],
    )


def _tuned_from_base(library: Library) -> list[str]:
    """Return the names of those differences of two models whose tuned model was fine-tuned from GPT-2."""
    return [card.model for card in library.cards() if card.tuned and lists.published_lists(card.base, "") == lists.BASE]


def _printed_lists() -> Iterator[_Listed]:
    for head in lists.heads():
        where = f"{head.matrix}/{head.layer}/{head.head}", head.matrix, head.section, head.layer, head.head
        yield _Listed(*where, head.pairs, head.low_confidence, "distinct" if head.without_same_token else "all")
    for neuron in lists.neurons():
        for column in KINDS_OF_COLUMN:
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
    """Return None and what `read` returns or, if the index has no such list, a text that says why and None."""
    try:
        return None, read()
    except NotBuilt:
        return f"layer {layer} is not built", None
    except LexiscopeError as error:
        return for_visitors(error, index.folder.parent), None


def _words_compared(index: Index, lens: str) -> Iterator[PrintedList]:
    """Compare the words of fine-tuned vectors (appendix D). The paper does not print which vectors these are, so the
    printed lists of a kind and layer are one set of words, which are searched in the lists of the vectors that changed
    most."""
    numbers: dict[str, int] = {}  # a number for each text without its leading space
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
    """Return the first tokens at the top and the bottom of vectors' lists, those that changed most first, and a
    function that returns the address of a vector's page."""
    model = index.manifest.model
    if layer is None:
        head = index.classifier()
        first = [head.vector("classifier", at, lens).ids[:, :CHANGED_TOKENS] for at in range(len(head.entry.labels))]
        return partial(urls.link, "classifier_vector", model, "classifier", lens=lens), np.stack(first).reshape(
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
            return urls.link("neuron", model, layer, number, lens=lens)
        return urls.link("subhead", model, layer, *index.shape.head_and_subhead(ours, number), lens=lens)

    return page, np.concatenate([shard.first_ids(ours, order, lens, CHANGED_TOKENS, end) for end in ENDS], axis=1)


LIST_COLUMNS = (
    Column("address", get=lambda row: row.address, heading="list"),
    Column("column", get=lambda row: row.column),
    Column("section", get=lambda row: row.section, heading="in the paper"),
    Column("printed", get=lambda row: row.printed),
    Column("found", get=lambda row: row.found),
    Column("of", get=lambda row: row.of),
    Column("among", get=lambda row: row.among, heading="among our first"),
    Column("by_chance", "number", get=lambda row: row.by_chance, heading="by chance"),
    Column("why_not", get=lambda row: row.why_not, heading="not compared, because"),
    Column("ours", get=lambda row: row.ours, heading="our list"),
)
ENTRY_COLUMNS = (
    Column("column", get=lambda entry: entry.column),
    Column("first_token", "token", get=lambda entry: entry.tokens[0], heading="printed"),
    Column("second_token", "token", get=lambda entry: entry.tokens[1] if entry.tokens[1:] else None, heading="second"),
    Column("doubtful", get=lambda entry: "may be misread" if entry.doubtful else "", heading="doubt"),
    Column("rank", get=lambda entry: entry.rank, heading="our rank"),
)

PAPER = Page(
    name="paper", title="The paper beside it", at=PaperAt, arguments=PaperArguments, view=PaperView, make=paper,
    version=lambda site: f"{_tuned_from_base(site.library)}", is_slow=True,
)  # fmt: skip
