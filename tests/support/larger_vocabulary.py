"""Make small models with as many tokens as a comparison asks for."""

import json
from pathlib import Path
from typing import Any

from tests.support.models import tiny_gpt2

TOKENS = 1100


def comparable_gpt2(folder: Path, **sizes: Any) -> Path:
    """Make a random GPT-2 whose tokenizer has more words than the texts of tests; the words of these texts are the
    usual ones."""
    tiny_gpt2(folder, d_vocab=TOKENS, **sizes)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    vocab = tokenizer["model"]["vocab"]
    taken = {token["id"] for token in tokenizer["added_tokens"]} | set(vocab.values())
    vocab |= {f"Ġmore{number}": number for number in range(TOKENS) if number not in taken}
    path.write_text(json.dumps(tokenizer))
    return folder
