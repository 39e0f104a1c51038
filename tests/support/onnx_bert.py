"""Convert a BERT in an ONNX file to a checkpoint in Hub format, by reading the few fields of the file that hold
weights.

Biases, norms and embeddings have the names of the model they were exported from. A matrix of a linear layer has no
name, and is stored (in, out): the MatMul node that takes it names its layer."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

Float32 = NDArray[np.float32]

# Numbers of the fields in onnx.proto.
_GRAPH, _NODE, _INITIALIZER = 7, 1, 5
_INPUT, _NODE_NAME, _OP_TYPE = 1, 3, 4
_DIMS, _DATA_TYPE, _TENSOR_NAME, _RAW_DATA = 1, 2, 8, 9
_FLOAT = 1


def convert_bert(onnx: Path, target: Path) -> None:
    """Write model.safetensors with BertModel's names."""
    (graph,) = [content for number, content in _fields(memoryview(onnx.read_bytes())) if number == _GRAPH]
    tensors: dict[str, Float32] = {}
    owners: dict[str, str] = {}  # for each matrix without a name, the layer that multiplies with it
    for number, content in _fields(graph):
        if number == _INITIALIZER:
            tensors.update(_tensor(content))
        elif number == _NODE:
            owners.update(_owner(content))
    named = {name: tensor for name, tensor in tensors.items() if name not in owners and "::" not in name}
    matrices = {f"{owners[name]}.weight": tensors[name].T for name in owners if name in tensors}
    weights = {name: np.ascontiguousarray(tensor) for name, tensor in (named | matrices).items()}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})


def _owner(node: memoryview) -> dict[str, str]:
    """Return {onnx::MatMul_1525: encoder.layer.0.attention.self.query} for a node
    /encoder/layer.0/attention/self/query/MatMul, which multiplies with that matrix."""
    inputs, name, kind = [], "", ""
    for number, content in _fields(node):
        if number == _INPUT:
            inputs.append(bytes(content).decode())
        elif number == _NODE_NAME:
            name = bytes(content).decode()
        elif number == _OP_TYPE:
            kind = bytes(content).decode()
    if kind != "MatMul" or not inputs[1].startswith("onnx::MatMul"):
        return {}
    return {inputs[1]: name.removesuffix("/MatMul").strip("/").replace("/", ".")}


def _tensor(content: memoryview) -> dict[str, Float32]:
    """Return {name: array}; empty if the tensor is not float32 (indexes and sizes that the export keeps beside the
    weights)."""
    dims: list[int] = []
    name, data_type, raw = "", 0, memoryview(b"")
    for number, value in _fields(content):
        if number == _DIMS:
            dims.append(int.from_bytes(value, "little"))
        elif number == _DATA_TYPE:
            data_type = int.from_bytes(value, "little")
        elif number == _TENSOR_NAME:
            name = bytes(value).decode()
        elif number == _RAW_DATA:
            raw = value
    return {name: np.frombuffer(raw, "<f4").reshape(dims)} if data_type == _FLOAT and dims else {}


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield (number, content) of each field of a protobuf message; a whole number is given as 8 bytes, the lowest
    first."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        if key & 7 == 0:
            value, position = _varint(message, position)
            yield key >> 3, memoryview(value.to_bytes(8, "little"))
            continue
        length = {1: 8, 5: 4}.get(key & 7)
        if length is None:
            length, position = _varint(message, position)
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the number at a position, seven bits a byte, and the position after it."""
    value = shift = 0
    while True:
        byte = message[position]
        value, shift, position = value | (byte & 0x7F) << shift, shift + 7, position + 1
        if byte < 0x80:
            return value, position
