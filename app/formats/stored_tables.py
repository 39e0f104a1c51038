"""The tables of pages about many parameters: a layer, a model, all models, a token, a search."""

from collections.abc import Iterable, Sequence
from typing import Any

from app.formats.parameter_tables import SCORE
from app.formats.table import Column, Table, constant, csv_order
from app.views.home import HomeView
from app.views.layer import FIRST, LayerView
from app.views.model import ModelView
from app.views.parse_address import vector_name
from app.views.search import SearchView
from app.views.token import Role, TokenView
from app.views.token_text import visible
from app.views.tokens import Token
from app.views.worth_reading import HEAD_LENS, HEAD_PRESET, NeuronCard
from precompute.index.index import ranges
from precompute.index.stored import Stored

ROLES: dict[Role, str] = {
    "reads": "read", "writes": "write", "avoids": "avoid", "suppresses": "suppress",
    "positive": "turn positive on", "negative": "turn negative on",
}  # fmt: skip


LAYER_COLUMNS = (
    Column("neuron", "number", tip="neuron", sort="neuron"),
    Column("key", "tokens", count=FIRST, page_heading="key reads", tip="ff_key"),
    Column("value", "tokens", count=FIRST, page_heading="value writes", tip="ff_value"),
    Column("norm", "number", digits=2, tip="norm", sort="norm"),
    Column("coherence", "ratio", tip="coherence", sort="coherence"),
    Column("similarity", "number", tip="similarity", sort="similarity"),
)


# A layer, a model, all models


def layer_columns(stored: Stored) -> tuple[Column, ...]:
    """The columns of the page for people: those that the index has something for."""
    needed = {"key": "ff_key", "value": "ff_value", "norm": "ff_value", "coherence": "ff_value"}
    left_out = {name for name, kind in needed.items() if kind not in stored.kinds}
    left_out |= set() if stored.similarity else {"similarity"}
    return tuple(column for column in LAYER_COLUMNS if column.name not in left_out)


def layer_tables(view: LayerView) -> list[Table]:
    title = f"{view.model}, layer {view.layer}, page {view.page} of {view.pages} ({view.lens})"
    return [csv_order("neuron", "norm", "coherence", "similarity"), Table(title, LAYER_COLUMNS, view.rows)]


def model_tables(view: ModelView) -> list[Table]:
    layer, head, matrix = Column("layer", "number"), Column("head", "number"), Column("matrix")

    def neurons(title: str, number: str, cards: Sequence[NeuronCard]) -> Table:
        columns = (layer, Column("neuron", "number"), Column("number", "ratio", heading=number))
        title = f"{view.model}, {title} ({view.lens})"
        return Table(title, (*columns, Column("tokens", "tokens")), cards, "people")

    head_lens = view.heads[0]["lens"] if view.heads else HEAD_LENS
    heads = (layer, head, matrix, Column("number", "ratio", heading="coherence"), Column("pairs", "pairs"))
    pair = (Column("from", "token"), Column("to", "token"), SCORE)
    cells = [
        {"layer": row.layer, "matrix": name, **cell, **(cell["first"] or {"from": None, "to": None, "score": None})}
        for row in view.rows
        for name, of_matrix in (("vo", row.vo), ("qk", row.qk))
        for cell in of_matrix
    ]
    return [
        neurons("most coherent neurons", "coherence", view.neurons or ()),
        neurons("neurons whose key and value agree", "similarity", view.agreeing or ()),
        Table(f"{view.model}, most coherent heads ({head_lens}, {HEAD_PRESET})", heads, view.heads or (), "people"),
        Table("", (layer, matrix, head, Column("coherence", "ratio"), *pair), cells, "programs"),
    ]


