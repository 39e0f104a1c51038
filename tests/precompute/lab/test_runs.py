"""Texts cut to what a run takes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from lexiscope.precompute.lab.runs import CHARACTERS, TextRuns
from lexiscope.precompute.live.texts import Texts
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint

LENGTH = 7


@pytest.mark.parametrize("text", [
    "the dog and the lion " * 10_000,
    "a" + " " * 20 * CHARACTERS * LENGTH + " lion saw the horse and the dog ran and ran",
])  # fmt: skip
def test_a_very_long_text_has_the_tokens_of_its_beginning(family_folder: Callable[[str], Path], text: str) -> None:
    folder = family_folder("gpt2")
    texts = Texts("long.txt", "0" * 64, (text,), None)
    runs = TextRuns(describe(Checkpoint.open(folder)), texts, torch.device("cpu"), LENGTH)
    (cut,) = runs.texts
    assert [*cut.tokens] == Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids[:LENGTH]
