"""Declare the columns of tables that list parameters: where a vector or a head is in the model, and its first words."""

from lexiscope.app.formats.table import SCORE, Column
from lexiscope.app.lists.first_words import FIRST_WORDS
from lexiscope.precompute.index.parameter_names import vector_name


def _data(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, audience="programs") for name in names)


WHERE = Column("where", get=vector_name, audience="people")
HEAD = Column(
    "where", "address", get=lambda row: f"L{row['layer']}H{row['head']}", page_heading="head", audience="people"
)
VECTOR_COLUMNS = (
    WHERE,
    *_data("layer", "index", "head", "subhead", "direction"),
)
HEAD_COLUMNS = (
    HEAD,
    *_data("layer", "head"),
)
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
