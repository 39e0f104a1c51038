"""Falcon: q, k and v in one matrix as in GPT-NeoX, heads that share keys and values, and mostly attention and FF in
parallel. A config decides how many heads share, and which norms there are."""

from dataclasses import replace

from lexiscope.precompute.errors import UnsupportedArchitecture
from lexiscope.precompute.shape import Shape
from lexiscope.precompute.weights.architectures.config import Config
from lexiscope.precompute.weights.architectures.gpt_neox import GPTNeoX


class Falcon(GPTNeoX):
    model_types = {"falcon": "Falcon"}
    config_names = {"num_key_value_heads": "num_kv_heads", "intermediate_size": "ffn_hidden_size"}
    mlp_factor = 4
    tied_by_default = True
    rotary_share = 1.0
    prefixes = ("transformer.", "")
    embedding = "word_embeddings"
    unembeddings = ("lm_head",)
    block = "h.{}"
    linears = {kind: name.replace("attention.", "self_attention.") for kind, name in GPTNeoX.linears.items()}
    attention = "self_attention"
    activation_field = "activation"

    def adapt(self, config: Config) -> None:
        """Choose the norms: one for both attention and FF, one for each, or, if FF comes after attention, one before
        each."""
        new = config.flag("new_decoder_architecture", default=False)
        parallel = config.flag("parallel_attn", default=True)
        two = config.size("num_ln_in_parallel_attn", default=2 if new else 1) == 2
        source = self.checkpoint.source
        if config.flag("alibi", default=False):
            raise UnsupportedArchitecture(
                f"{source} is a Falcon with ALiBi positions (as Falcon-RW), which are not supported. "
                "Falcons with rotary positions can be read: 7B, 11B, 40B, 180B."
            )
        if (new and not parallel) or (two and not new):
            raise UnsupportedArchitecture(
                f"The config.json of {source} asks for norms that no Falcon has, and that transformers cannot run: "
                f"new_decoder_architecture is {new}, parallel_attn {parallel}, num_ln_in_parallel_attn {1 + two}."
            )
        before, after = ("ln_attn", "ln_mlp") if two else ("input_layernorm", "input_layernorm")
        self.norms = {"attention": before, "ff": after if parallel else "post_attention_layernorm", "final": "ln_f"}

    def read_shape(self, config: Config) -> Shape:
        """Read the shape. The old architecture ignores num_kv_heads: its heads share all keys and values, or none."""
        shape = super().read_shape(config)
        if config.flag("new_decoder_architecture", default=False):
            return shape
        return replace(shape, n_kv_heads=1 if config.flag("multi_query", default=True) else shape.n_heads)

    def scale(self, layer: int) -> float:
        return float(self.attention_of(layer).inv_norm_factor)


MODEL = Falcon
