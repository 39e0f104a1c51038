"""The tables of the paper's measurements: a row for each layer, or for each k."""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from pydantic import BaseModel

from lexiscope.app.formats.table import Column, Table, constant, csv_order
from lexiscope.app.views.lab import LabView
from lexiscope.precompute.index.lab_record import CoveragePart, Coverages, Similarities, SimilarityPart

LENSES = ("dot", "cosine")
COMPARED = {"ff": "ff_key with ff_value", "vo": "w_v with w_o", "qk": "w_q with w_k"}
COVERING = ("ff_key", "ff_value", "w_v", "w_o")
KEEP_K = ("k", "transpose", "pseudo", "transpose_same", "pseudo_same")
SAMPLES = ("normal", "ff_value", "hidden")
HEADINGS = {
    "shuffled_low": "smallest", "shuffled_high": "largest", "matched_bottom": "with bottom",
    "shuffled_bottom": "shuffled with bottom", "share_15": "Sim ≥ .15", "shuffled_15": "shuffled ≥ .15",
    "common_15": "15% in common", "shuffled_common_15": "shuffled 15% in common", "own_random": "random",
    "last_random": "last, random", "own_sd": "own ±", "own_random_sd": "random ±", "last_sd": "last ±",
    "last_random_sd": "last, random ±", "pseudo": "pseudo-inverse",
    "transpose_same": "transpose, one sample", "pseudo_same": "pseudo-inverse, one sample",
}  # fmt: skip


def lab_tables(view: LabView) -> list[Table]:
    first = csv_order("figure", "lens", "kind", "layer", "k")
    return [first, *similarity_tables(view), *inverse_tables(view), *coverage_tables(view)]


def similarity_tables(view: LabView) -> list[Table]:
    if (similarity := view.similarity) is None:
        return []
    return [
        _by_layer(f"Sim_{similarity.k} of {COMPARED[kind]}, lens {lens}", "similarity", lens, kind, of)
        for lens, kind, of in _measured(similarity, COMPARED)
    ]


def coverage_tables(view: LabView) -> list[Table]:
    if (coverage := view.coverage) is None:
        return []
    return [
        _by_layer(f"R_{coverage.k} of {kind}, m = {coverage.m}, lens {lens}", "coverage", lens, kind, of)
        for lens, kind, of in _measured(coverage, COVERING)
    ]


def inverse_tables(view: LabView) -> list[Table]:
    tables = []
    for sample in SAMPLES:
        if of := getattr(view.inverse, sample, None):
            says = (constant("figure", "inverse"), constant("kind", sample))
            names = [name for name in KEEP_K if getattr(of, name) is not None]
            columns = (*says, *map(_number, names))
            measured = zip(*(getattr(of, name) for name in names), strict=True)
            rows = [dict(zip(names, row, strict=True)) for row in measured]
            tables.append(Table(f"keep-k cosine of {of.samples} {sample} samples", columns, rows))
    return tables


def _measured(measurement: SimilarityPart | CoveragePart, kinds: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
    """Lens, kind and what was measured of them."""
    for lens, kind in product(LENSES, kinds):
        if of := getattr(measurement.of_lens(lens), kind, None):
            yield lens, kind, of


def _by_layer(title: str, figure: str, lens: str, kind: str, of: Similarities | Coverages) -> Table:
    says = (constant("figure", figure), constant("lens", lens), constant("kind", kind))
    names = list(type(of).model_fields)
    return Table(title, (*says, Column("layer", "number"), *map(_number, names)), list(_rows(of, names)))


def _rows(of: BaseModel, names: list[str]) -> Iterator[dict[str, Any]]:
    columns = [getattr(of, name) for name in names]
    for layer, numbers in enumerate(zip(*columns, strict=True)):
        if any(number is not None for number in numbers):
            yield {"layer": layer, **dict(zip(names, numbers, strict=True))}


def _number(name: str) -> Column:
    return Column(name, "number", heading=HEADINGS.get(name, ""))
