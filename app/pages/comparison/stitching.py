"""Make a table of stitched models: how well the last layers of B work on states of A."""

from collections.abc import Iterator, Sequence
from typing import Any

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.html.numbers import percent

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


def stitching_table(a: str, b: str, runs: Sequence[dict[str, Any]]) -> Table:
    return Table(f"{a} stitched to {b}", STITCHING_COLUMNS, [row for run in runs for row in _measured(run)])


def run_table(a: str, b: str, run: dict[str, Any]) -> Table:
    """Make the table of one stitched run for a page: a row for each state that B was given, with the result without the
    kernel beside it if that was measured."""
    columns = [Column("state", "address", heading=f"state of {a}"), _share("accuracy"), Column("loss", "number")]
    if run["identity"]:
        columns.append(_share("accuracy_without", "without the kernel"))
        columns.append(Column("loss_without", "number", heading="its loss"))
    names = {"embedding": "embedding", "own": f"{b} by itself", "chance": "chance"}
    rows = [{**row, "state": names.get(row["state"], f"after {row['state']}")} for row in _measured(run)]
    return Table("", tuple(columns), rows)


def _share(name: str, heading: str = "") -> Column:
    return Column(name, get=lambda row: "–" if row[name] is None else percent(row[name]), heading=heading, css="n")


def _measured(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for A's embedding and for each layer of A, whose states B was given, then for B by itself and for
    chance."""
    states = [("embedding", run["embedding"]), *((f"layer {row['layer']}", row) for row in run["by_layer"])]
    control = run["identity"]
    rows = [control["embedding"], *control["by_layer"]] if control else []
    of_run = {name: run[name] for name in ("texts", "last", "measure")}
    for at, (state, row) in enumerate((*states, ("own", run["own"]), ("chance", run["chance"]))):
        itself = rows[at] if at < len(rows) else {"accuracy": None, "loss": None}
        without = {"accuracy_without": itself["accuracy"], "loss_without": itself["loss"]}
        yield {**of_run, "state": state, "accuracy": row["accuracy"], "loss": row["loss"], **without}
