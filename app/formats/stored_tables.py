"""Declare the columns of tables that list parameters: where a vector or a head is in the model, and its first words."""

from collections.abc import Sequence

from lexiscope.app.formats.table import SCORE, Column, Table
from lexiscope.app.lists.first_words import FIRST_WORDS
from lexiscope.app.lists.stored_transitions import ListedTransition
from lexiscope.precompute.index.parameter_names import vector_name


def _data(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, audience="programs") for name in names)


WHERE = Column("where", get=vector_name, audience="people")
HEAD = Column(
    "where", "address", get=lambda row: f"L{row['layer']}H{row['head']}", page_heading="head", audience="people"
)
VECTOR_COLUMNS = (WHERE, *_data("layer", "index", "head", "subhead", "direction"))
HEAD_COLUMNS = (HEAD, *_data("layer", "head"))
PLACE_IN_LIST = (Column("end"), Column("rank", "number"), SCORE)
FIRST_TOKENS = Column(
    "first", "tokens", heading="first tokens of its list", page_heading="its first tokens", count=FIRST_WORDS
)
FIRST_PAIR = (
    Column(
        "first",
        "pairs",
        get=lambda row: [row["first"]] if row["first"] else None,
        heading="the head's first words",
        page_heading="the head’s first words",
        tip="first-pair",
        audience="people",
    ),
    Column("first_from", "token", get=lambda row: (row["first"] or {}).get("from"), audience="programs"),
    Column("first_to", "token", get=lambda row: (row["first"] or {}).get("to"), audience="programs"),
)
LISTED_TRANSITIONS = (
    Column("where", "address", get=lambda row: f"L{row['layer']}N{row['neuron']}", heading="neuron"),
    Column("reads", "token", get=lambda row: row["tokens"][0]),
    Column("rank in its key", "number", get=lambda row: row["ranks"][0]),
    Column("lists", "token", get=lambda row: row["tokens"][1], page_heading="its value lists"),
    Column("rank in its value", get=lambda row: f"{row['ranks'][1]}{', bottom' if row['end'] == 'bottom' else ''}"),
)


def listed_neurons(model: str, rows: Sequence[ListedTransition] | None) -> Table:
    """Make the table, for people, of the neurons whose stored lists hold both words of a pair."""
    return Table(f"{model}, neurons whose stored lists hold the pair", LISTED_TRANSITIONS, rows or (), "people")
