"""Record where an index was pulled from: DATA/MODEL/pulled.json, so that a stopped pull continues at the same commit,
whatever was pushed meanwhile."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lexiscope.precompute.files import open_regular, write_beside

PULLED = "pulled.json"
_MOST_BYTES = 1 << 16


class PulledRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    # The argument of `lexiscope pull`: owner/name, an address or a folder.
    asked: Annotated[str, Field(max_length=4096)]
    revision: Annotated[str, Field(max_length=4096)]  # the argument of --revision, or ""
    commit: Annotated[str, Field(pattern=r"\A([0-9a-f]{40})?\z")]  # the commit of a repository; "" elsewhere
    build: Annotated[str, Field(pattern=r"\A[0-9a-f]{16}\z")]  # as in the manifest
    complete: bool  # whether all that was asked for has arrived

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read the record in an index's folder; None if the index was not pulled, or if the record is damaged."""
        try:
            with open_regular(folder / PULLED) as file:
                return cls.model_validate_json(file.read(_MOST_BYTES))
        except (OSError, ValidationError):
            return None

    def save(self, folder: Path) -> None:
        write_beside(folder / PULLED, [self.model_dump_json(indent=1).encode() + b"\n"])

    @staticmethod
    def forget(folder: Path) -> None:
        (folder / PULLED).unlink(missing_ok=True)


def unfinished_commit(data: Path, asked: str, revision: str) -> str | None:
    """Return the commit at which the same pull was begun and not finished, if there is one in this data folder."""
    try:
        folders = [path for path in data.iterdir() if path.is_dir()]
    except OSError:
        return None
    for folder in sorted(folders):
        record = PulledRecord.load(folder)
        if record and (record.asked, record.revision, record.complete) == (asked, revision, False) and record.commit:
            return record.commit
    return None
