"""The tables of stitched models: what was measured by layer, and a sentence in both."""

from collections.abc import Iterator
from typing import Any

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.views.comparison import ComparisonView
from lexiscope.app.views.lengths import LIKELY_TOKENS

STITCHING_COLUMNS = (
    Column("texts", get=lambda row: defused(row["texts"])),
    Column("last"),
    Column("measure"),
    Column("state"),
    Column("accuracy", "number"),
    Column("loss", "number"),
    Column("accuracy_without", "number", heading="without the kernel"),
    Column("loss_without", "number", heading="its loss"),
)


def stitching_tables(view: ComparisonView) -> list[Table]:
    tables = []
    if view.stitching:
        rows = [row for run in view.stitching for row in _measured(run)]
        tables.append(Table(f"{view.a} stitched to {view.b}", STITCHING_COLUMNS, rows))
    if view.sentence:
        columns = (
            Column("token", "token", get=lambda position: position["token"]),
            Column("reads_a", "tokens", get=lambda position: position["a"], heading=view.a, count=LIKELY_TOKENS),
            Column("reads_b", "tokens", get=lambda position: position["b"], heading=view.b, count=LIKELY_TOKENS),
        )
        title = f"A sentence after layer {view.sentence['layer']} of {view.a}"
        tables.append(Table(title, columns, view.sentence["positions"]))
    return tables


def _measured(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """By the layer of A, then B by itself and chance."""
    states = [("embedding", run["embedding"]), *((f"layer {row['layer']}", row) for row in run["by_layer"])]
    control = run["identity"]
    rows = [control["embedding"], *control["by_layer"]] if control else []
    of_run = {name: run[name] for name in ("texts", "last", "measure")}
    for at, (state, row) in enumerate((*states, ("own", run["own"]), ("chance", run["chance"]))):
        itself = rows[at] if at < len(rows) else {"accuracy": None, "loss": None}
        without = {"accuracy_without": itself["accuracy"], "loss_without": itself["loss"]}
        yield {**of_run, "state": state, "accuracy": row["accuracy"], "loss": row["loss"], **without}
