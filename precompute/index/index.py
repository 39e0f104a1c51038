"""Opens an index with numpy alone: the manifest, the vocabulary, and every layer that is ready and whole.
Reading lists out of a layer is for shard_reader.py."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from precompute import rebuild_command as remake
from precompute.errors import IndexFault, LexiscopeError, ManifestDamaged, NotBuilt, NotFound
from precompute.files import damaged
from precompute.index.container import Container
from precompute.index.layout import check_arrays, vocabulary_layout
from precompute.index.manifest import MANIFEST, MODEL_NAME, FileEntry, Manifest, model_name, signature_of
from precompute.index.neighbours import check_neighbours, nearest
from precompute.index.shard_reader import Array, Floats, Shard
from precompute.index.tokens import TokenTable
from precompute.shape import Shape


class Index:
    """One model's index as it was when it was opened; layers finished since then appear in `refreshed()`."""

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        signature: tuple[int, ...],
        vocabulary: Container,
        shards: Mapping[int, Shard],
        faults: Mapping[int, IndexFault],
        neighbours: Container | None = None,
    ) -> None:
        self.folder = folder
        self.manifest = manifest
        self.vocabulary = vocabulary
        self.faults = faults  # layers that the manifest lists and that cannot be used
        self._signature = signature
        self._shards = shards
        self._neighbours = neighbours
        try:
            self.tokens = TokenTable(vocabulary.arrays["token.offsets"], vocabulary.arrays["token.bytes"])
        except ValueError as error:
            raise damaged(vocabulary.path, f"is damaged: {error}") from None

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Open an index; a layer that is damaged, missing or of another build is in `faults`, the others serve."""
        folder = Path(folder)
        return cls._open(folder if folder.name else folder.absolute(), None)  # messages name the model by its folder

    def stale(self) -> bool:
        """Whether the manifest has changed since this was opened: one stat."""
        return signature_of(self.folder) != self._signature

    def refreshed(self) -> Self:
        """This index if nothing changed, else a new one that keeps the layers already mapped."""
        return self._open(self.folder, self) if self.stale() else self

    @property
    def shape(self) -> Shape:
        return self.manifest.shape

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(self._shards)

    @property
    def n_bytes(self) -> int:
        """The size of the files that the manifest lists."""
        return sum(entry.bytes for entry in self.manifest.files.values())

    def shard(self, layer: int) -> Shard:
        if shard := self._shards.get(layer):
            return shard
        if fault := self.faults.get(layer):
            raise type(fault)(str(fault))
        model, n_layers = self.manifest.model, self.shape.n_layers
        if not 0 <= layer < n_layers:
            raise NotFound(f"layer {layer}: {model} has layers 0 to {n_layers - 1}")
        raise NotBuilt(
            f"layer {layer} of {model} is not built yet: {len(self.layers)} of {n_layers} layers are ready "
            f"({ranges(self.layers)}). {remake.unless_running(self.manifest.source)}"
        )

    @property
    def centred_norms(self) -> tuple[Floats, ...]:
        """|e_t - mean| by token (d_vocab,), of the embedding, and of the unembedding where it is another."""
        sides = ("embedding",) if self.shape.tied else ("embedding", "unembedding")
        return tuple(self.vocabulary.arrays[f"{side}.centred_norm"] for side in sides)

    def neighbours(self, token: int) -> tuple[Array, Floats] | None:
        """Ids and scores of the nearest tokens, by cosine of the centred embeddings; None if they are not built."""
        self.tokens.raw(token)
        return nearest(self._neighbours, token) if self._neighbours else None

    @classmethod
    def _open(cls, folder: Path, before: "Index | None") -> Self:
        """A rebuild may replace the manifest and remove the files of the old one at any moment: then look again."""
        while True:
            manifest, signature = Manifest.load_signed(folder)
            try:
                index = cls._open_files(folder, manifest, signature, before)
            except IndexFault:
                if signature_of(folder) == signature:
                    raise
                continue
            if not index.faults or not index.stale():
                return index

    @classmethod
    def _open_files(cls, folder: Path, manifest: Manifest, signature: tuple[int, ...], before: "Index | None") -> Self:
        vocabulary = _open_vocabulary(folder, manifest)
        known = before.manifest.shards if before and before.manifest.build == manifest.build else {}
        shards: dict[int, Shard] = {}
        faults: dict[int, IndexFault] = {}
        for layer, entry in manifest.shards.items():
            if before and known.get(layer) == entry and layer in before._shards:
                shards[layer] = before._shards[layer]
                continue
            try:
                shards[layer] = open_shard(folder, manifest, layer)
            except IndexFault as fault:
                faults[layer] = fault.bare()
        return cls(folder, manifest, signature, vocabulary, shards, faults, open_neighbours(folder, manifest))


@dataclass(frozen=True)
class ModelSummary:
    name: str
    folder: Path
    layers: tuple[int, ...] = ()  # those that can be used
    n_layers: int = 0
    n_bytes: int = 0
    faults: tuple[str, ...] = ()


def list_models(data: Path) -> tuple[ModelSummary, ...]:
    """Every index in a data folder, by name; a broken one says so and hides none of the others."""
    return tuple(map(_summary, _folders(data)))


def open_model(data: Path, asked: str) -> Index:
    """The index of a model by its name (or `demo`, or its Hub id); NotFound says which there are."""
    name = model_name(asked)
    if not MODEL_NAME.fullmatch(name) or not signature_of(data / name):
        built = tuple(folder.name for folder in _folders(data))
        raise NotFound(f"no index of {asked!r} in {data} (built: {', '.join(built) or 'none'}); {_hint(asked, built)}")
    return _open_own(data / name, asked)


def ranges(numbers: tuple[int, ...]) -> str:
    """(0, 1, 2, 5) -> "0-2, 5"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs) or "none"


