"""The tables of pages about many parameters: a layer, a model, all models, a token, a search."""

from collections.abc import Iterable, Sequence

from lexiscope.app.formats.difference_tables import model_change_tables
from lexiscope.app.formats.table import SCORE, Column, Table
from lexiscope.app.library.library import ModelCard
from lexiscope.app.views.first_words import FIRST as FIRST_WORDS
from lexiscope.app.views.home import HomeView
from lexiscope.app.views.model import ModelView
from lexiscope.app.views.worth_reading import HEAD_LENS, HEAD_PRESET, NeuronCard
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.index.parameter_names import vector_name

# A model, all models


def model_tables(view: ModelView) -> list[Table]:
    layer, head, matrix = Column("layer", "number"), Column("head", "number"), Column("matrix")

    def neurons(title: str, number: str, cards: Sequence[NeuronCard], *more: Column) -> Table:
        columns = (layer, Column("neuron", "number"), Column("number", "ratio", heading=number), *more)
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
    if view.minus:
        return model_change_tables(view, head_lens, cells)
    return [
        neurons("most coherent neurons", "coherence", view.neurons or ()),
        neurons("neurons whose key and value agree", "similarity", view.agreeing or (), Column("end")),
        Table(f"{view.model}, most coherent heads ({head_lens}, {HEAD_PRESET})", heads, view.heads or (), "people"),
        Table("", (layer, matrix, head, Column("coherence", "ratio"), *pair), cells, "programs"),
    ]


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


def home_tables(view: HomeView) -> list[Table]:
    compared = (
        Column("a", get=lambda card: card.a),
        Column("b", get=lambda card: card.b),
        Column("tokens", "number", get=lambda card: card.tokens, heading="common tokens"),
        Column("kinds", get=lambda card: ", ".join(card.kinds)),
    )
    tables = [models_table(view.models)]
    if view.comparisons:
        tables.append(Table("Comparisons", compared, view.comparisons, "people"))
    return tables


# A token, a search


def _data(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, audience="programs") for name in names)


VECTOR_COLUMNS = (
    Column("where", get=vector_name, audience="people"),
    *_data("layer", "index", "head", "subhead", "direction"),
)
HEAD_COLUMNS = (
    Column("where", get=lambda row: f"L{row['layer']}H{row['head']}", audience="people"),
    *_data("layer", "head"),
)
PLACE_IN_LIST = (Column("end"), Column("rank", "number"), SCORE)
FIRST_TOKENS = Column("first", "tokens", heading="first tokens of its list", count=FIRST_WORDS)
FIRST_PAIR = (
    Column(
        "first",
        "pairs",
        get=lambda row: [row["first"]] if row["first"] else None,
        heading="the head's first words",
        audience="people",
    ),
    Column("first_from", "token", get=lambda row: (row["first"] or {}).get("from"), audience="programs"),
    Column("first_to", "token", get=lambda row: (row["first"] or {}).get("to"), audience="programs"),
)
