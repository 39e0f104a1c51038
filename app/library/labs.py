"""What `lexiscope lab` measured of the models of a data folder. A record is read once as long as its file stays."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lexiscope.app.library.checks import for_visitors
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.files import Stamp, stamp_of
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import LAB, LabRecord

KEPT_RECORDS = 32


@dataclass(frozen=True)
class Lab:
    """What was measured of the very weights of an index; without a record, `fault` says why there is none, or is ""
    if nothing was measured."""

    record: LabRecord | None = None
    fault: str = ""


def lab_version(index: Index) -> str:
    """Return a text that changes whenever what was measured may be something else."""
    return str(stamp_of(index.folder / LAB))


def lab_of(index: Index) -> Lab:
    try:
        record = _read(index.folder, stamp_of(index.folder / LAB))
    except LexiscopeError as error:
        return Lab(fault=for_visitors(error, index.folder.parent))
    if record and not record.is_of(index.manifest):
        model, measured, ours = index.manifest.model, record.weights_sha256[:12], index.manifest.weights_sha256[:12]
        why = f"{model}/{LAB} was measured of other weights ({measured}) than this index is of ({ours})"
        return Lab(fault=f"{why}. `lexiscope lab {model}` measures anew.")
    return Lab(record)


@lru_cache(KEPT_RECORDS)
def _read(folder: Path, stamp: Stamp | None) -> LabRecord | None:
    """Read the record again when the stamp of its file is another one."""
    return LabRecord.load(folder) if stamp else None
