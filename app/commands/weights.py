"""Where the weights of a model are: of one that a user names, and of one whose index knows where it came from."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.addresses import is_reserved
from precompute.errors import BadWeights, IndexFault, IndexMissing, WeightsError

if TYPE_CHECKING:
    from precompute.index.index import Index
    from precompute.index.manifest import Manifest
    from precompute.weights.architectures.base import Model
    from precompute.weights.checkpoint import Checkpoint

CACHE = ".cache"  # in the data folder


def find_weights(asked: str, data: Path, revision: str | None = None) -> "Checkpoint":
    """The weights that a user names: a source, or an index that is to be completed, from where it came from.

    A Hub model that is built stays at its commit, whatever the Hub has today, unless another revision is asked for.
    A model whose page would have the address of another page gets another name.
    """
    checkpoint = _find_weights(asked, data, revision)
    return replace(checkpoint, name=f"{checkpoint.name[:90]}-model") if is_reserved(checkpoint.name) else checkpoint


def _find_weights(asked: str, data: Path, revision: str | None) -> "Checkpoint":
    from precompute.weights.sources import ALIASES, resolve

    cache = data / CACHE
    try:
        built = _manifest_of(asked, data)
    except IndexFault as fault:
        try:
            return resolve(asked, revision=revision, cache=cache)
        except WeightsError as error:
            raise type(fault)(
                f"{fault}, with the folder, file or Hub id it was made from: {asked!r} alone does not lead to the "
                f"weights ({error})"
            ) from None
    if built is None:
        return resolve(asked, revision=revision, cache=cache)
    is_folder = (Path(asked).expanduser() / "config.json").is_file()
    if built.source == ALIASES.get(asked, asked) or (asked == built.model and not is_folder):
        return resolve(built.source, revision=revision or built.revision or None, cache=cache)
    return resolve(asked, revision=revision, cache=cache)


def weights_of_index(index: "Index") -> "Model":
    """The model that an index was made from: the very weights, by their hash."""
    from precompute.weights.architectures import describe
    from precompute.weights.sources import resolve

    manifest = index.manifest
    cache = index.folder.parent / CACHE
    model = describe(resolve(manifest.source, revision=manifest.revision or None, cache=cache))
    difference = "another model" if model.shape.identity() != manifest.shape.identity() else ""
    if not difference and model.checkpoint.weights_hash() != manifest.weights_sha256:
        difference = "other weights"
    if difference:
        raise BadWeights(
            f"{manifest.source} holds {difference} than the index {index.folder} was made from: put that back, or "
            f"rebuild the index: `lexiscope precompute {manifest.model} --force`"
        )
    return model


def _manifest_of(asked: str, data: Path) -> "Manifest | None":
    """The manifest of the index with the name that was asked for, if there is one; IndexFault if it is of no use."""
    from precompute.index.manifest import MODEL_NAME, Manifest, model_name

    name = model_name(asked)
    if not MODEL_NAME.fullmatch(name):  # a path
        return None
    try:
        manifest = Manifest.load(data / name)
    except IndexMissing:
        return None
    manifest.check_folder(data / name, asked)
    return manifest
