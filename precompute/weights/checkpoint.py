"""A model's files on disk, in the Hub's layout: its config, its tokenizer, and its tensors, which are read one at a
time."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError, safe_open

from lexiscope.precompute.errors import BadWeights, NoSafetensors, SourceNotFound
from lexiscope.precompute.weights.tokenizer_file import find_tokenizer

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Checkpoint:
    name: str  # safe in a URL and as a folder name
    source: str  # what to ask for to get it again: a Hub id, an absolute path, "demo"
    revision: str  # the Hub's commit hash; empty for local files
    folder: Path
    config: dict[str, Any] = field(repr=False, hash=False)
    files: Mapping[str, Path] = field(repr=False, hash=False)  # tensor name -> the safetensors file that holds it
    cache: Path | None = field(default=None, repr=False)  # where a derived tokenizer.json may be kept

    @classmethod
    def open(
        cls,
        folder: Path,
        name: str | None = None,
        source: str | None = None,
        revision: str = "",
        cache: Path | None = None,
    ) -> "Checkpoint":
        folder = folder.absolute()
        if not folder.is_dir():
            raise SourceNotFound(f"There is no folder {folder}. Give a folder that holds config.json and safetensors.")
        return cls(
            name=safe_name(name if name is not None else folder.name),
            source=_encodable(source if source is not None else str(folder)),
            revision=revision,
            folder=folder,
            config=read_config(folder),
            files=_tensor_files(folder),
            cache=cache,
        )

    def names(self) -> frozenset[str]:
        return frozenset(self.files)

    def tensor_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor from the file's header, without reading the tensor."""
        with _opened(self._file(name)) as file:
            return tuple(file.get_slice(name).get_shape())

    def tensor(self, name: str) -> torch.Tensor:
        """Read one tensor as float32 on the CPU; no copy of it is kept."""
        path, stored = self._file(name), self.stored_tensor(name)
        if stored.dtype not in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            raise BadWeights(
                f"{name} in {path} is stored as {stored.dtype}, a quantised or integer format. "
                "Use the float16, bfloat16 or float32 checkpoint, or a GGUF file."
            )
        tensor = stored.to(torch.float32)
        if tensor.numel() and not torch.isfinite(torch.stack(torch.aminmax(tensor))).all():  # both are NaN if any is
            count = int((~torch.isfinite(tensor)).sum())
            raise BadWeights(
                f"{name} in {path} has {count} values that are not finite numbers. "
                "Download the checkpoint again, or use another one: this one is broken."
            )
        return tensor

    def stored_tensor(self, name: str) -> torch.Tensor:
        """Read one tensor as it is stored, without checking its values."""
        path = self._file(name)
        with _opened(path) as file:
            try:
                stored: torch.Tensor = file.get_tensor(name)
            except SafetensorError as error:
                _damaged(path, error)
        return stored

    def weights_hash(self) -> str:
        """Return the sha256 over the names and contents of the weight files, in the order of their names."""
        total = hashlib.sha256()
        for path in sorted(set(self.files.values())):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{content}  {path.name}\n".encode())
        return total.hexdigest()

    def tokenizer_file(self) -> Path:
        """Return the path of tokenizer.json. If there is only vocab.json with merges.txt, or only vocab.txt,
        tokenizer.json is made from them."""
        return find_tokenizer(self.folder, self.cache)

    def _file(self, name: str) -> Path:
        try:
            return self.files[name]
        except KeyError:
            raise BadWeights(
                f"{self.folder} has no tensor {name}. The checkpoint is incomplete, or not of the architecture "
                f"that its config.json names ({self.config.get('model_type')})."
            ) from None


def safe_name(text: str) -> str:
    """Return a model name that is safe in a URL and as a folder: [A-Za-z0-9][A-Za-z0-9._-]*, at most 96 characters.

    It is never `demo`, which stands for another model.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text)
    name = re.sub(r"^[^A-Za-z0-9]+", "", name)[:96].rstrip("-.") or "model"
    return f"{name[:90]}-model" if name == "demo" else name


def _encodable(path: str) -> str:
    """Return the path as text, although a path may hold bytes that are no text."""
    return path.encode("utf-8", "backslashreplace").decode()


def read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        ggufs = sorted(path.name for path in folder.glob("*.gguf"))
        hint = f"Pass the GGUF file itself: {folder / ggufs[0]}" if ggufs else "Give a folder in the Hub's format."
        raise SourceNotFound(f"{folder} has no config.json, so it is not a checkpoint in the Hub's format. {hint}")
    return read_json(path)


def read_json(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a number that JSON allows")

    try:
        content = json.loads(path.read_bytes(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise BadWeights(f"{path} cannot be read as JSON: {error}. Download the checkpoint again.") from None
    if not isinstance(content, dict):
        raise BadWeights(f"{path} holds {type(content).__name__}, not an object. Download the checkpoint again.")
    return content


def weight_files(folder: Path) -> list[str]:
    """Return the names of the safetensors files that a folder's index lists, or of the single one; these files need not
    exist yet."""
    index = folder / INDEX_FILE
    if (folder / SINGLE_FILE).exists() or not index.is_file():
        return [SINGLE_FILE]
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadWeights(f"{index} has no weight_map. Download the checkpoint again.")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise BadWeights(f"{index} names {name!r}, which is not a safetensors file of the same folder.")
    return names


def _tensor_files(folder: Path) -> dict[str, Path]:
    names = weight_files(folder)
    if names == [SINGLE_FILE] and not (folder / SINGLE_FILE).exists():
        raise NoSafetensors(no_safetensors(str(folder), [path.name for path in folder.iterdir()]))
    files: dict[str, Path] = {}
    for name in names:
        path = folder / name
        if not path.is_file():
            raise BadWeights(f"{folder / INDEX_FILE} lists {name}, which is missing. Download the checkpoint again.")
        with _opened(path) as file:
            files.update(dict.fromkeys(file.keys(), path))
    return files


def no_safetensors(where: str, names: list[str]) -> str:
    """Return the error message for a folder or Hub model that has these files but no model.safetensors."""
    pickled = sorted(name for name in names if any(Path(name).match(pattern) for pattern in _PICKLES))
    others = sorted(name for name in names if name.endswith((".safetensors", ".gguf")))
    instead = (
        f"only pickled weights ({', '.join(pickled[:3])}), which can run code and are never loaded" if pickled else ""
    )
    if others:
        instead = f"{others[0]} instead; a .gguf file can be given by its path"
    return (
        f"{where} has no {SINGLE_FILE}{' but ' + instead if instead else ''}. Use a revision with safetensors, or "
        "convert it where you trust it: AutoModelForCausalLM.from_pretrained(...).save_pretrained(folder), and give "
        "that."
    )


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        _damaged(path, error)


def _damaged(path: Path, error: Exception) -> NoReturn:
    raise BadWeights(
        f"{path} is not a complete safetensors file ({error}). Delete it and get the checkpoint again."
    ) from error
