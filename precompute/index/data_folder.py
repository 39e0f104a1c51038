"""List the indexes in a data folder, and find the one that a person means by a name."""

from dataclasses import dataclass
from pathlib import Path

from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import has_manifest
from lexiscope.precompute.index.origin import MODEL_NAME, model_name


@dataclass(frozen=True)
class ModelSummary:
    name: str
    folder: Path
    layers: tuple[int, ...] = ()  # layers that can be used
    n_layers: int = 0
    n_bytes: int = 0
    errors: tuple[str, ...] = ()
    difference: str = ""  # which base was subtracted from which model, for people; "" for a model


def list_models(data: Path) -> tuple[ModelSummary, ...]:
    """Return every index in a data folder, sorted by name; a broken one is listed with its error, and does not hide the
    others."""
    return tuple(map(_summary, _folders(data)))


def open_model(data: Path, asked: str) -> Index:
    """Open the index of a model by its name (or `demo`, or its Hub id); if there is none, NotFound names those that
    exist."""
    name = model_name(asked)
    if not MODEL_NAME.fullmatch(name) or not has_manifest(data / name):
        built = tuple(folder.name for folder in _folders(data))
        where = f"{data} (built: {', '.join(built)})" if built else f"{data.absolute()} (built: none)"
        elsewhere = "" if built else "; --data or LEXISCOPE_DATA names another folder"
        raise NotFound(f"no index of {asked!r} in {where}; {_hint(asked, built)}{elsewhere}")
    return _open_own(data / name, asked)


def _folders(data: Path) -> list[Path]:
    """Return the folders in a data folder that hold a manifest, by name; nothing is opened."""
    try:
        folders = sorted(path for path in data.iterdir() if MODEL_NAME.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise IndexFault(f"cannot list the data folder {data}: {error.strerror}") from error
    return [folder for folder in folders if has_manifest(folder)]


def _open_own(folder: Path, asked: str) -> Index:
    """Open the index in a folder; its model must have the folder's name."""
    index = Index.open(folder)
    index.manifest.check_folder(folder, asked)
    return index


def _hint(asked: str, built: tuple[str, ...]) -> str:
    meant = Path(asked).name.removesuffix(".gguf").casefold()  # the name may be a path, or in another case
    for name in built:
        if name.casefold() == meant:
            return f"did you mean `{name}`?"
    if MODEL_NAME.fullmatch(model_name(asked)):
        return f"`lexiscope precompute {asked}` makes one"
    return "this is no model's name"


def _summary(folder: Path) -> ModelSummary:
    try:
        index = _open_own(folder, folder.name)
    except LexiscopeError as error:
        return ModelSummary(folder.name, folder, errors=(str(error),))
    errors = tuple(map(str, index.faults.values()))
    minus = index.manifest.minus
    difference = f"{minus.tuned} − {minus.model}" if minus else ""
    return ModelSummary(folder.name, folder, index.layers, index.shape.n_layers, index.n_bytes, errors, difference)
