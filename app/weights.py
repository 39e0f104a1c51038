"""Find the weights of a model, or of the difference of two models: by the name that a user gives, or by an index, which
records what it was made from."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lexiscope.app.urls import is_reserved
from lexiscope.precompute.errors import BadWeights, BuildError, IndexFault, IndexMissing, WeightsError

if TYPE_CHECKING:
    from lexiscope.precompute.index.index import Index
    from lexiscope.precompute.index.manifest import Manifest
    from lexiscope.precompute.live.engine import Engine
    from lexiscope.precompute.shape import Shape
    from lexiscope.precompute.weights.checkpoint import Checkpoint
    from lexiscope.precompute.weights.difference import Difference, Parameters

CACHE = ".cache"  # name of the cache folder in the data folder


def find_weights(asked: str, data: Path, revision: str | None = None) -> "Checkpoint | Difference":
    """Return the weights that a user names: by a source (Hub id, folder or file), or by the name of an index, which
    records its source.

    A Hub model that is already built stays at its commit, whatever the Hub has today, unless another revision is asked
    for.
    """
    from lexiscope.precompute.weights.sources import ALIASES

    cache = data / CACHE
    try:
        built = _manifest_of(asked, data)
    except IndexFault as damage:
        try:
            return _resolve(asked, revision, cache)
        except WeightsError as error:
            raise type(damage)(
                f"{damage}, with the folder, file or Hub id it was made from: {asked!r} alone does not lead to the "
                f"weights ({error})"
            ) from None
    if built is None:
        return _resolve(asked, revision, cache)
    is_folder = (Path(asked).expanduser() / "config.json").is_file()
    means_index = asked == built.model and not is_folder
    if means_index and built.minus:
        return _difference_of(built, cache, revision)
    if built.source == ALIASES.get(asked, asked) or means_index:
        return _resolve(built.source, revision or built.revision, cache)
    return _resolve(asked, revision, cache)


def find_checkpoint(asked: str, data: Path, revision: str | None = None) -> "Checkpoint":
    """Return the weights of one model that a user names; raise WeightsError if the name is that of a difference of two
    models."""
    from lexiscope.precompute.weights.difference import Difference

    weights = find_weights(asked, data, revision)
    if isinstance(weights, Difference):
        names = " or ".join(model.checkpoint.name for model in (weights.tuned, weights.base))
        raise WeightsError(f"{asked} is the difference of two models: give a model, such as {names}")
    return weights


def find_difference(
    tuned: str, base: str, data: Path, name: str | None = None, revision: str | None = None
) -> "Difference":
    """Return the difference of two models that a user names; `revision` is that of the tuned model. Hub models stay at
    the commits from which the difference was already built."""
    from lexiscope.precompute.rebuild_command import difference_name
    from lexiscope.precompute.weights.architectures import describe
    from lexiscope.precompute.weights.difference import Difference

    if name is not None:
        _check_name(name)
    checkpoints = [find_checkpoint(tuned, data, revision), find_checkpoint(base, data)]
    name = name or difference_name(*(checkpoint.name for checkpoint in checkpoints))
    with suppress(IndexFault):  # ignored here, because the build itself reports errors of an index
        if (built := _manifest_of(name, data)) and built.minus:
            pinned = (built.source, revision or built.revision), (built.minus.source, built.minus.revision)
            for at, (source, commit) in enumerate(pinned):
                if commit and checkpoints[at].source == source and checkpoints[at].revision != commit:
                    checkpoints[at] = _resolve(source, commit, data / CACHE)
    tuned_model, base_model = map(describe, checkpoints)
    return Difference(tuned_model, base_model, name)


def weights_of_index(index: "Index") -> "Parameters":
    """Return the model, or the difference of two models, that an index was made from; raise BadWeights if the hash of
    the weights is another."""
    from lexiscope.precompute.weights.architectures import describe

    manifest, cache = index.manifest, index.folder.parent / CACHE
    if manifest.minus:
        difference = _difference_of(manifest, cache)
        _check(index, difference.base.checkpoint, difference.shape, manifest.minus.weights_sha256)
        _check(index, difference.checkpoint, difference.shape, manifest.weights_sha256)
        return difference
    model = describe(_resolve(manifest.source, manifest.revision, cache))
    _check(index, model.checkpoint, model.shape, manifest.weights_sha256)
    return model


def load_engine(index: "Index", device: str = "auto") -> "Engine":
    """Load the model, or the difference of two models, that an index was made from, so that it answers asks as a worker
    does."""
    from lexiscope.precompute.live.engine import Engine
    from lexiscope.precompute.weights.difference import Difference

    weights = weights_of_index(index)
    return Engine.load(weights if isinstance(weights, Difference) else weights.checkpoint, device)


def _check(index: "Index", checkpoint: "Checkpoint", shape: "Shape", weights_sha256: str) -> None:
    """Raise BadWeights unless the index was made from these weights."""
    difference = "another model" if shape.identity() != index.manifest.shape.identity() else ""
    if not difference and checkpoint.weights_hash() != weights_sha256:
        difference = "other weights"
    if difference:
        raise BadWeights(
            f"{checkpoint.source} holds {difference} than the index {index.folder} was made from: put that back, or "
            f"rebuild the index: `lexiscope precompute {index.manifest.model} --force`"
        )


def _difference_of(manifest: "Manifest", cache: Path, revision: str | None = None) -> "Difference":
    """Return the difference of two models that a manifest describes; `revision` is that of the tuned model, if another
    one is wanted than was built."""
    from lexiscope.precompute.weights.architectures import describe
    from lexiscope.precompute.weights.difference import Difference

    assert manifest.minus
    tuned = _resolve(manifest.source, revision or manifest.revision, cache)
    base = _resolve(manifest.minus.source, manifest.minus.revision, cache)
    return Difference(describe(tuned), describe(base), manifest.model)


def _check_name(name: str) -> None:
    from lexiscope.precompute.index.origin import LONGEST_NAME, MODEL_NAME, PUBLISHED

    if not MODEL_NAME.fullmatch(name) or len(name) > LONGEST_NAME or is_reserved(name) or name in PUBLISHED:
        raise BuildError(
            f"--name {name}: give one of at most {LONGEST_NAME} letters, digits, dots, dashes and underscores, the "
            "first a letter or a digit, that no page and no model of Lexiscope's own has"
        )


def _resolve(source: str, revision: str | None, cache: Path) -> "Checkpoint":
    """Return the checkpoint of a source; a model whose page would have the address of another page gets another
    name."""
    from lexiscope.precompute.weights.sources import resolve

    checkpoint = resolve(source, revision=revision or None, cache=cache)
    return replace(checkpoint, name=f"{checkpoint.name[:90]}-model") if is_reserved(checkpoint.name) else checkpoint


def _manifest_of(asked: str, data: Path) -> "Manifest | None":
    """Return the manifest of the index of this name, or None; raise IndexFault if the manifest cannot be used."""
    from lexiscope.precompute.index.manifest import Manifest
    from lexiscope.precompute.index.origin import MODEL_NAME, model_name

    name = model_name(asked)
    if not MODEL_NAME.fullmatch(name):  # the text is a path, not a name
        return None
    try:
        manifest = Manifest.load(data / name)
    except IndexMissing:
        return None
    manifest.check_folder(data / name, asked)
    return manifest
