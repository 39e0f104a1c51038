"""Show the paper's measurements of one model: similarity of lists, keep-k inverse, coverage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from lexiscope.app.formats.table import Column, Table, constant, csv_order
from lexiscope.app.html.line_chart import LineChart
from lexiscope.app.library.checks import for_visitors
from lexiscope.app.lists.view import PAGE_ONLY, ViewOfModel, of_index
from lexiscope.app.pages.lab.charts import (
    COVERING,
    SAMPLE_NAMES,
    TARGETS,
    coverage_charts,
    inverse_charts,
    measured,
    numbers_beside,
    samples,
    similarity_charts,
)
from lexiscope.app.pages.page import Address, Arguments, ModelSite, Page
from lexiscope.app.urls import FIGURE_FORMATS
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.files import Stamp, stamp_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import LAB as FILE
from lexiscope.precompute.index.lab_record import (
    CoveragePart,
    Coverages,
    InversePart,
    LabRecord,
    Similarities,
    SimilarityPart,
)
from lexiscope.precompute.paper.lists import printed_number

Figure = Literal["similarity", "inverse", "coverage"]
FIGURES: tuple[Figure, ...] = ("similarity", "inverse", "coverage")
KEPT_RECORDS = 32  # most records in memory; each stays as long as its file
COMPARED_VECTORS = {"ff": "ff_key with ff_value", "vo": "w_v with w_o", "qk": "w_q with w_k"}
KEEP_K = ("k", "transpose", "pseudo", "transpose_same", "pseudo_same")
HEADINGS = {
    "shuffled_low": "smallest", "shuffled_high": "largest", "matched_bottom": "with bottom",
    "shuffled_bottom": "shuffled with bottom", "share_15": "Sim ≥ .15", "shuffled_15": "shuffled ≥ .15",
    "common_15": "15% in common", "shuffled_common_15": "shuffled 15% in common", "own_random": "random",
    "last_random": "last, random", "paper": "as the paper counts", "paper_random": "random, as the paper counts",
    "paper_sd": "as the paper counts ±", "paper_random_sd": "random, as the paper counts ±",
    "own_sd": "own ±", "own_random_sd": "random ±", "last_sd": "last ±",
    "last_random_sd": "last, random ±", "pseudo": "pseudo-inverse",
    "transpose_same": "transpose, one sample", "pseudo_same": "pseudo-inverse, one sample",
}  # fmt: skip

NOT_MEASURED: Any = Field(description="null if it was not measured, or if another `figure` alone was asked for")


class LabAt(Address):
    pattern = "lab"


class LabArguments(Arguments):
    figure: Annotated[Figure | None, Field(description="One measurement alone; the others are then null")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabView(ViewOfModel):
    figure: Annotated[Figure | None, Field(description="If one measurement alone was asked for")]
    similarity: Annotated[SimilarityPart | None, NOT_MEASURED]
    inverse: Annotated[InversePart | None, NOT_MEASURED]
    coverage: Annotated[CoveragePart | None, NOT_MEASURED]
    fault: Annotated[str, Field(description='Why what was measured cannot be shown; "" if it can')]
    command: Annotated[str, PAGE_ONLY]  # the command that makes the measurements
    runs: Annotated[bool, PAGE_ONLY]  # whether the model can run on texts: a difference cannot

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Return the measurements that the page is about, even if they have not been made."""
        return (self.figure,) if self.figure else FIGURES

    def charts(self, figure: Figure) -> list[list[LineChart]]:
        """Return the charts of a measurement, row by row; none if it has not been made."""
        if figure == "similarity":
            return [similarity_charts(self.similarity)] if self.similarity else []
        if figure == "inverse":
            return [inverse_charts(self.inverse)] if self.inverse else []
        return [coverage_charts(self.coverage, target) for target in TARGETS] if self.coverage else []

    @property
    def lacks_paper_lines(self) -> bool:
        """Return True if coverage was measured before the numbers of top lists alone were."""
        of_kinds = [of for _, _, of in measured(self.coverage, COVERING)] if self.coverage else []
        return any(of.paper is None for of in of_kinds)

    def inverses(self) -> list[tuple[str, int, float, float]]:
        """Return for each kind of samples the paper's k, or else the last one measured, and how much of the products
        the transpose and the pseudo-inverse keep there."""
        wanted, rows = printed_number("keepk_k").value, []
        for sample, of in samples(self.inverse) if self.inverse else ():
            at = of.k.index(wanted) if wanted in of.k else len(of.k) - 1
            rows.append((SAMPLE_NAMES[sample], of.k[at], of.transpose[at], of.pseudo[at]))
        return rows

    def chart_rows(self) -> list[list[LineChart]]:
        """Return the rows of charts of all measurements, for a figure."""
        return [row for figure in FIGURES for row in self.charts(figure)]

    def numbers_beside(self, charts: Sequence[LineChart]) -> Table:
        return numbers_beside(charts)

    def about(self) -> dict[str, Any]:
        return {"model": self.model}

    def tables(self) -> list[Table]:
        first = csv_order("figure", "lens", "kind", "layer", "k")
        return [first, *(table for figure in FIGURES for table in self.numbers(figure))]

    def numbers(self, figure: Figure) -> list[Table]:
        """Return the tables of one measurement: a row for each layer, or for each k."""
        if figure == "similarity" and (similarity := self.similarity):
            return [
                _by_layer(f"Sim_{similarity.k} of {COMPARED_VECTORS[kind]}, lens {lens}", figure, lens, kind, of)
                for lens, kind, of in measured(similarity, COMPARED_VECTORS)
            ]
        if figure == "coverage" and (coverage := self.coverage):
            return [
                _by_layer(f"R_{coverage.k} of {kind}, m = {coverage.m}, lens {lens}", figure, lens, kind, of)
                for lens, kind, of in measured(coverage, COVERING)
            ]
        return [*_keep_k(self.inverse)] if figure == "inverse" and self.inverse else []


