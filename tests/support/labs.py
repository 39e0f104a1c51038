"""Make what `lexiscope lab` writes, for tests: by the job itself, or as plausible numbers in every field."""

import math
from pathlib import Path
from typing import Any

from lexiscope.app.weights import weights_of_index
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import Coverages, LabRecord, Similarities
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.lab.job import LabOptions, LabProgress, measure
from tests.support.builds import Listener

HOSTILE_TEXTS = '=<script>"&.txt'  # the name of a file


class LabListener(Listener, LabProgress):
    """Keep the messages of a measurement, and print nothing on the terminal."""


def quick_lab(folder: Path, listener: LabListener | None = None, **options: Any) -> LabRecord:
    """Measure the index in a folder."""
    index = Index.open(folder)
    return measure(index, lambda: weights_of_index(index), LabOptions(**options), listener or LabListener())


def plausible_lab(manifest: Manifest, **changes: Any) -> LabRecord:
    """Make a record of these weights, with a number in every field."""
    layers = range(manifest.shape.n_layers)

    def by_layer(fields: Any, size: float) -> dict[str, Any]:
        names = fields.model_fields
        return {name: [size * (1 + at) / (2 + at + layer) for layer in layers] for at, name in enumerate(names)}

    def of_lens(fields: Any, kinds: tuple[str, ...], size: float) -> dict[str, Any]:
        return {kind: by_layer(fields, size / (1 + at)) for at, kind in enumerate(kinds)}

    texts = {"name": HOSTILE_TEXTS, "sha256": "1" * 64, "count": 60, "length": 128, "positions": 7000}
    ks = [10, 50, 100, 200, 300, 500, 512, 1000, 1024]
    keep_k = {"k": ks, "samples": 300}
    keep_k |= {
        "transpose": [0.9 - 0.2 * math.exp(-k / 300) for k in ks],
        "pseudo": [-0.05 + k / 1100 for k in ks],
        "transpose_same": [0.95 - k / 4000 for k in ks],
        "pseudo_same": [0.3 + k / 2000 for k in ks],
    }
    compared, kinds = ("ff", "vo", "qk"), ("ff_key", "ff_value", "w_v", "w_o")
    parts = {
        "similarity": of_lens(Similarities, compared, 0.2)
        | {"lenses": {"cosine": of_lens(Similarities, compared, 0.3)}}
        | {"k": 100, "shuffles": 10, "seed": 0, "layers": [*layers]},
        "inverse": {"normal": keep_k, "ff_value": keep_k, "hidden": keep_k | {"texts": texts}, "seed": 0},
        "coverage": of_lens(Coverages, kinds, 0.2)
        | {"lenses": {"cosine": of_lens(Coverages, kinds, 0.1)}}
        | {"k": 100, "m": 10, "drawn": 300, "seed": 0, "layers": [*layers], "texts": texts},
    }
    record = LabRecord.of(manifest).model_dump() | parts | changes
    return LabRecord.model_validate(record)


def add_site_labs(data: Path, whole: str, real: str) -> None:
    """Add plausible measurements of one model of the fixture `site_data`, and real ones of another."""
    plausible_lab(Manifest.load(data / whole)).save(data / whole)
    quick_lab(data / real, only=("similarity",))
