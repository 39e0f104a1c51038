"""GPT-2 and its fine-tunes: where each kind of vector stands in the checkpoint's tensors.
Its linear layers (Conv1D) are stored (in, out), the transpose of everybody else's.
"""

import torch

from precompute.shape import Shape
from precompute.weights.architectures.base import Config, Model


class GPT2(Model):
    model_types = ("gpt2",)
    classes = ("GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel")
    prefixes = ("transformer.", "")
    embedding = "wte.weight"

    def read_shape(self, config: Config) -> Shape:
        d_model = config.size("n_embd", "hidden_size")
        n_heads = config.size("n_head", "num_attention_heads")
        tied = config.flag("tie_word_embeddings", default=True)
        return Shape(
            architecture="gpt2",
            n_layers=config.size("n_layer", "num_hidden_layers"),
            n_heads=n_heads,
            n_kv_heads=n_heads,
            d_model=d_model,
            d_head=config.share(d_model, n_heads, "n_embd over n_head"),
            d_mlp=config.size("n_inner", default=4 * d_model),
            d_vocab=config.size("vocab_size"),
            gated=False,
            tied=tied,
            positions="learned",
        )

    def layer_tensors(self, layer: int) -> dict[str, tuple[int, ...]]:
        d, m = self.shape.d_model, self.shape.d_mlp
        return {
            f"h.{layer}.attn.c_attn.weight": (d, 3 * d),
            f"h.{layer}.attn.c_proj.weight": (d, d),
            f"h.{layer}.mlp.c_fc.weight": (d, m),
            f"h.{layer}.mlp.c_proj.weight": (m, d),
        }

    def read(self, layer: int, kind: str) -> torch.Tensor:
        block = f"h.{layer}."
        match kind:
            case "ff_key":
                return self.tensor(block + "mlp.c_fc.weight").T
            case "ff_value":
                return self.tensor(block + "mlp.c_proj.weight")
            case "w_o":
                return self.tensor(block + "attn.c_proj.weight")
        third = ("w_q", "w_k", "w_v").index(kind)
        return self.tensor(block + "attn.c_attn.weight").chunk(3, dim=1)[third].T  # (d_model, 3·d_model), columns q|k|v


MODEL = GPT2
