"""What a run of GPT-2 needs: LayerNorms with biases, biases everywhere, learned positions."""

import torch

from precompute.errors import BadWeights
from precompute.live.weights import RunParameters, check_activation, stacked
from precompute.weights.architectures.base import Config, Model


def run_parameters(model: Model) -> RunParameters:
    s, config = model.shape, Config(model.checkpoint)
    blocks = [f"h.{layer}." for layer in range(s.n_layers)]

    def of_layers(name: str, size: int) -> torch.Tensor:
        """(n_layers, size)"""
        return stacked(model, [block + name for block in blocks], size)

    n_positions = config.size("n_positions", "max_position_embeddings", default=1024)
    positions = model.tensor("wpe.weight")
    if positions.shape != (n_positions, s.d_model):
        raise BadWeights(
            f"wpe.weight of {model.checkpoint.folder} has the shape {tuple(positions.shape)}, "
            f"not {(n_positions, s.d_model)}. Get the whole checkpoint again."
        )
    q, k, v = of_layers("attn.c_attn.bias", 3 * s.d_model).chunk(3, dim=1)
    scale = s.d_head**-0.5 if config.flag("scale_attn_weights", default=True) else 1.0
    by_layer = config.flag("scale_attn_by_inverse_layer_idx", default=False)
    return RunParameters(
        n_positions=n_positions,
        activation=check_activation(config.values.get("activation_function", "gelu_new"), model.checkpoint.source),
        rms=False,
        eps=float(config.values.get("layer_norm_epsilon", 1e-5)),
        gains={
            "attention": of_layers("ln_1.weight", s.d_model),
            "ff": of_layers("ln_2.weight", s.d_model),
            "final": stacked(model, ["ln_f.weight"], s.d_model),
        },
        norm_biases={
            "attention": of_layers("ln_1.bias", s.d_model),
            "ff": of_layers("ln_2.bias", s.d_model),
            "final": stacked(model, ["ln_f.bias"], s.d_model),
        },
        biases={
            "w_q": q.contiguous(),
            "w_k": k.contiguous(),
            "w_v": v.contiguous(),
            "w_o": of_layers("attn.c_proj.bias", s.d_model),
            "ff_key": of_layers("mlp.c_fc.bias", s.d_mlp),
            "ff_value": of_layers("mlp.c_proj.bias", s.d_model),
        },
        scales=tuple(scale / (layer + 1 if by_layer else 1) for layer in range(s.n_layers)),
        positions=positions,
    )
