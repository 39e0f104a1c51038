"""What a run of Llama needs: RMSNorms without biases, rotary positions, linear biases where config.json says so."""

from math import pi
from typing import Any

import torch

from precompute.errors import UnsupportedArchitecture
from precompute.live.weights import RunParameters, check_activation, stacked
from precompute.weights.architectures.base import Config, Model

_ATTENTION = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "o_proj"}
_MLP = {"ff_key": "gate_proj", "ff_up": "up_proj", "ff_value": "down_proj"}
_WRITES = ("w_o", "ff_value")


def run_parameters(model: Model) -> RunParameters:
    s, config = model.shape, Config(model.checkpoint)
    blocks = [f"layers.{layer}." for layer in range(s.n_layers)]

    def of_layers(name: str, size: int) -> torch.Tensor:
        """(n_layers, size)"""
        return stacked(model, [block + name for block in blocks], size)

    biased = {
        kind: f"{block}.{name}.bias"
        for flag, block, names in (("attention_bias", "self_attn", _ATTENTION), ("mlp_bias", "mlp", _MLP))
        if config.flag(flag, default=False)
        for kind, name in names.items()
    }
    return RunParameters(
        n_positions=config.size("max_position_embeddings", default=2048),
        activation=check_activation(config.values.get("hidden_act", "silu"), model.checkpoint.source),
        rms=True,
        eps=float(config.values.get("rms_norm_eps", 1e-6)),
        gains={
            "attention": of_layers("input_layernorm.weight", s.d_model),
            "ff": of_layers("post_attention_layernorm.weight", s.d_model),
            "final": stacked(model, ["norm.weight"], s.d_model),
        },
        norm_biases={},
        biases={
            kind: of_layers(name, s.d_model if kind in _WRITES else s.count(kind)) for kind, name in biased.items()
        },
        scales=(s.d_head**-0.5,) * s.n_layers,
        frequencies=_frequencies(config, s.d_head, model.checkpoint.source),
    )


def _frequencies(config: Config, d_head: int, where: str) -> torch.Tensor:
    """(d_head / 2,) radians per position. Older files say rope_theta and rope_scaling, newer ones rope_parameters."""
    rope: dict[str, Any] = dict(config.values.get("rope_parameters") or config.values.get("rope_scaling") or {})
    theta = float(rope.get("rope_theta") or config.values.get("rope_theta") or 10_000.0)
    plain = 1.0 / theta ** (torch.arange(0, d_head, 2, dtype=torch.float32) / d_head)
    match rope.get("rope_type") or rope.get("type") or "default":
        case "default":
            return plain
        case "linear":
            return plain / float(rope["factor"])
        case "llama3":
            longest = rope.get("original_max_position_embeddings") or config.values.get("max_position_embeddings")
            return _llama3(plain, rope, float(longest or 8192))
        case other:
            raise UnsupportedArchitecture(
                f"{where} has rotary positions of the type {other!r}, which cannot be run. "
                "Known are default, linear and llama3."
            )


def _llama3(plain: torch.Tensor, rope: dict[str, Any], longest: float) -> torch.Tensor:
    """Slow frequencies are divided by `factor`, fast ones are kept, those between are blended (Llama 3.1)."""
    factor, low, high = (float(rope[name]) for name in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = longest * plain / (2 * pi)  # over the context of the training
    blend = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - blend) * plain / factor + blend * plain
