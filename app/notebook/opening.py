"""Find and open models: by their names in a data folder, by the path of an index, or by the address of a server."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from lexiscope.app.formats.table import Table
from lexiscope.app.library.library import ModelCard
from lexiscope.app.notebook.model import Model
from lexiscope.app.notebook.run import Run
from lexiscope.app.notebook.show import Shown
from lexiscope.app.notebook.signatures import takes_arguments_of
from lexiscope.app.notebook.site import Site, is_address, split_address
from lexiscope.app.notebook.source import Here, There, library_of
from lexiscope.app.pages.home import models_table
from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.data_folder import open_model as open_index
from lexiscope.precompute.index.manifest import has_manifest
from lexiscope.precompute.index.origin import MODEL_NAME, model_name

_HOST_AND_PORT = re.compile(r"[\w.\-]+:[0-9]+(/.*)?")
NameOrPath: TypeAlias = str | os.PathLike[str]


class Models(Shown, tuple[ModelCard, ...]):
    """The models of a data folder, or of a server. Each of their `names` can be given to `open`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that `open` accepts."""
        return tuple(card.model for card in self)

    def _title(self) -> str:
        return f"models: {', '.join(self.names) or 'none'}"

    def _tables(self) -> Sequence[Table]:
        return (models_table(self),)

    def _notes(self) -> Sequence[str]:
        return [f"{card.model}: {error}" for card in self for error in card.faults]


def open(  # noqa: A001 (lexiscope.open is how people say it)
    model: NameOrPath, *, data: NameOrPath | None = None, weights: bool = False, device: str = "auto"
) -> Model:
    """Open a model by its name in the data folder, by the path of its index, or by its address on a server.

    `data` is the folder with the indexes (default: the environment's LEXISCOPE_DATA, else ./data). Runs and
    `seeds` load the weights when they are first needed, on `device` (auto, cpu, cuda, ...); with `weights=True`,
    `seeds` never take the stored lists alone. NotFound names the models that exist; Unreachable means that no server
    answers.
    """
    asked = _as_text(model, "a model's name, the path of its index, or its address on a server")
    if is_address(asked):
        return Model(_there(asked))
    _check_scheme(asked)
    folder = data_folder(data)
    path = Path(asked).expanduser()
    # a path, although other/gpt2 could be a Hub id as well
    means_path = isinstance(model, os.PathLike) or os.sep in asked
    if (means_path or not _is_built(folder, asked)) and has_manifest(path):
        path = path.resolve()
        folder, asked = path.parent, path.name
    index = open_index(folder, asked)  # raises NotFound, which names the models that exist
    return Model(Here(folder.resolve(), index.manifest.model, weights, device))


def _is_built(data: Path, asked: str) -> bool:
    name = model_name(asked)
    return bool(MODEL_NAME.fullmatch(name)) and has_manifest(data / name)


def models(where: NameOrPath | None = None) -> Models:
    """Return the models of a data folder (default: as for `open`), or of a server by its address."""
    if where is not None:
        asked = _as_text(where, "a data folder, or the address of a server")
        if is_address(asked):
            return Models(Site(split_address(asked)[0]).models())
        _check_scheme(asked)
    return Models(library_of(data_folder(where).resolve()).cards())


@takes_arguments_of(Model.run)
def run(model: Model | str, *arguments: Any, **named: Any) -> Run:
    """Run a model on a text, with the arguments of `Model.run`. A model given by name is opened first."""
    return (model if isinstance(model, Model) else open(model)).run(*arguments, **named)


def data_folder(data: NameOrPath | None) -> Path:
    """Return the given folder, else LEXISCOPE_DATA of the environment, else ./data, as commands do."""
    return Path(data if data is not None else os.environ.get("LEXISCOPE_DATA") or "data").expanduser()


def _as_text(asked: NameOrPath, wanted: str) -> str:
    """Return a name or path as text; raise BadRequest for anything else."""
    if not isinstance(asked, str | os.PathLike) or not isinstance(text := os.fspath(asked), str) or not text:
        raise BadRequest(f"{asked!r:.100}: give {wanted}")
    return text


def _check_scheme(asked: str) -> None:
    """Raise BadRequest for a server's address that lacks its scheme, such as https://."""
    if _HOST_AND_PORT.fullmatch(asked) and not Path(asked).exists():
        raise BadRequest(f"{asked!r}: write http://{asked} for a model on a server")


def _there(address: str) -> There:
    """Return the model at a server's address; raise NotFound if the server does not have it, or if the address names no
    model."""
    origin, name = split_address(address)
    site = Site(origin)
    names = [card.model for card in site.models()]
    if name not in names:
        said = f"no model {name!r} at {origin}" if name else f"{origin} names no model"
        raise NotFound(f"{said}: there {'are' if names else 'is none'} {', '.join(f'{origin}/{n}' for n in names)}")
    return There(site, name)
