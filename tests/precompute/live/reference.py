"""Small random models of every family for tests of live computations, each beside the same one in `transformers`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.testing import assert_close

from precompute.live.engine import Engine
from precompute.live.wire.prompt import PromptAnswer, PromptAsk
from precompute.weights.architectures import describe
from precompute.weights.architectures.base import Model
from precompute.weights.checkpoint import Checkpoint
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
        assert isinstance(answer, PromptAnswer), answer
        return answer


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-4) -> None:
    assert_close(found, expected, atol=tolerance, rtol=tolerance)


def make_case(folder: Path) -> Case:
    return Case(Engine.load(Checkpoint.open(folder), device="cpu"), Net(folder), folder)