def lab(site: ModelSite, at: LabAt, ask: LabArguments) -> LabView:  # noqa: ARG001
    """The paper's measurements of this model, as `lexiscope lab` made them: how similar lists are, how well the
    transpose inverts the embedding, and how much of a state is covered by the active vectors. With `.svg` it is a
    figure of charts."""
    index, figure = site.index, ask.figure
    found = _lab_of(index)
    record = found.record or LabRecord.of(index.manifest)
    return LabView(
        **of_index(index),
        figure=figure,
        similarity=record.similarity if figure in (None, "similarity") else None,
        inverse=record.inverse if figure in (None, "inverse") else None,
        coverage=record.coverage if figure in (None, "coverage") else None,
        fault=found.fault,
        command=f"lexiscope lab {index.manifest.model}",
        runs=not index.stored.difference,
    )


@dataclass(frozen=True)
class _Lab:
    """What `lexiscope lab` measured on exactly the weights of an index. Without a record, `fault` says why there is
    none, or is "" if nothing was measured."""

    record: LabRecord | None = None
    fault: str = ""


def _version(index: Index) -> str:
    """Return a text that changes whenever the measurements may have changed."""
    return str(stamp_of(index.folder / FILE))


def _lab_of(index: Index) -> _Lab:
    try:
        record = _read(index.folder, stamp_of(index.folder / FILE))
    except LexiscopeError as error:
        return _Lab(fault=for_visitors(error, index.folder.parent))
    if record and not record.is_of(index.manifest):
        model, measured, ours = index.manifest.model, record.weights_sha256[:12], index.manifest.weights_sha256[:12]
        why = f"{model}/{FILE} was measured of other weights ({measured}) than this index is of ({ours})"
        return _Lab(fault=f"{why}. `lexiscope lab {model}` measures anew.")
    return _Lab(record)


@lru_cache(KEPT_RECORDS)
def _read(folder: Path, stamp: Stamp | None) -> LabRecord | None:
    """Return the record of measurements; None if its file does not exist. `stamp` changes with the file, so that a
    changed file is read again."""
    return LabRecord.load(folder) if stamp else None


def _keep_k(inverse: InversePart) -> Iterator[Table]:
    for sample, of in samples(inverse):
        names = [name for name in KEEP_K if getattr(of, name) is not None]
        columns = (constant("figure", "inverse"), constant("kind", sample), *map(_number, names))
        rows = [dict(zip(names, row, strict=True)) for row in zip(*(getattr(of, name) for name in names), strict=True)]
        yield Table(f"keep-k cosine of {of.samples} {sample} samples", columns, rows)


def _by_layer(title: str, figure: str, lens: str, kind: str, of: Similarities | Coverages) -> Table:
    says = (constant("figure", figure), constant("lens", lens), constant("kind", kind))
    names = [name for name in type(of).model_fields if getattr(of, name) is not None]
    return Table(title, (*says, Column("layer", "address"), *map(_number, names)), list(_rows(of, names)))


def _rows(of: BaseModel, names: list[str]) -> Iterator[dict[str, Any]]:
    columns = [getattr(of, name) for name in names]
    for layer, numbers in enumerate(zip(*columns, strict=True)):
        if any(number is not None for number in numbers):
            yield {"layer": layer, **dict(zip(names, numbers, strict=True))}


def _number(name: str) -> Column:
    if name == "k":
        return Column(name, "address", format=",")
    return Column(name, "number", heading=HEADINGS.get(name, ""), format=".4f")


LAB = Page(
    name="lab", title="Lab", at=LabAt, arguments=LabArguments, view=LabView, make=lab, formats=FIGURE_FORMATS,
    version=lambda site: _version(site.index),
)  # fmt: skip
