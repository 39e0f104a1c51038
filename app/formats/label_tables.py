"""The table of what people said of a model's parameters."""

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.views.labels import LabelsView, ShownLabel


def _list_text(label: ShownLabel) -> str:
    """How long the list is that a label carries, for people."""
    if label.pairs is not None:
        return f"{len(label.pairs)} pairs"
    return f"{len(label.tokens)} tokens" if label.tokens is not None else ""


def _best(label: ShownLabel, count: str) -> int | None:
    """How much of the label's list is in the one of ours that has most of it."""
    return max((getattr(of, count) for of in label.in_ours or ()), default=None)


def _text(name: str) -> tuple[Column, Column]:
    """What somebody wrote: on one line for people; in CSV as text that no spreadsheet computes."""
    return (
        Column(name, get=lambda label: " ".join(getattr(label, name).split()), audience="people"),
        Column(name, get=lambda label: defused(getattr(label, name)), audience="programs"),
    )


COLUMNS = (
    Column("address", get=lambda label: label.address),
    *_text("title"),
    *_text("text"),
    *_text("source"),
    Column("url", get=lambda label: label.url),
    Column("list", get=_list_text, audience="people"),
    Column("pairs", get=lambda label: None if label.pairs is None else len(label.pairs), audience="programs"),
    Column("tokens", get=lambda label: None if label.tokens is None else len(label.tokens), audience="programs"),
    Column("in_ours", "number", get=lambda label: _best(label, "up_to_space"), heading="in ours"),
    Column("in_ours_exactly", "number", get=lambda label: _best(label, "exactly"), heading="exactly"),
    Column("file", get=lambda label: defused(label.file)),
    Column("entry", "number", get=lambda label: label.entry, audience="programs"),
)


def labels_tables(view: LabelsView) -> list[Table]:
    pages = f", page {view.page} of {view.pages}" if view.pages > 1 else ""
    return [Table(f"{view.model}, what people said of its parameters{pages}", COLUMNS, view.labels)]
