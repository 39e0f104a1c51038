"""Define the options of a build, and make the manifest that identifies its result."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lexiscope.precompute.errors import BuildError, NotFound
from lexiscope.precompute.files import sha256_of
from lexiscope.precompute.index.layout import PARTS, shard_size
from lexiscope.precompute.index.manifest import LARGEST_K, LARGEST_PAIRS, Manifest, Minus
from lexiscope.precompute.shape import LENSES, SIDES
from lexiscope.precompute.weights.difference import Difference, Parameters

USUAL_K, USUAL_PAIRS = 100, 500  # lengths of lists of a new index, unless others are asked for
LARGEST_SHARD = 8 << 30  # bytes: a layer is in memory as a whole while it is made


@dataclass(frozen=True)
class BuildOptions:
    k: int | None = None  # None: as in the index that is there, else USUAL_K
    pairs: int | None = None  # None: as in the index that is there, else USUAL_PAIRS; 0: none
    kinds: tuple[str, ...] | None = None  # None: as in the index that is there, else all
    lenses: tuple[str, ...] | None = None  # None: as in the index that is there, else all
    layers: tuple[int, ...] | None = None  # None: all
    force: bool = False
    device: str = "auto"
    threads: int | None = None  # None: as many as there are cores
    parts: tuple[str, ...] | None = None  # None: all


def wanted_layers(model: Parameters, options: BuildOptions) -> list[int]:
    n_layers = model.shape.n_layers
    layers = sorted(set(options.layers)) if options.layers is not None else list(range(n_layers))
    if wrong := [layer for layer in layers if not 0 <= layer < n_layers]:
        raise NotFound(f"layer {wrong[-1]}: {model.checkpoint.name} has layers 0 to {n_layers - 1}")
    return layers


def wanted_parts(options: BuildOptions) -> tuple[str, ...]:
    if wrong := [name for name in options.parts or () if name not in PARTS]:
        raise NotFound(f"part {wrong[0]!r}: the parts of an index are {', '.join(PARTS)}")
    return tuple(PARTS) if options.parts is None else options.parts


def identify(model: Parameters, weights_sha256: str, options: BuildOptions) -> Manifest:
    """Return the manifest of a build before it has any files."""
    checkpoint, shape = model.checkpoint, model.shape
    for name in options.kinds or ():
        if name not in shape.kinds:
            raise BuildError(f"--kinds {name}: the vectors of {checkpoint.name} are {', '.join(shape.kinds)}")
    kinds = tuple(kind for kind in shape.kinds if options.kinds is None or kind in options.kinds)
    pairs = USUAL_PAIRS if options.pairs is None else options.pairs
    return Manifest(
        model=checkpoint.name,
        source=checkpoint.source,
        revision=checkpoint.revision,
        weights_sha256=weights_sha256,
        tokenizer_sha256=sha256_of(model.tokenizer_file()),
        shape=shape,
        k=min(options.k or USUAL_K, shape.d_vocab, LARGEST_K),
        pairs=min(pairs, shape.d_vocab**2, LARGEST_PAIRS),
        lenses=tuple(lens for lens in LENSES if options.lenses is None or lens in options.lenses),
        kinds=None if kinds == shape.weight_kinds else kinds,
        minus=minus_of(model) if isinstance(model, Difference) else None,
    )


def minus_of(difference: Difference) -> Minus:
    base = difference.base.checkpoint
    return Minus(
        tuned=difference.tuned.checkpoint.name,
        model=base.name,
        source=base.source,
        revision=base.revision,
        weights_sha256=base.weights_hash(),
    )


def as_built(options: BuildOptions, current: Manifest | None, old: Mapping[str, Any]) -> BuildOptions:
    """Return the options, with those that the user left open taken from the index that exists, in this format or an
    older one."""
    built: dict[str, Any] = {}
    if current:
        stored = current.stored
        built = {"k": stored.k, "pairs": stored.pairs, "kinds": stored.kinds, "lenses": stored.lenses}
        if options.force and options.layers is None and current.kinds is None:
            del built["kinds"]  # nobody chose these kinds: an index that is built anew has directions, too
    else:
        built = {name: old[name] for name in ("k", "pairs") if type(old.get(name)) is int and old[name] >= 0}
        for name, known in (("kinds", SIDES), ("lenses", LENSES)):
            if isinstance(old.get(name), list):
                built[name] = tuple(one for one in known if one in old[name]) or None
    return replace(options, **{name: value for name, value in built.items() if getattr(options, name) is None})


def check_size(manifest: Manifest) -> None:
    """Raise BuildError if the file of a layer would be larger than it can be."""
    n_bytes, entries = shard_size(manifest.stored)
    if n_bytes > LARGEST_SHARD or entries > np.iinfo(np.uint32).max:
        raise BuildError(
            f"--k {manifest.k} and --pairs {manifest.pairs} make layers of up to {n_bytes / 1e9:.3g} GB, and one may "
            f"have {LARGEST_SHARD / 1e9:.3g} GB: ask for shorter lists"
        )
