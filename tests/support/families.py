"""Make small random checkpoints of every supported family, as `transformers` saves them, with a tokenizer of its kind.

They have what is special about their family: grouped heads, biases, norms of queries and keys, soft caps, windows
shorter than the texts of the tests, partial rotary positions, heads that are wider than d_model / n_heads."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.models import hf, randomise
from tests.support.tokenizers import TOKENIZERS

POSITIONS = 64


@dataclass(frozen=True)
class Family:
    """Say how to make a checkpoint: the classes of transformers, and the fields of its config beside the sizes that all
    share."""

    config: str
    net: str
    tokenizer: str
    sizes: dict[str, Any] = field(default_factory=dict)

    @property
    def model_type(self) -> str:
        return str(getattr(hf, self.config).model_type)

    def save(self, folder: Path, *, shard_size: str = "1GB", seed: int = 0, n_layers: int = 3, **changes: Any) -> Path:
        tokenizer = TOKENIZERS[self.tokenizer]()
        names = self.sizes | changes
        usual = {"hidden_size": 32, "num_hidden_layers": n_layers, "num_attention_heads": 4, "intermediate_size": 48}
        usual |= {"max_position_embeddings": POSITIONS, "vocab_size": tokenizer.size, **tokenizer.special_ids}
        fields = {name: value for name, value in (usual | names).items() if value is not None}
        config = getattr(hf, self.config)(**fields)
        net = randomise(getattr(hf, self.net)(config), seed)
        hf.utils.logging.disable_progress_bar()
        net.save_pretrained(folder, max_shard_size=shard_size)
        tokenizer.save(folder)
        return folder


_GROUPED = {"num_key_value_heads": 2}
_WIDE = {"num_key_value_heads": 2, "head_dim": 16}
_WINDOW = {"sliding_window": 4}
_LAYERS = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
_PHI = {"partial_rotary_factor": 0.5, "pad_token_id": 0}
_GPT2 = {"intermediate_size": None}
_FALCON = {"intermediate_size": None, "ffn_hidden_size": 48}
_NEW = {"new_decoder_architecture": True, "num_kv_heads": 2}
_DISTIL = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48}
_NEO = {"num_layers": 3, "num_heads": 4, "attention_types": [[["global", "local", "global"], 1]], "window_size": 4}
FAMILIES: dict[str, Family] = {
    "gpt2": Family("GPT2Config", "GPT2LMHeadModel", "gpt2", _GPT2 | {"n_inner": 160}),
    "gpt2-untied": Family("GPT2Config", "GPT2LMHeadModel", "gpt2", _GPT2 | {"tie_word_embeddings": False}),
    "llama": Family("LlamaConfig", "LlamaForCausalLM", "llama", _GROUPED | {"tie_word_embeddings": True}),
    "llama3": Family("LlamaConfig", "LlamaForCausalLM", "llama3", {
        "num_key_value_heads": 1, "head_dim": 16, "attention_bias": True, "mlp_bias": True,
        "rope_parameters": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32, "rope_theta": 10_000.0,
        },
    }),
    "mistral": Family("MistralConfig", "MistralForCausalLM", "mistral", _WIDE | _WINDOW),
    "qwen2": Family("Qwen2Config", "Qwen2ForCausalLM", "qwen", _GROUPED | {"tie_word_embeddings": True}),
    "qwen3": Family("Qwen3Config", "Qwen3ForCausalLM", "qwen", _WIDE),
    "gemma": Family("GemmaConfig", "GemmaForCausalLM", "gemma", _WIDE),
    "gemma2": Family("Gemma2Config", "Gemma2ForCausalLM", "gemma", _WIDE | _WINDOW | _LAYERS | {
        "query_pre_attn_scalar": 12, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0,
    }),
    "gemma3_text": Family("Gemma3TextConfig", "Gemma3ForCausalLM", "gemma", _WIDE | _WINDOW | _LAYERS),
    "phi3": Family("Phi3Config", "Phi3ForCausalLM", "phi3", _GROUPED | _WINDOW | _PHI),
    "gpt_neox": Family("GPTNeoXConfig", "GPTNeoXForCausalLM", "gpt_neox", {"rotary_pct": 0.25, "hidden_size": 64}),
    "gpt_neox-serial": Family("GPTNeoXConfig", "GPTNeoXForCausalLM", "gpt_neox", {"use_parallel_residual": False}),
    "stablelm": Family("StableLmConfig", "StableLmForCausalLM", "gpt_neox", {"num_key_value_heads": 4}),
    "stablelm-12b": Family("StableLmConfig", "StableLmForCausalLM", "gpt_neox", _GROUPED | {
        "use_qkv_bias": True, "qk_layernorm": True, "use_parallel_residual": True, "partial_rotary_factor": 0.5,
    }),
    "falcon": Family("FalconConfig", "FalconForCausalLM", "gpt2", _FALCON),
    "falcon-40b": Family("FalconConfig", "FalconForCausalLM", "gpt2", _FALCON | _NEW | {
        "bias": True, "tie_word_embeddings": False,
    }),
    "falcon-11b": Family("FalconConfig", "FalconForCausalLM", "gpt2", _FALCON | _NEW | {"num_ln_in_parallel_attn": 1}),
    "falcon-serial": Family("FalconConfig", "FalconForCausalLM", "gpt2", _FALCON | {
        "multi_query": False, "parallel_attn": False, "bias": True,
    }),
    "gpt_neo": Family("GPTNeoConfig", "GPTNeoForCausalLM", "gpt_neo", _NEO),
    "opt": Family("OPTConfig", "OPTForCausalLM", "opt", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "bert": Family("BertConfig", "BertForMaskedLM", "bert"),
    "bert-bare": Family("BertConfig", "BertModel", "bert"),
    "roberta": Family("RobertaConfig", "RobertaForMaskedLM", "roberta"),
    "xlm-roberta": Family("XLMRobertaConfig", "XLMRobertaForMaskedLM", "xlm-roberta"),
    "distilbert": Family("DistilBertConfig", "DistilBertForMaskedLM", "distilbert", _DISTIL),
}  # fmt: skip


# One of each kind: biases and learned positions; rotary positions, grouped heads and gates; norms of Gemma, soft caps
# and windows; an encoder. Most tests run on these alone.
ARCHETYPES = ("gpt2", "llama3", "gemma2", "bert")


def family_parameters(*names: str) -> list[Any]:
    """Return these families, or all, as parameters of a test or fixture; all except the archetypes are marked as
    slow."""
    return [pytest.param(name, marks=() if name in ARCHETYPES else pytest.mark.slow) for name in names or FAMILIES]


def archetype_parameters(*names: str) -> list[Any]:
    """Return the archetypes as parameters, and for `make test-all` also these families, or all."""
    others = pytest.mark.slow, pytest.mark.all_families
    return [pytest.param(name, marks=() if name in ARCHETYPES else others) for name in names or FAMILIES]


def load_net(folder: Path, **options: Any) -> Any:
    """Load the checkpoint as `transformers` runs it: with the head that predicts tokens, if it has one."""
    config = hf.AutoConfig.from_pretrained(folder)
    name = (config.architectures or ["AutoModel"])[0]
    hf.utils.logging.disable_progress_bar()
    options |= {"dtype": torch.float32, "attn_implementation": "eager"}
    return getattr(hf, name).from_pretrained(folder, **options).eval()
