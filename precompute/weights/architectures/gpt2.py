"""GPT-2 and its fine-tunes: LayerNorms, learned positions, q, k and v in one matrix.
Its linear layers (Conv1D) are stored (in, out), the transpose of everybody else's.
"""

from precompute.weights.architectures.base import Model


class GPT2(Model):
    model_types = {"gpt2": "GPT-2"}
    config_names = {
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "n_inner",
    }
    mlp_factor = 4
    tied_by_default = True
    positions = "learned"
    prefixes = ("transformer.", "")
    embedding = "wte"
    block = "h.{}"
    linears = {
        "ff_key": "mlp.c_fc",
        "ff_value": "mlp.c_proj",
        "w_q": "attn.c_attn",
        "w_k": "attn.c_attn",
        "w_v": "attn.c_attn",
        "w_o": "attn.c_proj",
    }
    stored_in_out = True
    attention = "attn"
    norms = {"attention": "ln_1", "ff": "ln_2", "final": "ln_f"}
    after_attention = "ln_2"
    activation_field = "activation_function"


MODEL = GPT2
