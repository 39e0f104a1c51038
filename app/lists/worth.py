"""Say what the list of a vector is worth: how far its first token stands out beside those of random vectors, and
whether the vector acts on words at all; and what a neuron does with what it reads."""

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from lexiscope.app.lists.checks import finite
from lexiscope.precompute.errors import NotStored
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layer.lists import Chance, Moments
from lexiscope.precompute.index.layer.shard import Shard
from lexiscope.precompute.index.tensor_file import Array
from lexiscope.precompute.shape import DIRECTION_KINDS, SIDES

FAR = 1.5  # a z of so many times the line of chance is far above it
ALIGNED = 0.5  # two vectors of a neuron with a larger cosine, or smaller than minus this, belong together
# A vector may act through the final norm if it is among so many of its layer with the largest norms, and the variance
# of its cosines with the unembedding is so much smaller than the layer's median, which chance hardly ever gives.
LONGEST, FLATTEST = 0.05, 0.7

NEURON_PAIRS = ("key_value", "up_value", "key_up")  # in the order of the index
# In the order in which `classes_of` numbers them.
Class: TypeAlias = Literal[
    "strengthening", "conditional strengthening", "weakening", "conditional weakening", "proportional", "no clear class"
]
CLASSES: tuple[str, ...] = Class.__args__  # type: ignore[attr-defined]
CLASS: Any = Field(
    description="By cosines of more than 0.5 in size. `strengthening`: the neuron writes what it reads (of gated "
    "neurons: what up reads); `weakening`: against it; `conditional ...`: and the gate reads something else; "
    "`proportional`: it writes along the gate, as much as up says; `no clear class`: no cosine with value is so large"
)
AnyClass: TypeAlias = Annotated[Class | None, CLASS]
Cosines = TypedDict(
    "Cosines", {"key_value": float | None, "up_value": float | None, "key_up": float | None, "class": AnyClass}
)
COSINES: Any = Field(
    description="Between the neuron's vectors, with the gain of the norm in front folded into those that read; null "
    "where the index does not have them"
)
ABOVE: Any = Field(
    description="By kind, the share of vectors whose z 99 % of random vectors stay under; null where the index does "
    "not have them"
)
CLASS_SHARES: Any = Field(description="By class, the share of neurons; null where the index does not have them")
CHANCE: Any = Field(
    description="The z of first tokens that 95 and 99 % of random vectors of this kind stay under: of Gaussian ones or "
    "mixtures of a layer's own, whichever is higher; null where the index does not have it"
)


class ThroughNorm(TypedDict):
    """Numbers that tell that a vector may act through the final norm, so that its list means little."""

    variance: Annotated[float, Field(description="Of the cosine with the rows of the unembedding")]
    of_median: Annotated[float, Field(description="The variance over the median of the layer: below 0.7")]
    norm_rank: Annotated[int, Field(description="Of the norm in the layer, from the largest: among the first 5 %")]


def standing(z: float, chance: Chance) -> str:
    """Say where a z stands: that of the first token at the top or, if it is negative, at the bottom."""
    match chance.standing(abs(z)):
        case "near":
            return "as 1 to 5 % of random vectors reach"
        case "within":
            return "as random vectors reach"
    beyond = "beyond chance (−" if z < 0 else "above chance ("
    return f"{'far ' if abs(z) > FAR * chance.line99 else ''}{beyond}{chance.line99:.1f})"


def above_chance(index: Index, kind: str, lens: str, z: Array) -> Array:
    """Return flags of the z that 99 % of random vectors stay under; raise NotStored if that is not known."""
    if not (chance := index.chance(kind, lens)):
        raise _not_stored(index, f"what z random vectors reach, of {kind}")
    return np.nan_to_num(z, nan=-np.inf) > np.float32(chance.line99)


def known_z(index: Index, layer: int, kind: str, lens: str) -> Array:
    """Return z of the first token of every list of a kind, (n,); raise NotStored if that is not known."""
    if (z := index.all_z(layer, kind, lens)) is None:
        raise _not_stored(index, f"z of {kind} of layer {layer}")
    return z[:, 0]


