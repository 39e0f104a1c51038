"""Convert a GGUF file into a checkpoint folder in the Hub's layout, with one layer in memory at a time."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

from lexiscope.precompute.errors import BadWeights, UnsupportedArchitecture
from lexiscope.precompute.weights.architectures import describe, supported
from lexiscope.precompute.weights.architectures.gguf_layout import Layout
from lexiscope.precompute.weights.checkpoint import INDEX_FILE, Checkpoint
from lexiscope.precompute.weights.gguf.tokenizer import write_tokenizer

VERSION = 1  # version of what a conversion writes: a new number has old conversions made again
_PLAIN = (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.F64)


def convert(path: Path, folder: Path) -> None:
    """Write config.json, safetensors files (float32, with exactly the values that the quantised numbers mean) and
    tokenizer.json."""
    reader = read_gguf(path)
    layout = _read_layout(reader, path)
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    _check_names(layout, tensors, path)
    if _output_is_copy(tensors):
        del tensors["output.weight"]
    config = layout.config(tensors)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    write_tokenizer(layout.fields, config["vocab_size"], folder)
    _write_tensors(layout, tensors, folder)
    describe(Checkpoint.open(folder, name=path.stem, source=str(path)))  # shapes that disagree are refused here


def read_gguf(path: Path) -> Any:
    """Open the file as a gguf.GGUFReader; raise BadWeights if it is cut short or not GGUF at all."""
    try:
        with np.errstate(over="raise"):
            reader = _Reader(path)
    except (ValueError, IndexError, KeyError, ArithmeticError, RecursionError, MemoryError) as error:
        what = "is not a GGUF file" if "magic" in str(error) else f"is not a complete GGUF file ({error})"
        raise BadWeights(f"{path} {what}. Download it again.") from error
    if reader.byte_order == "S":
        raise BadWeights(f"{path} was written for machines of the other byte order. Use a little-endian GGUF file.")
    return reader


class _Reader(gguf.GGUFReader):  # type: ignore[misc]
    """A GGUF reader that refuses data beyond the end of the file, which the library would take as empty."""

    def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
        end = int(offset) + int(count) * np.dtype(dtype).itemsize
        if end > len(self.data):
            raise ValueError(f"it ends at byte {len(self.data)}, before byte {end} that it refers to")
        return super()._get(offset, dtype, count, override_order)


def layouts() -> dict[str, type[Layout]]:
    """Return the Layout of each supported family, by the name that GGUF files have for it (general.architecture)."""
    families = set(supported().values())
    return {name: family.gguf for family in families if family.gguf for name in family.gguf.architectures}


def _read_layout(reader: Any, path: Path) -> Layout:
    try:
        # Reader fields decode on demand: an ill-formed string shows here.
        fields = {name: field.contents() for name, field in reader.fields.items()}
    except ValueError as error:
        raise BadWeights(f"{path} has text that is not UTF-8 ({error}). Download it again.") from error
    architecture = fields.get("general.architecture")
    known = layouts()
    if not isinstance(architecture, str) or architecture not in known:
        raise UnsupportedArchitecture(
            f"{path} is of the architecture {architecture}, which is not supported. "
            f"Supported in GGUF are: {', '.join(sorted(known))}."
        )
    if fields.get("split.count", 1) not in (0, 1):
        raise BadWeights(f"{path} is one part of {fields['split.count']}. Merge them first: llama-gguf-split --merge.")
    return known[architecture](fields, path)


def _check_names(layout: Layout, tensors: dict[str, Any], path: Path) -> None:
    missing = next((name for name in layout.needed() if name not in tensors), None)
    if missing is not None:
        raise BadWeights(f"{path} has no tensor {missing}, which its header promises. Download it again.")
    unknown = sorted(name for name in tensors if layout.hub_name(name) is None and not layout.ignored(name))
    if unknown:
        raise UnsupportedArchitecture(
            f"{path} has tensors that a plain {layout.architecture} model does not have: {', '.join(unknown[:3])}."
        )


def _output_is_copy(tensors: dict[str, Any]) -> bool:
    """Return True if output.weight repeats the embedding, as some writers make it: the model is then tied in spite of
    it."""
    first, second = tensors["token_embd.weight"], tensors.get("output.weight")
    if second is None or first.tensor_type != second.tensor_type:
        return False
    return bool(np.array_equal(first.data, second.data))


def _write_tensors(layout: Layout, tensors: dict[str, Any], folder: Path) -> None:
    """Write one safetensors file for each layer and one for the rest, with the index file that the Hub's format has for
    several files."""
    groups: dict[str, list[str]] = {}
    for name in tensors:
        if layout.hub_name(name) is not None:
            groups.setdefault(".".join(name.split(".")[:2]) if name.startswith("blk.") else "", []).append(name)
    weight_map: dict[str, str] = {}
    size = 0
    for number, names in enumerate(groups.values(), start=1):
        file = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        values = {str(layout.hub_name(name)): _read_tensor(layout, tensors[name]) for name in names}
        save_file(values, folder / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(values, file))
        size += sum(value.nbytes for value in values.values())
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (folder / INDEX_FILE).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


def _read_tensor(layout: Layout, tensor: Any) -> torch.Tensor:
    try:
        data = tensor.data if tensor.tensor_type in _PLAIN else gguf.dequantize(tensor.data, tensor.tensor_type)
    except (NotImplementedError, gguf.quants.QuantError, ValueError) as error:
        raise BadWeights(
            f"{tensor.name} is stored as {tensor.tensor_type.name}, which cannot be read ({error}). "
            "Use another quantisation of the model, for instance Q8_0 or F16."
        ) from error
    values = torch.from_numpy(np.array(data, dtype=np.float32))  # a copy: the file's pages are read-only
    if not torch.isfinite(values).all():
        raise BadWeights(f"{tensor.name} has values that are not finite numbers. Download the file again.")
    return layout.arrange(tensor.name, values).contiguous()
