"""Make a small GPT-2 with GPT-2 medium's numbers of layers and heads in which some of the paper's printed lists are
planted, so that tests can prove which lists come out; another without any; and a fine-tuned third.

Each planted token has a coordinate of its own, in which its embedding is 1; all embeddings have noise of at most NOISE
in every coordinate besides. A head that is the sum of s_j (coordinate of a_j) ⊗ (coordinate of b_j) then gives the pair
(a_j, b_j) a score within 5 % of s_j, and every other pair less than a fifth: the first pairs are the planted ones, by
falling s_j. The same holds for a vector that is a sum of coordinates."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from lexiscope.precompute.paper import lists
from tests.support.builds import quick_build
from tests.support.differences import build_difference
from tests.support.models import tiny_gpt2

N_LAYERS, N_HEADS, D_HEAD = 24, 16, 8
D_MODEL = N_HEADS * D_HEAD
D_MLP = 1216  # neuron 1215 of layer 14 is the first that the paper looked up; the other two are not there
BUILT = (16,)  # a layer with five of the printed heads, and a neuron
K, PAIRS, FEW_PAIRS = 100, 500, 40
NOISE = 0.01
PLANTED, RANDOM, BASE, TUNED = "gpt2-medium", "random-gpt2", "gpt2", "imdb-minus-gpt2"
HOSTILE = "<script"  # a token that follows the planted ones of the neuron's key
# The heads in which D_HEAD pairs each are planted.
AS_PRINTED, TURNED, QUERIES = ("vo", 16, 2), ("vo", 16, 6), ("qk", 16, 13)
NEURON, NEURON_TOKENS = (16, 41), 10
LOOKUP, BETTER = (14, 1215), ((3, 7), (20, 9))  # two other neurons are better with spaces; without, LOOKUP is the best
CHANGED, CHANGED_TOKENS = 5, 12  # the ff_key of layer 11 that a fine-tuning changed, and how many printed words it got


@cache
def vocabulary() -> tuple[str, ...]:
    """Return every printed token, seed words with and without a space, and one byte each, with which all other text is
    written."""
    words = {text for head in lists.heads() for pair in head.pairs for text in pair}
    words |= {text for each in lists.neurons() for text in (*each.key, *each.value, *each.unassigned)}
    words |= {text for each in lists.lookups() for result in each.results for text in result.tokens}
    words |= {text for each in lists.differences() for text in (*each.diff, *each.minus_diff)}
    words |= {space + seed for each in lists.lookups() for seed in each.seeds for space in ("", " ")}
    return tuple(sorted(words | {HOSTILE}))


@cache
def tokenizer_json() -> str:
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    spelt = ["".join(piece for piece, _ in cut.pre_tokenize_str(text)) for text in vocabulary()]
    every = dict.fromkeys([*sorted(pre_tokenizers.ByteLevel.alphabet()), *spelt])
    vocab = {piece: number for number, piece in enumerate(every)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer, tokenizer.decoder = cut, decoders.ByteLevel()
    return str(tokenizer.to_str())


def token_numbers() -> dict[str, int]:
    """Return the id of every token that is text, by its text."""
    decoder = decoders.ByteLevel()
    return {decoder.decode([piece]): number for piece, number in pieces().items()}


def pieces() -> dict[str, int]:
    """Return the whole vocabulary, as the tokenizer writes it."""
    found: dict[str, int] = json.loads(tokenizer_json())["model"]["vocab"]
    return found


@dataclass
class Weights:
    """Hold the tensors of a checkpoint while lists are planted in them; W_E has a coordinate for each token that is
    used."""

    tensors: dict[str, torch.Tensor]
    numbers: dict[str, int]

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(7)
        self.coordinates: dict[str, int] = {}
        W_E = self.tensors["transformer.wte.weight"]
        self.tensors["transformer.wte.weight"] = NOISE * (2 * torch.rand(W_E.shape, generator=generator) - 1)

    def axis(self, text: str) -> torch.Tensor:
        """Return the direction of a token, (d_model,)."""
        at = self.coordinates.setdefault(text, len(self.coordinates))
        d_model = self.tensors["transformer.wte.weight"].shape[1]
        assert at < d_model, "more tokens are planted than there are coordinates"
        axis = torch.zeros(d_model)
        axis[at] = 1
        self.tensors["transformer.wte.weight"][self.numbers[text], at] = 1
        return axis

    def vector(self, texts: list[str]) -> torch.Tensor:
        """Return a vector (d_model,) whose first tokens are these, in order."""
        strengths = np.linspace(2, 1, len(texts))
        return torch.stack([float(s) * self.axis(text) for s, text in zip(strengths, texts, strict=True)]).sum(dim=0)

    def head(self, matrix: str, layer: int, head: int, pairs: list[tuple[str, str]]) -> None:
        """Plant up to D_HEAD pairs (from, to), the first best; the rest of the head is 0."""
        attn = f"transformer.h.{layer}.attn"
        inputs, output = self.tensors[f"{attn}.c_attn.weight"], self.tensors[f"{attn}.c_proj.weight"]
        d_model, none = inputs.shape[0], torch.zeros(inputs.shape[0])
        for j in range(D_HEAD):
            row = head * D_HEAD + j
            left = (2 - j / D_HEAD) * self.axis(pairs[j][0]) if j < len(pairs) else none
            right = self.axis(pairs[j][1]) if j < len(pairs) else none
            # Queries, keys and values follow one another.
            inputs[:, 2 * d_model + row if matrix == "vo" else row] = left
            if matrix == "vo":
                output[row] = right
            else:
                inputs[:, d_model + row] = right


def planted_pairs(address: tuple[str, int, int]) -> list[tuple[str, str]]:
    """Return the first printed pairs of a head that share no token and are beyond doubt, as printed."""
    (head,) = (each for each in lists.heads() if (each.matrix, each.layer, each.head) == address)
    unknown = {pair for pair, _ in head.space_uncertain}
    chosen: list[tuple[str, str]] = []
    used: set[str] = set()
    for at, pair in enumerate(head.pairs):
        if at not in head.low_confidence | unknown and len({*pair} | used) == len(used) + 2:
            chosen.append(pair)
            used |= {*pair}
    return chosen[:D_HEAD]


def planted_tokens() -> tuple[list[str], list[str]]:
    """Return the planted tokens of the neuron's key and value."""
    (neuron,) = (each for each in lists.neurons() if (each.layer, each.neuron) == NEURON)
    return list(neuron.key[:NEURON_TOKENS]), list(neuron.value[:NEURON_TOKENS])


