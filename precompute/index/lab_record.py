"""Record what `lexiscope lab` measured of a model in DATA/MODEL/lab.json, which has one part for each measurement, or
null."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lexiscope.precompute.errors import ShardDamaged
from lexiscope.precompute.files import open_regular, write_beside
from lexiscope.precompute.index.manifest import Manifest, Sha256
from lexiscope.precompute.shape import MOST_LAYERS

LAB = "lab.json"
MEASUREMENTS = ("similarity", "inverse", "coverage")
MOST_LAB_BYTES = 1 << 22  # a limit, because pages show all of it
MOST_KS = 100
LARGEST_SEED = (1 << 31) - 1  # numpy takes twice as many; seeds of shuffles are counted up from it

Count = Annotated[int, Field(ge=1, le=1 << 40)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Name = Annotated[str, Field(max_length=255)]
Share = Annotated[float, Field(ge=0, le=1)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Cosines = Annotated[tuple[Cosine, ...], Field(max_length=MOST_KS)]
Deviation = Annotated[float, Field(ge=0, le=1)]
Layers = Annotated[tuple[Annotated[int, Field(ge=0, lt=MOST_LAYERS)], ...], Field(max_length=MOST_LAYERS)]
ByLayer = Annotated[tuple[Share | None, ...], Field(min_length=1, max_length=MOST_LAYERS)]  # null: a layer not measured
SpreadByLayer = Annotated[tuple[Deviation | None, ...], Field(min_length=1, max_length=MOST_LAYERS)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class _ByLayer(_Part):
    """Lists that have a number for each layer."""

    @property
    def n_layers(self) -> int:
        return len(next(iter(self._lists())))

    def _lists(self) -> list[tuple[Any, ...]]:
        return [value for _, value in self if isinstance(value, tuple)]

    @model_validator(mode="after")
    def _equally_long(self) -> Self:
        if len({len(values) for values in self._lists()}) > 1:
            raise ValueError("lists have different numbers of layers")
        return self


class Similarities(_ByLayer):
    """Similarities of the pairs of vectors of each layer. In a shuffled pair, the first vector of one pair is with the
    second vector of another."""

    matched: ByLayer  # mean Sim_k of the top of the first with the top of the second
    shuffled: ByLayer  # mean of `matched` over all shuffles
    shuffled_low: ByLayer  # the smallest mean of a shuffle
    shuffled_high: ByLayer  # the largest mean of a shuffle
    matched_bottom: ByLayer  # mean Sim_k of the top of the first with the bottom of the second
    shuffled_bottom: ByLayer
    share_15: Annotated[
        ByLayer,
        Field(description="Share of pairs whose Sim_k at either end is at least 0.15, as pages of layers have it"),
    ]
    shuffled_15: ByLayer
    common_15: Annotated[
        ByLayer,
        Field(description="Share of pairs whose tops have at least 15 % of their k tokens in common: the paper's 5 %"),
    ]
    shuffled_common_15: ByLayer


class SimilaritiesOfLens(_Part):
    ff: Similarities | None = None  # ff_key with ff_value
    vo: Similarities | None = None  # w_v with w_o
    qk: Similarities | None = None  # w_q with w_k


class SimilarityPart(SimilaritiesOfLens):
    """The measurement of the paper's appendix B.1, figure 6; the fields of SimilaritiesOfLens are of the lens dot."""

    lenses: dict[Literal["cosine"], SimilaritiesOfLens] = {}
    k: Count  # tokens of a list that are compared
    shuffles: Count
    seed: Seed
    layers: Layers  # layers that were built when this was measured

    def of_lens(self, lens: str) -> SimilaritiesOfLens | None:
        return self if lens == "dot" else self.lenses.get("cosine")


class TextsUsed(_Part):
    """The texts that a model ran on."""

    name: Name  # the name of the file
    sha256: Sha256
    count: Count  # how many texts ran
    length: Count  # the most tokens of a text, special ones included
    positions: Count  # tokens of all texts together, without special ones


class KeepK(_Part):
    """The cosine of x · y and keep-k(xE) · keep-k(yE') over all pairs of a sample x and a sample y, where keep-k keeps
    the k largest entries of a vector."""

    k: Annotated[tuple[Count, ...], Field(min_length=1, max_length=MOST_KS)]
    transpose: Cosines  # E' is the transpose of E
    pseudo: Cosines  # E' is the pseudo-inverse of E
    transpose_same: Cosines | None = None  # the same if the x are also the y, so that each is also paired with itself
    pseudo_same: Cosines | None = None
    samples: Count  # how many x, and as many y

    @model_validator(mode="after")
    def _check(self) -> Self:
        scores = self.transpose, self.pseudo, self.transpose_same, self.pseudo_same
        if any(cosines is not None and len(cosines) != len(self.k) for cosines in scores):
            raise ValueError("lists have different lengths")
        if [*self.k] != sorted({*self.k}):
            raise ValueError("k does not rise")
        return self


