"""The tables of views as people put them into a paper or a chat: tokens as one can see them, numbers cut.
All that is listed, for programs, is in records.py; how either is written is for table_text.py."""

from collections.abc import Iterable, Sequence
from functools import singledispatch
from itertools import zip_longest

from app.formats.live_tables import relation_tables, seeds_tables
from app.formats.records import readings
from app.formats.table_text import Cell, Table, Tokens
from app.views.head import HeadView, MatrixGlance
from app.views.home import HomeView
from app.views.layer import LayerView
from app.views.model import ModelView
from app.views.neuron import NeuronView
from app.views.pairs import COLUMNS, PairsReading, PairsView
from app.views.relation import RelationView
from app.views.search import PairMatch, SearchView, VectorMatch
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.token import Listing, PairListing, Role, TokenView
from app.views.token_text import shown
from app.views.tokens import ScoredToken, Token, TokenPair, View
from app.views.worth_reading import HEAD_LENS, HEAD_PRESET, NeuronCard
from precompute.index.index import ranges

ROLES: dict[Role, str] = {
    "reads": "read", "writes": "write", "avoids": "avoid", "suppresses": "suppress",
    "positive": "turn positive on", "negative": "turn negative on",
}  # fmt: skip


@singledispatch
def tables(view: View) -> list[Table]:
    raise TypeError(f"{type(view).__name__} has no table")


@tables.register
def _(view: NeuronView | SubheadView) -> list[Table]:
    what = f"layer {view.layer}, " + (
        f"neuron {view.neuron}" if isinstance(view, NeuronView) else f"head {view.head}, subhead {view.subhead}"
    )
    return [
        Table(
            f"{view.model}, {what}, {name} ({view.lens}{_named(reading)})",
            ("#", "top", "score", "bottom", "score"),
            [
                (rank, *_scored(high), *_scored(low))
                for rank, (high, low) in enumerate(zip_longest(vector.top, vector.bottom), 1)
            ],
        )
        for reading, name, vector in readings(view)
    ]


@tables.register
def _(view: PairsView) -> list[Table]:
    read = _pair_tables(view, view.matrix, view.reading, view.reading.name) if view.reading else []
    return [*_pair_tables(view, view.matrix, view), *read]


@tables.register
def _(view: HeadView) -> list[Table]:
    subheads = [
        (row["subhead"], _listed(row["q"]), _listed(row["k"]), _listed(row["v"]), _listed(row["o"]))
        for row in view.subheads
    ]
    title = f"{view.model}, layer {view.layer}, head {view.head}, subheads ({view.lens})"
    return [
        *_pair_tables(view, "vo", view.vo),
        *_pair_tables(view, "qk", view.qk),
        Table(title, ("subhead", "q", "k", "v", "o"), subheads),
    ]


def _pair_tables(
    view: PairsView | HeadView, matrix: str, lists: PairsView | MatrixGlance | PairsReading, reading: str | None = None
) -> list[Table]:
    how = f"{view.lens}, {view.preset}{_named(reading)}"
    title = f"{view.model}, layer {view.layer}, head {view.head}, {matrix}, {{}} ({how})"
    return [
        Table(
            title.format(end),
            ("#", *COLUMNS[matrix], "score"),
            [(rank, _shown(pair["from"]), _shown(pair["to"]), pair["score"]) for rank, pair in enumerate(entries, 1)],
        )
        for end, entries in (("top", lists.top), ("bottom", lists.bottom))
    ]


def _named(reading: str | None) -> str:
    return f", reading {reading}" if reading else ""


@tables.register
def _(view: LayerView) -> list[Table]:
    columns = ("neuron", "key", "value", "norm", "coherence", "similarity")
    rows = [
        (row["neuron"], _listed(row["key"]), _listed(row["value"]), row["norm"], row["coherence"], row["similarity"])
        for row in view.rows
    ]
    return [Table(f"{view.model}, layer {view.layer}, page {view.page} of {view.pages} ({view.lens})", columns, rows)]


