"""Declare what manifests say of single files, and of the base of a difference. The types of the fields leave no room
for names and numbers that no build would write."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lexiscope.precompute.files import damaged, sha256_of, unreadable
from lexiscope.precompute.index.model_names import MODEL_NAME
from lexiscope.precompute.shape import HEAD_KINDS

LARGEST_SIZE = 1 << 24  # largest size in a shape: pages count up to it, so a hostile manifest must have none larger

PlainName = Annotated[str, Field(pattern=rf"\A{MODEL_NAME.pattern}\z")]  # no folders, nothing hidden
Sha256 = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
Number = Annotated[int, Field(ge=1, le=LARGEST_SIZE)]
# |tuned - base| / |base| of W_E, and of W_U if the base has one of its own
EmbeddingChange = dict[Literal["W_E", "W_U"], Annotated[float, Field(ge=0)]]


class StrictRecord(BaseModel):
    """A record that refuses fields it does not know, and values of another type than its fields have."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class FileEntry(StrictRecord):
    """A file; fields that a newer program wrote are kept as they are."""

    model_config = ConfigDict(extra="allow")

    file: PlainName
    bytes: Annotated[int, Field(gt=0, lt=1 << 48)]
    sha256: Sha256

    def check_sum(self, folder: Path) -> None:
        """Raise ShardDamaged if the file is not to the byte the one that was written."""
        path = folder / self.file
        try:
            sha256 = sha256_of(path)
        except OSError as error:
            raise unreadable(path, error) from error
        if sha256 != self.sha256:
            raise damaged(path, "is damaged: its contents do not have the checksum that the manifest records")


class Minus(StrictRecord):
    """The two models of a difference: the base is subtracted from the tuned model."""

    tuned: PlainName  # the name that an index of the tuned model has
    model: PlainName  # the name that an index of the base has
    source: str  # the argument that gets the base's weights again
    revision: str
    weights_sha256: Sha256


class ClassifierEntry(FileEntry):
    """The file of a classification head, and what its vectors are."""

    labels: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(min_length=1, max_length=1 << 16)]
    dense: Annotated[int, Field(ge=0, le=LARGEST_SIZE)] = 0  # vectors of the step before the labels; 0: there is none
    # Whether a base with such a head was subtracted; False in a difference: the tuned model's head is shown.
    subtracted: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """Return how many vectors there are, by kind."""
        counts = zip(HEAD_KINDS, (len(self.labels), self.dense), strict=True)
        return {kind: count for kind, count in counts if count}
