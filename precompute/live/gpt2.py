"""GPT-2: LayerNorms with biases, biases everywhere, learned positions.
Which tensors hold the vectors is for precompute/architectures/gpt2.py.
"""

import torch

from precompute.errors import BadWeights
from precompute.live.weights import Extras, check_activation, stacked
from precompute.weights.architectures.base import Config, Model


def extras(model: Model) -> Extras:
    s, config = model.shape, Config(model.checkpoint)
    blocks = [f"h.{layer}." for layer in range(s.n_layers)]

    def each(name: str, size: int) -> torch.Tensor:
        return stacked(model, [block + name for block in blocks], size)

    n_positions = config.size("n_positions", "max_position_embeddings", default=1024)
    positions = model.tensor("wpe.weight")
    if positions.shape != (n_positions, s.d_model):
        raise BadWeights(
            f"wpe.weight of {model.checkpoint.folder} has the shape {tuple(positions.shape)}, "
            f"not {(n_positions, s.d_model)}. Get the whole checkpoint again."
        )
    q, k, v = each("attn.c_attn.bias", 3 * s.d_model).chunk(3, dim=1)
    scale = s.d_head**-0.5 if config.flag("scale_attn_weights", default=True) else 1.0
    by_layer = config.flag("scale_attn_by_inverse_layer_idx", default=False)
    return Extras(
        n_positions=n_positions,
        activation=check_activation(config.values.get("activation_function", "gelu_new"), model.checkpoint.source),
        rms=False,
        eps=float(config.values.get("layer_norm_epsilon", 1e-5)),
        gains={
            "attention": each("ln_1.weight", s.d_model),
            "ff": each("ln_2.weight", s.d_model),
            "final": stacked(model, ["ln_f.weight"], s.d_model),
        },
        norm_biases={
            "attention": each("ln_1.bias", s.d_model),
            "ff": each("ln_2.bias", s.d_model),
            "final": stacked(model, ["ln_f.bias"], s.d_model),
        },
        biases={
            "w_q": q.contiguous(),
            "w_k": k.contiguous(),
            "w_v": v.contiguous(),
            "w_o": each("attn.c_proj.bias", s.d_model),
            "ff_key": each("mlp.c_fc.bias", s.d_mlp),
            "ff_value": each("mlp.c_proj.bias", s.d_model),
        },
        scales=tuple(scale / (layer + 1 if by_layer else 1) for layer in range(s.n_layers)),
        positions=positions,
    )
