"""Check that an index stores what is asked of it; otherwise raise NotStored, which says what was left out and how to
store it."""

from lexiscope.precompute.errors import NotFound, NotStored
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import DIRECTION_KINDS, LENSES, MATRICES

USUAL_PAIRS = 500  # entries of a list of pairs, unless a build is asked for others


def check_lens(index: Index, lens: str) -> None:
    if lens not in LENSES:
        raise NotFound(f"lens {lens!r}: there are {', '.join(LENSES)}")
    if lens not in index.stored.lenses:
        raise NotStored(why_not_stored(index, f"lens {lens}", _with_lens(index, lens)))


def check_kinds(index: Index, *kinds: str) -> None:
    """Raise NotStored unless the index stores at least one of these kinds of vectors or matrices, all of which the
    model has."""
    known = (*index.shape.kinds, *MATRICES)
    for kind in kinds:
        if kind not in known:
            raise NotFound(f"kind {kind!r}: there are {', '.join(known)}")
    if not any(is_stored(index, kind) for kind in kinds):
        raise NotStored(why_not_stored(index, _joined(kinds), _with_kinds(index, kinds)))


def is_stored(index: Index, kind: str) -> bool:
    return kind in index.stored.kinds or kind in index.stored.matrices


def kinds_not_stored(index: Index) -> tuple[str, ...]:
    """Return the kinds of vectors and matrices that the model has and the index does not."""
    return tuple(kind for kind in (*index.shape.kinds, *MATRICES) if not is_stored(index, kind))


def why_kinds_not_stored(index: Index, *kinds: str) -> str:
    """Say for people why none of these kinds of vectors or matrices is stored."""
    return why_not_stored(index, _joined(kinds), _with_kinds(index, kinds))


def why_not_stored(index: Index, what: str, option: str) -> str:
    manifest, options = index.manifest, index.stored.options
    built = f"which was built with {options}" if options else "which has no directions"
    command = " ".join([manifest.rebuild_command, *([option] if option else []), "--force"])
    return f"{what} of {manifest.model}: not stored in this index, {built}. `{command}` builds it anew, with {what}"


def _joined(kinds: tuple[str, ...]) -> str:
    names = ["the pairs of heads" if kind in MATRICES else kind for kind in kinds]
    return ", ".join(dict.fromkeys(names))


def _with_lens(index: Index, lens: str) -> str:
    return f"--lenses {','.join(name for name in LENSES if name == lens or name in index.stored.lenses)}"


def _with_kinds(index: Index, kinds: tuple[str, ...]) -> str:
    options = []
    if {*kinds} <= {*DIRECTION_KINDS} and index.stored.kinds == index.shape.weight_kinds:
        return ""  # they are stored unless a build leaves them out
    if any(kind not in (*index.stored.kinds, *MATRICES) for kind in kinds):
        wanted = (kind for kind in index.shape.kinds if kind in kinds or kind in index.stored.kinds)
        options.append(f"--kinds {','.join(wanted)}")
    if not index.stored.pairs and any(kind in MATRICES for kind in kinds):
        options.append(f"--pairs {USUAL_PAIRS}")
    return " ".join(options)
