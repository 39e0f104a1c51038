"""The paper's measurements of one model: similarity of lists, keep-k inverse, coverage."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from lexiscope.app.library.labs import lab_of
from lexiscope.app.views.difference import minus_of
from lexiscope.app.views.tokens import PAGE_ONLY, ViewOfModel
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import CoveragePart, InversePart, LabRecord, SimilarityPart

Figure = Literal["similarity", "inverse", "coverage"]
NOT_MEASURED: Any = Field(description="null if it was not measured, or if another `figure` alone was asked for")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabView(ViewOfModel):
    figure: Annotated[Figure | None, Field(description="If one measurement alone was asked for")]
    similarity: Annotated[SimilarityPart | None, NOT_MEASURED]
    inverse: Annotated[InversePart | None, NOT_MEASURED]
    coverage: Annotated[CoveragePart | None, NOT_MEASURED]
    fault: Annotated[str, Field(description='Why what was measured cannot be shown; "" if it can')]
    command: Annotated[str, PAGE_ONLY]  # that measures
    runs: Annotated[bool, PAGE_ONLY]  # whether the model can run on texts: a difference cannot

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Those that the page is about, measured or not."""
        return (self.figure,) if self.figure else ("similarity", "inverse", "coverage")


def lab_view(index: Index, figure: Figure | None = None) -> LabView:
    lab = lab_of(index)
    record = lab.record or LabRecord.of(index.manifest)
    return LabView(
        model=index.manifest.model,
        build=index.manifest.build,
        minus=minus_of(index),
        figure=figure,
        similarity=record.similarity if figure in (None, "similarity") else None,
        inverse=record.inverse if figure in (None, "inverse") else None,
        coverage=record.coverage if figure in (None, "coverage") else None,
        fault=lab.fault,
        command=f"lexiscope lab {index.manifest.model}",
        runs=not index.stored.difference,
    )
