"""GPT-Neo (TinyStories): GPT-2's blocks with separate matrices and unscaled attention scores; attention is local in
every second layer."""

from lexiscope.precompute.weights.architectures.base import Model


class GPTNeo(Model):
    model_types = {"gpt_neo": "GPT-Neo"}
    config_names = {"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"}
    mlp_factor = 4
    tied_by_default = True
    positions = "learned"
    prefixes = ("transformer.", "")
    embedding = "wte"
    position_embedding = "wpe"
    block = "h.{}"
    linears = {
        "ff_key": "mlp.c_fc",
        "ff_value": "mlp.c_proj",
        "w_q": "attn.attention.q_proj",
        "w_k": "attn.attention.k_proj",
        "w_v": "attn.attention.v_proj",
        "w_o": "attn.attention.out_proj",
    }
    attention = "attn.attention"
    norms = {"attention": "ln_1", "ff": "ln_2", "final": "ln_f"}
    after_attention = "ln_2"
    activation_field = "activation_function"

    def scale(self, layer: int) -> float:  # noqa: ARG002
        return 1.0


MODEL = GPTNeo