def changed_words() -> list[str]:
    first = next(each for each in lists.differences() if (each.kind, each.layer) == ("FF keys", 11))
    return list(first.diff[:CHANGED_TOKENS])


def plant_gpt2(folder: Path) -> Path:
    source = _checkpoint(folder, n_layers=N_LAYERS, n_heads=N_HEADS, d_model=D_MODEL, d_mlp=D_MLP)
    weights = Weights(load_file(source / "model.safetensors"), token_numbers())
    weights.head(*AS_PRINTED, planted_pairs(AS_PRINTED))
    weights.head(*TURNED, [(b, a) for a, b in planted_pairs(TURNED)])
    weights.head(*QUERIES, planted_pairs(QUERIES))
    layer, neuron = NEURON
    key, value = planted_tokens()
    mlp = f"transformer.h.{layer}.mlp"
    weights.tensors[f"{mlp}.c_fc.weight"][:, neuron] = weights.vector([*key, HOSTILE])
    weights.tensors[f"{mlp}.c_proj.weight"][neuron] = weights.vector(value)
    seeds = lists.lookups()[0].seeds
    spaced, bare = (sum(weights.axis(space + seed) for seed in seeds) for space in (" ", ""))
    for at in range(N_LAYERS):  # all others hold next to nothing of the printed tokens
        weights.tensors[f"transformer.h.{at}.mlp.c_proj.weight"] *= 1 if at == layer else 0.01
        columns = [weights.coordinates[space + seed] for seed in seeds for space in ("", " ")]
        weights.tensors[f"transformer.h.{at}.mlp.c_proj.weight"][:, columns] = 0
    for strength, (at, number), direction in (
        (1.0, LOOKUP, spaced + 5 * bare),
        (2.0, BETTER[0], spaced),
        (3.0, BETTER[1], spaced),
    ):
        weights.tensors[f"transformer.h.{at}.mlp.c_proj.weight"][number] = strength * direction
    return _save(weights.tensors, source)


def plant_fine_tune(base: Path, folder: Path) -> Path:
    """Add printed words to one key of layer 11 of the base, and a little to the keys behind it."""
    tensors = load_file(base / "model.safetensors")
    weights = Weights(dict(tensors), token_numbers())
    key = "transformer.h.11.mlp.c_fc.weight"
    change = weights.vector(changed_words())
    embedding = weights.tensors["transformer.wte.weight"]
    tensors["transformer.wte.weight"] = embedding
    _save({**tensors}, base)
    changed = tensors[key].clone()
    changed[:, CHANGED] += change
    others = slice(len(weights.coordinates), None)  # coordinates in which no word is planted
    changed[others, CHANGED + 1 :] += 0.01 * tensors[key].flip(1)[others, CHANGED + 1 :]
    source = _checkpoint(folder, n_layers=12, n_heads=4, d_model=32, d_mlp=48)
    return _save({**tensors, key: changed}, source)


def make_paper_data(folder: Path) -> None:
    """Make indexes of all of these models, in `folder`/data."""
    sources, data = folder / "sources", folder / "data"
    dot: dict[str, Any] = {"lenses": ("dot",)}
    quick_build(plant_gpt2(sources / PLANTED), data, k=K, pairs=PAIRS, layers=BUILT, **dot)
    small = {"n_layers": N_LAYERS, "n_heads": N_HEADS, "d_model": 32, "d_mlp": 64}
    quick_build(_checkpoint(sources / RANDOM, **small), data, k=30, pairs=FEW_PAIRS, layers=BUILT, **dot)
    base = _checkpoint(sources / BASE, n_layers=12, n_heads=4, d_model=32, d_mlp=48)
    tuned = plant_fine_tune(base, sources / "imdb")
    build_difference(tuned, base, data, name=TUNED, k=K, pairs=0, layers=(10, 11), **dot)


def _checkpoint(folder: Path, **sizes: Any) -> Path:
    source = tiny_gpt2(folder, d_vocab=len(pieces()), **sizes)
    (source / "tokenizer.json").write_text(tokenizer_json())
    return source


def _save(tensors: dict[str, torch.Tensor], folder: Path) -> Path:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors",
              metadata={"format": "pt"})  # fmt: skip
    return folder
