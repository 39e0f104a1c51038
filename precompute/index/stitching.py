"""Runs of stitching: DATA/vs/A/B/stitching.json, a list with one run for each file of texts and number of layers."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lexiscope.precompute.errors import ShardDamaged
from lexiscope.precompute.files import open_regular

STITCHING = "stitching.json"
MOST_BYTES, MOST_RUNS = 1 << 20, 100  # pages show all of it
MOST_LAYERS = 1 << 12

Count = Annotated[int, Field(ge=1, le=1 << 40)]
Name = Annotated[str, Field(max_length=255)]


class Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    accuracy: float = Field(ge=0, le=1)  # share of next tokens, or of labels, that stand first
    loss: float  # mean of -ln p of the right one


class AfterLayer(Measured):
    layer: int = Field(ge=0)  # of A: its state after this layer was stitched


def _one_after_the_other(layers: tuple[AfterLayer, ...]) -> tuple[AfterLayer, ...]:
    if [after.layer for after in layers] != [*range(len(layers))]:
        raise ValueError("layers are not 0, 1, 2, ...")
    return layers


ByLayer = Annotated[
    tuple[AfterLayer, ...], Field(min_length=1, max_length=MOST_LAYERS), AfterValidator(_one_after_the_other)
]


class WithoutKernel(BaseModel):
    """The control: states of A as they are given to B, where both have one d_model."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    by_layer: ByLayer
    embedding: Measured


class StitchingRun(BaseModel):
    """States of A after each of its layers, through the kernel and the last layers of B with B's head."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    texts: Name  # the file's name
    sha256: Name  # of the file
    last: Count  # layers of B that ran
    measure: Literal["next", "label"]
    count: Count  # texts that ran
    skipped: int = Field(
        ge=0, le=1 << 40
    )  # texts that the two tokenizers cut differently, or that have nothing to predict
    predictions: Count  # next tokens, or labels
    length: Count  # tokens of a text that are read
    by_layer: ByLayer
    embedding: Measured  # what A's first layer reads, stitched
    own: Measured  # B by itself
    chance: Measured  # accuracy: always the most frequent token or label; loss: all equally likely
    identity: WithoutKernel | None = None  # None where d_model differs, or where A is B
    a_weights_sha256: Name
    b_weights_sha256: Name


_RUNS = TypeAdapter(Annotated[tuple[StitchingRun, ...], Field(max_length=MOST_RUNS)])


def read_runs(folder: Path) -> tuple[StitchingRun, ...]:
    """Of a comparison's folder; none where nothing was stitched. ShardDamaged for what is no such file."""
    path = folder / STITCHING
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ShardDamaged(
                f"{path} is longer than {MOST_BYTES} bytes. Remove it, and run `lexiscope stitch` again."
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