@tables.register
def _(view: ModelView) -> list[Table]:
    def neurons(title: str, number: str, cards: Sequence[NeuronCard]) -> Table:
        rows = [(card["layer"], card["neuron"], card["number"], _listed(card["tokens"])) for card in cards]
        return Table(f"{view.model}, {title} ({view.lens})", ("layer", "neuron", number, "tokens"), rows)

    heads = [
        (card["layer"], card["head"], card["matrix"], card["number"], _pairs(card["pairs"])) for card in view.heads
    ]
    return [
        neurons("most coherent neurons", "coherence", view.neurons),
        neurons("neurons whose key and value agree", "similarity", view.agreeing),
        Table(
            f"{view.model}, most coherent heads ({HEAD_LENS}, {HEAD_PRESET})",
            ("layer", "head", "matrix", "coherence", "pairs"),
            heads,
        ),
    ]


@tables.register
def _(view: HomeView) -> list[Table]:
    rows = [(card.model, card.architecture, card.n_layers, ranges(card.layers), card.bytes) for card in view.models]
    return [Table("Models", ("model", "architecture", "layers", "ready", "bytes"), rows)]


@tables.register
def _(view: TokenView) -> list[Table]:
    name = f"{view.model}, token {view.token['id']} {shown(view.token['token'])}"
    made = [
        Table(
            f"{name}: {role.kind} that {ROLES[role.role]} it ({view.lens})",
            ("where", "rank", "score"),
            [(_where(place), place["rank"], place["score"]) for place in role.places],
        )
        for role in view.roles
        if role.places
    ]
    pairs = [
        (_head(p), p["matrix"], p["side"], _shown(p["other"]), p["end"], p["rank"], p["score"]) for p in view.pairs
    ]
    columns = ("where", "matrix", "side", "other", "end", "rank", "score")
    return [*made, Table(f"{name}: heads that map it ({view.lens}, {view.preset})", columns, pairs)]


@tables.register
def _(view: SearchView) -> list[Table]:
    groups = [(group.match, shown(group.surface), _listed(group.tokens)) for group in view.tokens]
    rows = [
        (_where(match), match["kind"], match["end"], ", ".join(map(str, match["ranks"])), _listed(match["tokens"]))
        for match in view.matches
    ]
    columns = ("where", "kind", "end", "ranks", "tokens")
    pairs = [
        (_head(p), p["matrix"], _shown(p["from"]), _shown(p["to"]), p["end"], p["preset"], p["rank"], p["score"])
        for p in view.pairs
    ]
    of_pairs = ("where", "matrix", "reads or query", "writes or key", "end", "preset", "rank", "score")
    made = [
        Table(f"{view.model}, tokens like {view.q}", ("match", "word", "tokens"), groups),
        Table(f"{view.model}, parameters that list {view.q} ({view.lens})", columns, rows),
        Table(f"{view.model}, heads that pair {view.q} ({view.lens})", of_pairs, pairs),
    ]
    return [made[0], *(table for table in made[1:] if table.rows)]


tables.register(SeedsView, seeds_tables)
tables.register(RelationView, relation_tables)


def _where(place: Listing | VectorMatch) -> str:
    """L29N808, or L25H2.49."""
    if place["head"] is None:
        return f"L{place['layer']}N{place['index']}"
    return f"L{place['layer']}H{place['head']}.{place['subhead']}"


def _head(pair: PairListing | PairMatch) -> str:
    return f"L{pair['layer']}H{pair['head']}"


def _shown(token: Token) -> Tokens:
    return Tokens(((shown(token["token"]),),))


def _listed(entries: Iterable[Token]) -> Tokens:
    return Tokens(tuple((shown(token["token"]),) for token in entries))


def _pairs(pairs: Sequence[TokenPair]) -> Tokens:
    return Tokens(tuple((shown(pair["from"]["token"]), shown(pair["to"]["token"])) for pair in pairs))


def _scored(entry: ScoredToken | None) -> tuple[Cell, Cell]:
    return (_shown(entry), entry["score"]) if entry else (None, None)