class KeepKOfStates(KeepK):
    texts: TextsUsed


class InversePart(_Part):
    """The measurement of the paper's appendix A, figure 5."""

    normal: KeepK | None = None  # samples of N(0, 1)
    ff_value: KeepK | None = None
    hidden: KeepKOfStates | None = None  # null also without texts
    seed: Seed


class Coverages(_ByLayer):
    """Coverage R_k by layer: the mean over all positions; fields that end in `_sd` have the standard deviation of the
    means of texts."""

    own: ByLayer  # coverage of the state after the layer
    own_random: ByLayer  # coverage of the state after the layer at a position drawn from all
    last: ByLayer  # coverage of the state after the last layer
    last_random: ByLayer
    own_sd: SpreadByLayer
    own_random_sd: SpreadByLayer
    last_sd: SpreadByLayer
    last_random_sd: SpreadByLayer
    # The same as the paper counts, in top lists alone; null in records that are older.
    paper: ByLayer | None = None  # coverage of the state after the layer
    paper_random: ByLayer | None = None  # coverage of the state at a position and after a layer drawn from all
    paper_sd: SpreadByLayer | None = None
    paper_random_sd: SpreadByLayer | None = None


class CoveragesOfLens(_Part):
    ff_key: Coverages | None = None
    ff_value: Coverages | None = None
    w_v: Coverages | None = None
    w_o: Coverages | None = None


class CoveragePart(CoveragesOfLens):
    """The measurement of the paper's section 4.2 and appendix B.2, figures 2 and 7; the fields of CoveragesOfLens are
    of the lens dot."""

    lenses: dict[Literal["cosine"], CoveragesOfLens] = {}
    k: Count
    m: Count  # how many vectors count as active
    drawn: Count  # positions that random states were drawn from
    seed: Seed
    layers: Layers  # layers that were built when this was measured
    texts: TextsUsed

    def of_lens(self, lens: str) -> CoveragesOfLens | None:
        return self if lens == "dot" else self.lenses.get("cosine")


class LabRecord(_Part):
    format: Literal[1] = 1
    weights_sha256: Sha256  # as in the manifest
    base_sha256: Sha256 | None = None  # the base's weights, if this is a difference
    n_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)]
    similarity: SimilarityPart | None = None
    inverse: InversePart | None = None
    coverage: CoveragePart | None = None

    @model_validator(mode="after")
    def _all_layers(self) -> Self:
        for part in (self.similarity, self.coverage):
            for lens in (part, *part.lenses.values()) if part else ():
                of_kinds = (value for _, value in lens if isinstance(value, _ByLayer))
                if any(measured.n_layers != self.n_layers for measured in of_kinds):
                    raise ValueError("lists do not have a number for each layer")
            if part and ([*part.layers] != sorted({*part.layers}) or any(n >= self.n_layers for n in part.layers)):
                raise ValueError("the layers do not rise, or are more than there are")
        return self

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Return a record in which nothing is measured yet."""
        base = manifest.minus.weights_sha256 if manifest.minus else None
        return cls(weights_sha256=manifest.weights_sha256, base_sha256=base, n_layers=manifest.shape.n_layers)

    def is_of(self, manifest: Manifest) -> bool:
        """Return True if this was measured with the same weights from which an index was made; otherwise it must not be
        shown with that index."""
        return self.model_copy(update=dict.fromkeys(MEASUREMENTS)) == self.of(manifest)

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Read the record in an index's folder; None if nothing was measured. Raise ShardDamaged if the file is no
        record."""
        path, again = folder / LAB, f"Remove it, and run `lexiscope lab {folder.name}` again."
        try:
            with open_regular(path) as file:
                content = file.read(MOST_LAB_BYTES + 1)
            if len(content) > MOST_LAB_BYTES:
                raise ShardDamaged(f"{path} is longer than {MOST_LAB_BYTES} bytes. {again}")
            return cls.model_validate_json(content, strict=True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ShardDamaged(f"{path} cannot be read ({error.strerror}). {again}") from error
        except ValidationError as error:
            where = ".".join(str(part)[:40] for part in error.errors()[0]["loc"]) or "its beginning"
            raise ShardDamaged(f"{path} is damaged at {where}. {again}") from error

    def save(self, folder: Path) -> None:
        write_beside(folder / LAB, [self.model_dump_json(indent=1).encode()])
