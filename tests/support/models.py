"""Make small random GPT-2 and Llama checkpoints in the Hub's format, with a small real tokenizer, for every test to
use. `transformers`, which is independent of the code under test, writes them."""

from pathlib import Path
from typing import Any

import torch
import transformers

from tests.support.tokenizers import gpt2

hf: Any = transformers  # most of its functions carry no types


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
    """Save a random GPT-2; `bare` leaves out the head, and with it the `transformer.` before every name."""
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
    biases: bool = False,
    dtype: torch.dtype = torch.float32,
    shard_size: str = "1GB",
    seed: int = 0,
) -> Path:
    """Save a random Llama with grouped heads."""
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
        bos_token_id=0,
        eos_token_id=0,
    )
    return _save(_random(hf.LlamaForCausalLM(config), seed, biases), folder, dtype, shard_size)


def _vocabulary_size() -> int:
    return gpt2().size


def _random(model: Any, seed: int, biases: bool) -> Any:
    """Set random weights larger than the usual start values, so that attention is far from even; norms are near one."""
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
    (folder / "tokenizer.json").write_text(gpt2().json)
    return folder


def randomise(net: Any, seed: int = 0) -> Any:
    """Set random weights larger than the usual start values, so that attention is far from even; set biases; norms are
    near one."""
    return _random(net, seed, biases=True)


def load(folder: Path, **options: Any) -> Any:
    """Load the model with `transformers` from the folder, in float32."""
    hf.utils.logging.disable_progress_bar()
    return hf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **options).eval()