def shares_above(index: Index, layer: int, lens: str) -> dict[str, float] | None:
    """Return by kind the share of a layer's vectors whose z is above the line of chance."""
    of_kinds = {kind: index.all_z(layer, kind, lens) for kind in index.stored.kinds if index.chance(kind, lens)}
    shares = {
        kind: float(above_chance(index, kind, lens, z[:, 0]).mean()) for kind, z in of_kinds.items() if z is not None
    }
    return shares or None


def class_shares(index: Index, layer: int) -> dict[str, float] | None:
    """Return by class the share of a layer's neurons."""
    if (cosines := index.stats(layer, "ff.cosines")) is None:
        return None
    classes = classes_of(index, cosines)
    return {name: float((classes == number).mean()) for number, name in enumerate(CLASSES)}


def through_norm(
    index: Index, shard: Shard, kind: str, row: int, moments: Moments | None, chance: Chance | None
) -> ThroughNorm | None:
    """Say why a vector may act through the final norm; None if nothing tells so, or if its list stands out."""
    if SIDES[kind] == "reads" or kind in DIRECTION_KINDS or not moments or not chance:  # directions have no length
        return None
    norms = shard.all_norms(kind)
    norm_rank = int((norms > norms[row]).sum()) + 1
    if norm_rank > LONGEST * len(norms) or max(moments["z"] or 0, -(moments["z_bottom"] or 0)) > chance.line99:
        return None
    if (variances := index.stats(shard.layer, f"{kind}.unembedding")) is None or np.isnan(variances[row]):
        return None
    variance, median = float(variances[row]), float(np.nanmedian(variances))
    if not variance < FLATTEST * median:
        return None
    return {"variance": variance, "of_median": variance / median, "norm_rank": norm_rank}


def classes_of(index: Index, cosines: Array) -> Array:
    """Return the numbers of the classes of neurons with these cosines, (n, 3): of key and value, up and value, key and
    up; −1 where they are not defined."""
    key, up = cosines[:, 0], cosines[:, int(index.shape.gated)]  # without a gate, the key is all that a neuron reads
    along, by_gate = np.abs(up) > ALIGNED, np.abs(key) > ALIGNED
    numbers = np.where(along, 2 * (up < 0) + ~by_gate, np.where(by_gate, 4, 5))
    return np.where(np.isnan(key + up), -1, numbers)


def of_class(index: Index, layer: int, name: str) -> Array:
    """Return flags of the neurons of a layer that have this class; raise NotStored if that is not known."""
    if (cosines := index.stats(layer, "ff.cosines")) is None:
        raise _not_stored(index, f"classes of neurons of layer {layer}")
    flags: Array = classes_of(index, cosines) == CLASSES.index(name)
    return flags


def cosines_as_data(index: Index, rows: Array) -> list[Cosines]:
    """Return rows of cosines (n, 3) as pages have them."""
    names = [CLASSES[number] if number >= 0 else None for number in classes_of(index, rows).tolist()]
    values = rows.astype(object)
    values[np.isnan(rows)] = None
    return [
        {"key_value": key, "up_value": up, "key_up": key_up, "class": name}
        for (key, up, key_up), name in zip(values.tolist(), names, strict=True)
    ]


def mismatched(index: Index, layer: int) -> dict[str, float]:
    """Return by cosine (`key_value`, ...) what size 99 % stay under if the two vectors are of different neurons."""
    sizes = index.stats(layer, "ff.mismatched")
    of_pairs = [] if sizes is None else sizes[:, 1].tolist()
    return {name: size for name, size in zip(NEURON_PAIRS, of_pairs, strict=False) if finite(size) is not None}


def _not_stored(index: Index, what: str) -> NotStored:
    return NotStored(f"{what}: not in this index of {index.manifest.model}. `{index.manifest.rebuild_command}` adds it")
