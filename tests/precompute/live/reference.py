"""Small random models of every family for tests of live computations, each beside the same one in `transformers`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.testing import assert_close

from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.answers import Predicted, PromptAnswer, Token
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.nets import Net, Run

TEXT = "The dog and the lion saw the horse in Paris"
FEW = ("gpt2", "llama3", "bert")  # where a family makes no difference


@dataclass
class Case:
    engine: Engine
    net: Net
    folder: Path
    model: Model = field(init=False)
    runs: dict[tuple[int, ...], Run] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = describe(Checkpoint.open(self.folder))

    def run(self, tokens: tuple[int, ...]) -> Run:
        """Of transformers."""
        if tokens not in self.runs:
            self.runs[tokens] = self.net.run(tokens)
        return self.runs[tokens]

    def ask(self, text: str = TEXT, **fields: Any) -> PromptAnswer:
        (answer,) = self.engine.prompts([PromptAsk(text=text, **fields)])
        assert isinstance(answer, dict), answer
        return answer


def ids(tokens: Iterable[Token]) -> tuple[int, ...]:
    return tuple(token["id"] for token in tokens)


def numbers(tokens: Predicted) -> list[float]:
    """Return the probabilities of tokens, or their cosines."""
    return [float(dict(token).get("p", dict(token).get("score"))) for token in tokens]  # type: ignore[arg-type]


def changed(changes: Iterable[Any]) -> dict[str, Any]:
    """Changes of a run, given as models or their fields, as the arguments `off` and `set`."""
    fields = [change if isinstance(change, dict) else change.model_dump() for change in changes]
    return {
        "off": [change for change in fields if not change.get("value")],
        "set": [change for change in fields if change.get("value")],
    }


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-4) -> None:
    assert_close(found, expected, atol=tolerance, rtol=tolerance)


def source_vectors(case: Case, words: Iterable[Iterable[int]], lens: str, source: str) -> Float64:
    """Return the mean of each word's tokens (words, d_model): rows of W_E, or hidden states after the first block."""
    rows = case.net.after_first_block() if source == "first" else case.model.W_E
    W = rows.double().numpy()
    x = np.stack([W[list(tokens)].mean(axis=0) for tokens in words])
    if lens == "cosine":
        x -= W.mean(axis=0)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def into_heads(case: Case, x: Float64, lens: str, source: str, layer: int) -> Float64:
    """Return x (words, d_model) as the heads of a layer are given it."""
    if source != "norm":
        return x
    if lens == "cosine":
        return np.asarray(x @ case.net.linear_norm("attention", layer).numpy())
    return case.net.undivided_norm("attention", layer, torch.from_numpy(x).float()).numpy()


def make_case(folder: Path) -> Case:
    return Case(Engine.load(Checkpoint.open(folder), device="cpu"), Net(folder), folder)
