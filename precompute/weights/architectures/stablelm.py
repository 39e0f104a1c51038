"""StableLM: Llama's matrices between LayerNorms. A config may compute attention and FF in parallel, with one norm for
both, and give the queries and keys of each head norms of their own."""

from typing import Any

from lexiscope.precompute.weights.architectures.config import Config
from lexiscope.precompute.weights.architectures.llama import Llama


class StableLM(Llama):
    model_types = {"stablelm": "StableLM"}
    default_d_head = {}
    rotary_share = 0.25
    centres = True
    left_out = {}
    gguf = None

    def adapt(self, config: Config) -> None:
        if config.flag("use_parallel_residual", default=False):
            self.norms = self.norms | {"ff": self.norms["attention"]}
        if config.flag("qk_layernorm", default=False):
            self.left_out = {"stablelm": ("the norms of queries and keys",)}

    def head_norms(self, layer: int, kind: str) -> list[Any]:
        norm = getattr(self.attention_of(layer), {"w_q": "q_layernorm", "w_k": "k_layernorm"}[kind], None)
        return [] if norm is None else list(norm.norms)


MODEL = StableLM