def home_tables(view: HomeView) -> list[Table]:
    columns = (
        Column("model", get=lambda card: card.model),
        Column("architecture", get=lambda card: card.architecture),
        Column("n_layers", "number", get=lambda card: card.n_layers, heading="layers"),
        Column("layers", get=lambda card: ranges(card.layers), heading="ready"),
        Column("bytes", "number", get=lambda card: card.bytes),
        Column("revision", get=lambda card: card.revision, audience="programs"),
        Column("origin", get=lambda card: card.origin, audience="programs"),
        Column("name", get=lambda card: card.name, audience="programs"),
    )
    return [Table("Models", columns, view.models)]


# A token, a search


def _data(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, audience="programs") for name in names)


VECTOR_COLUMNS = (Column("where", get=vector_name, audience="people"), *_data("layer", "index", "head", "subhead"))
HEAD_COLUMNS = (
    Column("where", get=lambda row: f"L{row['layer']}H{row['head']}", audience="people"),
    *_data("layer", "head"),
)
PLACE_IN_LIST = (Column("end"), Column("rank", "number"), SCORE)


def token_tables(view: TokenView) -> list[Table]:
    name = f"{view.model}, token {view.token['id']} {visible(view.token['token'])}"
    listing = (*_data("kind"), *VECTOR_COLUMNS, Column("rank", "number"), SCORE)
    other = Column("other", "token")
    mapped = (
        constant("role", "maps"), *HEAD_COLUMNS, Column("kind", get=lambda pair: pair["matrix"], heading="matrix"),
        Column("side"), other, *PLACE_IN_LIST,
    )  # fmt: skip
    return [
        csv_order("role", "end", "kind", "layer", "index", "head", "subhead", "rank", "score", "side", other),
        *(
            Table(
                f"{name}: {role.kind} that {ROLES[role.role]} it ({view.lens})",
                (constant("role", role.role), constant("end", role.end), *listing),
                role.places,
                says_nothing_of=("preset",),
            )
            for role in view.roles
            if role.places
        ),
        Table(f"{name}: heads that map it ({view.lens}, {view.preset})", mapped, view.pairs or ()),
    ]


def search_tables(view: SearchView) -> list[Table]:
    first, second = (
        Column("from", "token", heading="reads or query"),
        Column("to", "token", heading="writes or key"),
    )
    by_word = [column for at in range(len(view.words)) for column in _of_word(at)]
    groups = (
        Column("match", get=lambda group: group.match),
        Column("word", get=lambda group: visible(group.surface)),
        Column("tokens", "tokens", get=lambda group: group.tokens),
    )
    matches = (
        *VECTOR_COLUMNS, Column("kind"), Column("end"), *by_word,
        Column("ranks", get=lambda match: ", ".join(map(str, match["ranks"])), audience="people"),
        Column("tokens", "tokens", audience="people"),
    )  # fmt: skip
    pairs = (
        *HEAD_COLUMNS, Column("kind", get=lambda pair: pair["matrix"], heading="matrix"), first, second,
        Column("end"), Column("preset"), Column("rank", "number"), SCORE,
    )  # fmt: skip
    order: tuple[Column | str, ...] = (
        "kind", "layer", "index", "head", "subhead", "end", *by_word, "preset", "rank", first, second, "score",
    )  # fmt: skip
    tables = [csv_order(*order), Table(f"{view.model}, tokens like {view.q}", groups, view.tokens, "people")]
    if view.matches:
        title = f"{view.model}, parameters that list {view.q} ({view.lens})"
        tables.append(Table(title, matches, view.matches))
    if view.pairs:
        tables.append(Table(f"{view.model}, heads that pair {view.q} ({view.lens})", pairs, view.pairs))
    return tables


def _of_word(at: int) -> Iterable[Column]:
    """The rank and the token of one word of a search, in CSV."""

    def token(match: Any) -> Token:
        tokens: list[Token] = match["tokens"]
        return tokens[at]

    yield Column(f"rank_{at + 1}", get=lambda match: match["ranks"][at], audience="programs")
    yield Column(f"token_{at + 1}", "token", get=token, audience="programs")
