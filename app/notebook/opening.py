"""Finds models: by their names in a data folder, by the path of an index, by the address of a server."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, overload

from app.formats.stored_tables import models_table
from app.formats.table import Table
from app.library.card import ModelCard
from app.notebook.local import LocalSource, library_of
from app.notebook.model import Model
from app.notebook.server import ServerSource, Site, is_address, split_address
from app.notebook.show import Shown
from precompute.errors import NotFound
from precompute.index.data_folder import open_model as open_index
from precompute.index.manifest import MODEL_NAME, has_manifest, model_name

Place: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Models(Shown, Sequence[ModelCard]):
    """The models of a data folder, or of a server, by name; `names` are what `open` takes."""

    cards: tuple[ModelCard, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What `open` takes."""
        return tuple(card.model for card in self.cards)

    def __len__(self) -> int:
        return len(self.cards)

    @overload
    def __getitem__(self, at: int) -> ModelCard: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[ModelCard, ...]: ...

    def __getitem__(self, at: int | slice) -> ModelCard | tuple[ModelCard, ...]:
        return self.cards[at]

    def __iter__(self) -> Iterator[ModelCard]:
        return iter(self.cards)

    def _title(self) -> str:
        return f"models: {', '.join(self.names) or 'none'}"

    def _tables(self) -> Sequence[Table]:
        return (models_table(self.cards),)

    def _notes(self) -> Sequence[str]:
        return [f"{card.model}: {fault}" for card in self.cards for fault in card.faults]


def open_model(model: Place, data: Place | None, weights: bool, device: str) -> Model:
    asked = os.fspath(model)
    if is_address(asked):
        return Model(_server_source(asked))
    folder = data_folder(data)
    path = Path(asked).expanduser()
    if not _is_built(folder, asked) and has_manifest(path):
        path = path.resolve()
        folder, asked = path.parent, path.name
    index = open_index(folder, asked)  # NotFound says which there are
    return Model(LocalSource(folder.resolve(), index.manifest.model, weights, device))


def _is_built(data: Path, asked: str) -> bool:
    name = model_name(asked)
    return bool(MODEL_NAME.fullmatch(name)) and has_manifest(data / name)


def list_models(where: Place | None) -> Models:
    if where is not None and is_address(os.fspath(where)):
        return Models(Site(split_address(os.fspath(where))[0]).models())
    return Models(library_of(data_folder(where).resolve()).cards())


def data_folder(data: Place | None) -> Path:
    """The one that is given, else LEXISCOPE_DATA of the environment, else ./data, as for commands."""
    return Path(data if data is not None else os.environ.get("LEXISCOPE_DATA") or "data").expanduser()


def _server_source(address: str) -> ServerSource:
    """NotFound where the server does not have the model, or none is named."""
    origin, name = split_address(address)
    site = Site(origin)
    names = [card.model for card in site.models()]
    if name not in names:
        said = f"no model {name!r} at {origin}" if name else f"{origin} names no model"
        raise NotFound(f"{said}: there {'are' if names else 'is none'} {', '.join(f'{origin}/{n}' for n in names)}")
    return ServerSource(site, name)