def _folders(data: Path) -> list[Path]:
    """Those in a data folder that hold a manifest, by name; nothing is opened."""
    try:
        folders = sorted(path for path in data.iterdir() if MODEL_NAME.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise IndexFault(f"cannot list the data folder {data}: {error.strerror}") from error
    return [folder for folder in folders if signature_of(folder)]


def _open_own(folder: Path, asked: str) -> Index:
    """The index in a folder, which must be that of the model whose name the folder has."""
    index = Index.open(folder)
    if index.manifest.model != folder.name:
        raise ManifestDamaged(
            f"{index.folder / MANIFEST} is of another model, {index.manifest.model}: rename the folder to that, "
            f"or delete it and run `lexiscope precompute {asked}` again"
        )
    return index


def _hint(asked: str, built: tuple[str, ...]) -> str:
    meant = Path(asked).name.removesuffix(".gguf").casefold()  # a path, or another case
    for name in built:
        if name.casefold() == meant:
            return f"did you mean `{name}`?"
    if MODEL_NAME.fullmatch(model_name(asked)):
        return f"`lexiscope precompute {asked}` makes one"
    return "this is no model's name"


def _open_vocabulary(folder: Path, manifest: Manifest) -> Container:
    assert manifest.vocabulary  # a manifest that was loaded has one
    vocabulary = _open_listed(folder, manifest.vocabulary)
    if vocabulary.about != {"model": manifest.model, "build": manifest.build}:
        raise ManifestDamaged(
            f"{folder / MANIFEST} is of build {manifest.build} of {manifest.model}, but {vocabulary.path.name} beside "
            f"it of {dict(vocabulary.about)!a}: one of them was copied from another index. Delete the folder {folder} "
            f"and run `lexiscope precompute {folder.name}` again"
        )
    check_arrays(vocabulary, vocabulary_layout(manifest.shape))
    return vocabulary


def open_shard(folder: Path, manifest: Manifest, layer: int) -> Shard:
    return Shard.of(_open_listed(folder, manifest.shards[layer]), manifest, layer)


def open_neighbours(folder: Path, manifest: Manifest) -> Container | None:
    """None if they are not built or cannot be used: pages do without, and `verify` says what is wrong."""
    with suppress(IndexFault):
        if manifest.neighbours:
            container = _open_listed(folder, manifest.neighbours)
            check_neighbours(container, manifest)
            return container
    return None


def _open_listed(folder: Path, entry: FileEntry) -> Container:
    """A file that the manifest lists, with the length it gives."""
    container = Container.open(folder / entry.file)
    if container.n_bytes != entry.bytes:
        said = f"has {container.n_bytes} bytes, the manifest says {entry.bytes}: it belongs to another build"
        raise damaged(container.path, said)
    return container


def _summary(folder: Path) -> ModelSummary:
    try:
        index = _open_own(folder, folder.name)
    except LexiscopeError as error:
        return ModelSummary(folder.name, folder, faults=(str(error),))
    faults = tuple(map(str, index.faults.values()))
    return ModelSummary(folder.name, folder, index.layers, index.shape.n_layers, index.n_bytes, faults)
