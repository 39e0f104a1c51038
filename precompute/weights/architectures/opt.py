"""OPT: separate matrices, learned positions (stored from the third row on), norms before attention and FF."""

from lexiscope.precompute.errors import UnsupportedArchitecture
from lexiscope.precompute.shape import Shape
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.config import Config


class OPT(Model):
    model_types = {"opt": "OPT"}
    config_names = {"intermediate_size": "ffn_dim"}
    tied_by_default = True
    positions = "learned"
    prefixes = ("model.decoder.", "decoder.", "")
    embedding = "embed_tokens"
    position_embedding = "embed_positions"
    first_position = 2
    block = "layers.{}"
    linears = {
        "ff_key": "fc1",
        "ff_value": "fc2",
        "w_q": "self_attn.q_proj",
        "w_k": "self_attn.k_proj",
        "w_v": "self_attn.v_proj",
        "w_o": "self_attn.out_proj",
    }
    body = "decoder"
    attention = "self_attn"
    norms = {"attention": "self_attn_layer_norm", "ff": "final_layer_norm", "final": "final_layer_norm"}
    after_attention = "final_layer_norm"
    activation_field = "activation_function"

    def read_shape(self, config: Config) -> Shape:
        """Read the shape; refuse OPT-350m, the only one with embeddings of another width than its blocks, and with
        norms after its blocks."""
        shape = super().read_shape(config)
        width = config.size("word_embed_proj_dim", default=shape.d_model)
        if width != shape.d_model or not config.flag("do_layer_norm_before", default=True):
            raise UnsupportedArchitecture(
                f"{self.checkpoint.source} is built like OPT-350m: its embeddings have {width} numbers, its blocks "
                f"{shape.d_model}, or its norms come after the blocks. Every other size of OPT can be read."
            )
        return shape


MODEL = OPT
