"""Show all that people wrote about a model's parameters, from the files of labels in the data folder."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from lexiscope.app.formats.csv_format import defused
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.checks import count_pages, page_slice
from lexiscope.app.lists.labels import ShownLabel, shown
from lexiscope.app.lists.view import ViewOfModel, of_index
from lexiscope.app.pages.page import Address, Arguments, ModelSite, Page, PageNumber

LABEL_ROWS = 100  # most labels on one page


class LabelsAt(Address):
    pattern = "labels"


class LabelsArguments(Arguments):
    page: PageNumber = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsView(ViewOfModel):
    page: int
    pages: int
    total: int
    labels: list[ShownLabel]
    faults: Annotated[
        tuple[str, ...],
        Field(description="What is wrong with files of labels, and labels of parameters that the model does not have"),
    ]

    def about(self) -> dict[str, Any]:
        return {"model": self.model}

    def tables(self) -> list[Table]:
        pages = f", page {self.page} of {self.pages}" if self.pages > 1 else ""
        return [Table(f"{self.model}, what people said of its parameters{pages}", COLUMNS, self.labels)]


def labels(site: ModelSite, at: LabelsAt, ask: LabelsArguments) -> LabelsView:  # noqa: ARG001
    """What people wrote about the model's parameters, from the files of labels in the data folder."""
    index, found = site.index, site.library.labels.of(site.index)
    page, rows = site.window(ask.page, LABEL_ROWS)
    return LabelsView(
        **of_index(index),
        page=page,
        pages=count_pages(len(found.labels), page, rows),
        total=len(found.labels),
        labels=[shown(index, filed) for filed in found.labels[page_slice(page, rows)]],
        faults=(*site.library.labels.errors(), *found.errors),
    )


def _list_text(label: ShownLabel) -> str:
    """Return a text for people that says how long the list in a label is."""
    if label.pairs is not None:
        return f"{len(label.pairs)} pairs"
    return f"{len(label.tokens)} tokens" if label.tokens is not None else ""


def _best(label: ShownLabel, count: str) -> int | None:
    """Return how many entries of the label's list are in the stored list that has most of them."""
    return max((getattr(of, count) for of in label.in_ours or ()), default=None)


def _text(name: str) -> tuple[Column, Column]:
    """Return two columns for a text that somebody wrote: for people on one line; in CSV as text that no spreadsheet
    computes as a formula."""
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

LABELS = Page(name="labels", title="Labels", at=LabelsAt, arguments=LabelsArguments, view=LabelsView, make=labels)
