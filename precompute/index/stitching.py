"""Record the runs of `lexiscope stitch` in DATA/vs/A/B/stitching.json: a list with one run for each file of texts and
number of layers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lexiscope.precompute.errors import ShardDamaged
from lexiscope.precompute.files import open_regular
from lexiscope.precompute.shape import MOST_LAYERS

STITCHING = "stitching.json"
MOST_STITCHING_BYTES, MOST_RUNS = 1 << 20, 100  # limits, because pages show all of it

Count = Annotated[int, Field(ge=1, le=1 << 40)]
Name = Annotated[str, Field(max_length=255)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Measured(_Record):
    accuracy: float = Field(ge=0, le=1)  # share of next tokens, or of labels, that stand first
    loss: float  # mean of -ln p of the right token or label


class AfterLayer(Measured):
    layer: int = Field(ge=0)  # a layer of A: the state after it was stitched


def _one_after_the_other(layers: tuple[AfterLayer, ...]) -> tuple[AfterLayer, ...]:
    if [after.layer for after in layers] != [*range(len(layers))]:
        raise ValueError("layers are not 0, 1, 2, ...")
    return layers


ByLayer = Annotated[
    tuple[AfterLayer, ...], Field(min_length=1, max_length=MOST_LAYERS), AfterValidator(_one_after_the_other)
]


class WithoutKernel(_Record):
    """The control without a kernel: B is given states of A as they are, if both have the same d_model."""

    by_layer: ByLayer
    embedding: Measured


class StitchingRun(_Record):
    """One run of stitching: states of A after each of its layers go through the kernel, the last layers of B and B's
    head."""

    texts: Name  # the name of the file of texts
    sha256: Name  # the hash of that file
    last: Count  # how many layers of B ran
    measure: Literal["next", "label"]
    count: Count  # how many texts ran
    # Texts that the two tokenizers cut differently, or that have nothing to predict.
    skipped: int = Field(ge=0, le=1 << 40)
    predictions: Count  # next tokens, or labels
    length: Count  # tokens of a text that are read
    by_layer: ByLayer
    embedding: Measured  # the input of A's first layer, stitched
    own: Measured  # B by itself
    chance: Measured  # accuracy: always the most frequent token or label; loss: all equally likely
    identity: WithoutKernel | None = None  # None if d_model differs, or if A is B
    a_weights_sha256: Name
    b_weights_sha256: Name


_RUNS = TypeAdapter(Annotated[tuple[StitchingRun, ...], Field(max_length=MOST_RUNS)])


def read_runs(folder: Path) -> tuple[StitchingRun, ...]:
    """Read the runs in a comparison's folder; none if nothing was stitched. Raise ShardDamaged if the file is no such
    record."""
    path = folder / STITCHING
    try:
        with open_regular(path) as file:
            content = file.read(MOST_STITCHING_BYTES + 1)
        if len(content) > MOST_STITCHING_BYTES:
            raise ShardDamaged(
                f"{path} is longer than {MOST_STITCHING_BYTES} bytes. Remove it, and run `lexiscope stitch` again."
            )
        return _RUNS.validate_json(content)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ShardDamaged(f"{path} cannot be read ({error.strerror}).") from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "its beginning"
        raise ShardDamaged(f"{path} is damaged at {where}. Remove it, and run `lexiscope stitch` again.") from error


def dump_runs(runs: tuple[StitchingRun, ...]) -> bytes:
    return _RUNS.dump_json(runs, indent=1)
