"""Small random GPT-2 and Llama checkpoints in the Hub's format, with a small real tokenizer, for every test to use.
Written by `transformers`, which is independent of the code under test.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

hf: Any = transformers  # most of its functions carry no types
TEXT = """The dog and the lion saw the horse. The Dog barked; the Lion roared; the Horse ran away from the dog.
A horse, a dog, a lion: animals of the farm and of the plain. Dogs and horses and lions like the grass and the river.
THE DOG SAW THE LION. Ten years, a decade, decades of years; a week, weeks, a month, months and a year.
She reads the words and he writes the words: reading, writing, reader, writer, word, words, sentence, sentences.
Paris is in France, Berlin is in Germany, Rome is in Italy; France, Germany and Italy are countries of Europe.
In 1969 and 2024 there were 12 apostles, 7 seas and 50 states. It's what we'll do, isn't it? They're here; I've seen.
"""
HOSTILE = ("<script>", '"></', "Ġ<b>", "&amp;", "Ġ{{x}}", "Ã", "âĢ", "Ċ", "ĠĠĠĠ")  # as byte-level BPE spells them


@cache
def tokenizer_json(vocabulary: int = 512) -> str:
    """A byte-level BPE tokenizer.json of GPT-2's kind: words with leading spaces, case variants, hostile tokens."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator(
        TEXT.splitlines(keepends=True),
        trainers.BpeTrainer(
            vocab_size=vocabulary - len(HOSTILE) - 1,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    model = json.loads(trained.to_str())["model"]
    vocab: dict[str, int] = model["vocab"]
    for token in HOSTILE:
        vocab.setdefault(token, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(pair) for pair in model["merges"]]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    return str(tokenizer.to_str(pretty=False))


def tiny_gpt2(
    folder: Path,
    *,
    n_layers: int = 2,
    n_heads: int = 4,
    d_model: int = 32,
    d_mlp: int | None = None,
    d_vocab: int | None = None,
    tied: bool = True,
    bare: bool = False,
    biases: bool = False,
    dtype: torch.dtype = torch.float32,
    shard_size: str = "1GB",
    seed: int = 0,
) -> Path:
    """A random GPT-2; `bare` leaves out the head, and with it the `transformer.` before every name."""
    config = hf.GPT2Config(
        n_layer=n_layers,
        n_head=n_heads,
        n_embd=d_model,
        n_inner=d_mlp,
        n_positions=64,
        vocab_size=d_vocab or _vocabulary_size(),
        tie_word_embeddings=tied,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = _random(hf.GPT2LMHeadModel(config), seed, biases)
    return _save(model.transformer if bare else model, folder, dtype, shard_size)


def tiny_llama(
    folder: Path,
    *,
    tied: bool = True,
    n_layers: int = 2,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    d_model: int = 32,
    d_head: int | None = None,
    d_mlp: int = 48,
    d_vocab: int | None = None,
    bare: bool = False,
    biases: bool = False,
    mlp_biases: bool = False,
    dtype: torch.dtype = torch.float32,
    shard_size: str = "1GB",
    seed: int = 0,
) -> Path:
    """A random Llama with grouped heads; `bare` leaves out the head, and with it the `model.` before every name."""
    config = hf.LlamaConfig(
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        num_key_value_heads=n_kv_heads,
        hidden_size=d_model,
        head_dim=d_head,
        intermediate_size=d_mlp,
        max_position_embeddings=64,
        vocab_size=d_vocab or _vocabulary_size(),
        tie_word_embeddings=tied,
        attention_bias=biases,
        mlp_bias=mlp_biases,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = _random(hf.LlamaForCausalLM(config), seed, biases)
    return _save(model.model if bare else model, folder, dtype, shard_size)


def _vocabulary_size() -> int:
    return Tokenizer.from_str(tokenizer_json()).get_vocab_size(with_added_tokens=True)


def _random(model: Any, seed: int, biases: bool) -> Any:
    """Larger than the usual start values, so that attention is far from even; norms near one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("bias"):
                parameter.copy_(0.3 * noise if biases else torch.zeros_like(noise))
            elif parameter.ndim == 1:
                parameter.copy_(1 + 0.1 * noise)
            else:
                parameter.copy_(noise / parameter.shape[-1] ** 0.5)
    return model.eval()


def _save(model: Any, folder: Path, dtype: torch.dtype, shard_size: str) -> Path:
    hf.utils.logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard_size)
    (folder / "tokenizer.json").write_text(tokenizer_json())
    return folder


def load(folder: Path, **options: Any) -> Any:
    """The model as `transformers` reads it from the folder, in float32."""
    hf.utils.logging.disable_progress_bar()
    return hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options).eval()
