"""Run small models of every family with `transformers`. The names of their modules are written here once more, apart
from the code under test, and a run keeps what went in and out of them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from lexiscope.precompute.weights.architectures.base import Model
from tests.support.families import load_net

Step = tuple[int, str]  # a layer, and after which part of it: embedding, attention, ff


@dataclass(frozen=True)
class Layout:
    """Names of modules: `blocks`, `first_norm` and `final_norm` of the base model, the others of a block."""

    blocks: str
    attention: str  # the module that makes queries, keys and values of its input
    w_o: str
    # The module whose output attention adds to the stream; in an encoder, whose output is the stream itself.
    written: str
    ff_key: str
    ff_value: str
    # The norm before attention; in an encoder the last norm of the block, which the next block's attention reads.
    attention_norm: str
    ff_norm: str  # the norm before FF
    final_norm: str = ""
    first_norm: str = ""  # only in an encoder: the norm after the embeddings


_GPT2 = Layout("h", "attn", "attn.c_proj", "attn", "mlp.c_fc", "mlp.c_proj", "ln_1", "ln_2", "ln_f")
_LLAMA = Layout(
    "layers", "self_attn", "self_attn.o_proj", "self_attn", "mlp.gate_proj", "mlp.down_proj",
    "input_layernorm", "post_attention_layernorm", "norm",
)  # fmt: skip
_GEMMA2 = Layout(
    "layers", "self_attn", "self_attn.o_proj", "post_attention_layernorm", "mlp.gate_proj", "mlp.down_proj",
    "input_layernorm", "pre_feedforward_layernorm", "norm",
)  # fmt: skip
_BERT = Layout(
    "encoder.layer", "attention.self", "attention.output.dense", "attention.output", "intermediate.dense",
    "output.dense", "output.LayerNorm", "attention.output.LayerNorm", first_norm="embeddings.LayerNorm",
)  # fmt: skip
LAYOUTS = {
    "gpt2": _GPT2,
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma"), _LLAMA),
    **dict.fromkeys(("gemma2", "gemma3_text"), _GEMMA2),
    "phi3": Layout(
        "layers", "self_attn", "self_attn.o_proj", "self_attn", "mlp.gate_up_proj", "mlp.down_proj",
        "input_layernorm", "post_attention_layernorm", "norm",
    ),
    "gpt_neox": Layout(
        "layers", "attention", "attention.dense", "attention", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h",
        "input_layernorm", "post_attention_layernorm", "final_layer_norm",
    ),
    "stablelm": _LLAMA,
    "falcon": Layout(
        "h", "self_attention", "self_attention.dense", "self_attention", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h",
        "input_layernorm", "input_layernorm", "ln_f",
    ),
    "gpt_neo": Layout(
        "h", "attn.attention", "attn.attention.out_proj", "attn", "mlp.c_fc", "mlp.c_proj", "ln_1", "ln_2", "ln_f",
    ),
    "opt": Layout(
        "decoder.layers", "self_attn", "self_attn.out_proj", "self_attn", "fc1", "fc2",
        "self_attn_layer_norm", "final_layer_norm", "decoder.final_layer_norm",
    ),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta"), _BERT),
    "distilbert": Layout(
        "transformer.layer", "attention", "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2",
        "output_layer_norm", "sa_layer_norm", first_norm="embeddings.LayerNorm",
    ),
}  # fmt: skip


def layout_of(config: Any) -> Layout:
    """Return the layout of the family; the config may decide which norms there are."""
    layout = LAYOUTS[config.model_type]
    if config.model_type == "stablelm" and config.use_parallel_residual:
        return replace(layout, ff_norm=layout.attention_norm)
    if config.model_type == "falcon" and config.num_ln_in_parallel_attn == 2:
        return replace(layout, attention_norm="ln_attn", ff_norm="ln_mlp")
    if config.model_type == "falcon" and not config.parallel_attn:
        return replace(layout, ff_norm="post_attention_layernorm")
    return layout


@dataclass
class Run:
    """What a net computes for one prompt of T tokens; lists have an entry for each layer."""

    logits: Tensor | None  # (T, d_vocab)
    attentions: list[Tensor]  # (n_heads, T, T)
    streams: dict[Step, Tensor]  # (T, d_model)
    reads: list[Tensor]  # (T, d_model) the input of attention
    mixed: list[Tensor]  # (T, n_heads · d_head) the input of w_o
    attended: list[Tensor]  # (T, d_model) the output of w_o
    keys: list[Tensor]  # (T, d_mlp) what ff_key reads, before the activation
    coefficients: list[Tensor]  # (T, d_mlp) the input of ff_value
    written: list[Tensor]  # (T, d_model) the output of ff_value
    rotations: list[tuple[Tensor, Tensor] | None]  # cosines and sines (T, ...), if positions are rotary


class Net:
    def __init__(self, folder: Path) -> None:
        self.net = load_net(folder).requires_grad_(False)
        self.layout = layout_of(self.net.config)
        self.body = self.net.base_model
        self.blocks = self.body.get_submodule(self.layout.blocks)

    @property
    def parallel(self) -> bool:
        """Return True if FF reads the same stream as attention, without attention's output."""
        config = self.net.config
        return bool(getattr(config, "parallel_attn", getattr(config, "use_parallel_residual", False)))

    def module(self, layer: int, name: str) -> Any:
        """Return a module of a block, by its name in Layout."""
        return self.blocks[layer].get_submodule(getattr(self.layout, name))

    def norm(self, name: str, layer: int = 0) -> Any:
        """Return the norm before "attention" or "ff" of a layer, or before W_U ("final"). In an encoder it is the norm
        whose output is read there: that of the embeddings, or of the layer before."""
        if name == "ff":
            return self.module(layer, "ff_norm")
        if not self.layout.first_norm:
            final = name == "final"
            return self.body.get_submodule(self.layout.final_norm) if final else self.module(layer, "attention_norm")
        before = len(self.blocks) - 1 if name == "final" else layer - 1
        first = before < 0
        return self.body.get_submodule(self.layout.first_norm) if first else self.module(before, "attention_norm")

    def run(self, tokens: tuple[int, ...]) -> Run:
        seen: dict[Any, tuple[Any, dict[str, Any], Any]] = {}  # arguments and output by module
        every = [module for module in self.net.modules() if module is not self.net]

        def keep(module: Any, args: Any, kwargs: Any, output: Any) -> None:  # Falcon adds to an output in place
            seen[module] = args, kwargs, output.clone() if isinstance(output, Tensor) else output

        with _hooked(every, keep, with_kwargs=True):
            out = self.net(torch.tensor([tokens]), output_attentions=True)
        layers, T = range(len(self.blocks)), len(tokens)

        def into(module: Any) -> Tensor:
            args, kwargs, _ = seen[module]
            value: Tensor = args[0] if args else kwargs["hidden_states"]
            return value.view(T, -1)

        def out_of(module: Any) -> Tensor:
            value = seen[module][2]
            tensor: Tensor = value[0] if isinstance(value, tuple) else value
            return tensor.view(T, -1)

        streams: dict[Step, Tensor] = {(0, "embedding"): into(self.blocks[0])}
        rotations: list[tuple[Tensor, Tensor] | None] = []
        for layer in layers:
            block, written = self.blocks[layer], out_of(self.module(layer, "written"))
            streams[layer, "attention"] = written if self.layout.first_norm else into(block) + written
            streams[layer, "ff"] = out_of(block)
            turned = seen[self.module(layer, "attention")][1].get("position_embeddings")
            rotations.append(turned and (turned[0][0], turned[1][0]))
        coefficients = [into(self.module(layer, "ff_value")) for layer in layers]
        return Run(
            logits=out.logits[0] if hasattr(out, "logits") else None,
            attentions=[weights[0] for weights in out.attentions],
            streams=streams,
            reads=[into(self.module(layer, "attention")) for layer in layers],
            mixed=[into(self.module(layer, "w_o")) for layer in layers],
            attended=[out_of(self.module(layer, "w_o")) for layer in layers],
            keys=[out_of(self.module(layer, "ff_key"))[:, : coefficients[0].shape[1]] for layer in layers],
            coefficients=coefficients,
            written=[out_of(self.module(layer, "ff_value")) for layer in layers],
            rotations=rotations,
        )

    def scores(
        self, model: Model, layer: int, x: Tensor, at: Tensor, others: Tensor, there: Tensor, run: Run
    ) -> Tensor:
        """Return the attention scores (n_heads, n, m) of states x (n, d_model) at positions `at` that look at `others`
        (m, d_model) at positions `there`, from the vectors w_q and w_k. Norms and rotations are those of
        `transformers`."""
        attention, s = self.module(layer, "attention"), model.shape

        def heads(kind: str, states: Tensor) -> Tensor:
            made = functional.linear(states, model.vectors(layer, kind), model.in_memory(self.net).bias(layer, kind))
            return made.view(len(states), -1, s.d_head)

        q, k = heads("w_q", x), heads("w_k", others)
        if hasattr(attention, "q_norm"):
            q, k = attention.q_norm(q), attention.k_norm(k)
        if getattr(attention, "qk_layernorm", False):  # these take (1, heads, n, d_head)
            q, k = (
                norm(each.transpose(0, 1)[None])[0].transpose(0, 1)
                for norm, each in ((attention.q_layernorm, q), (attention.k_layernorm, k))
            )
        q, k = q.transpose(0, 1), k.transpose(0, 1).repeat_interleave(s.n_heads // s.n_kv_heads, dim=0)
        rotation = run.rotations[layer]
        if rotation is not None:
            turn = sys.modules[type(attention).__module__].apply_rotary_pos_emb
            cos, sin = (each[None] for each in rotation)
            turning = cos.shape[-1]

            def turned(x: Tensor, where: Tensor) -> Tensor:
                part = x[None, ..., :turning]
                return torch.cat((turn(part, part, cos[:, where], sin[:, where])[0][0], x[..., turning:]), dim=-1)

            q, k = turned(q, at), turned(k, there)
        scaling = getattr(attention, "scaling", getattr(attention, "inv_norm_factor", 1.0))
        scores: Tensor = q @ k.transpose(1, 2) * scaling
        cap = self.soft_cap
        return scores if cap is None else cap * torch.tanh(scores / cap)

    @property
    def soft_cap(self) -> float | None:
        """Return the soft cap of attention scores; None if there is none."""
        return getattr(self.net.config, "attn_logit_softcapping", None)

    @property
    def embedding_scale(self) -> float:
        """Return the factor of embeddings before the first layer, measured by what the module gives for a token."""
        embed = self.net.get_input_embeddings()
        return float((embed(torch.tensor([5])) / embed.weight[5]).nanmean())  # a weight may be 0

    def logits(self, stream: Tensor) -> Tensor:
        """Return logits (T, d_vocab) from a stream (T, d_model) after the last layer, by all modules that follow."""

        def instead(_: Any, __: Any, output: Any) -> Any:
            return (stream[None], *output[1:]) if isinstance(output, tuple) else stream[None]

        with _hooked([self.blocks[-1]], instead):
            logits: Tensor = self.net(torch.full((1, len(stream)), 5)).logits
        return logits[0]

    def after_first_ff(self) -> Tensor:
        """Return the stream after the first layer of every token alone, (d_vocab, d_model), without attention and
        positions."""
        made: list[Tensor] = []
        endings = ("wpe", "embed_positions", "position_embeddings", "token_type_embeddings")
        places = [module for name, module in self.body.named_modules() if name.endswith(endings)]
        silent = [*places, self.module(0, "w_o")]
        tokens = torch.arange(self.net.config.vocab_size)[:, None]
        with (
            _hooked(silent, lambda _, __, output: torch.zeros_like(output)),
            _hooked([self.blocks[0]], lambda _, __, output: made.append(output)),
        ):
            self.body(tokens)
        (after,) = (each[0] if isinstance(each, tuple) else each for each in made)
        return after[:, 0]

    def after_first_block(self) -> Tensor:
        """Return the hidden states after the first layer of every token as a text of its own, (d_vocab, d_model)."""
        tokens = torch.arange(self.net.config.vocab_size)[:, None]
        states: Tensor = self.net(tokens, output_hidden_states=True).hidden_states[1]
        return states[:, 0]

    def undivided_norm(self, name: str, layer: int, x: Tensor) -> Tensor:
        """Return what a norm makes of x (n, d_model), bias included, times what it divides each by, in float64."""
        module: Any = self.norm(name, layer)
        centred = x - x.mean(dim=1, keepdim=True) if isinstance(module, torch.nn.LayerNorm) else x
        eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
        made: Tensor = module(x).double() * (centred.double().square().mean(dim=1, keepdim=True) + eps).sqrt()
        return made

    def linear_norm(self, name: str, layer: int = 0) -> Tensor:
        """Return a norm without its divisor and bias, as a matrix (d_model, d_model) for rows, in float64."""
        module: Any = self.norm(name, layer)
        rows = torch.eye(self.net.config.hidden_size)
        centred = rows - rows.mean(dim=1, keepdim=True) if isinstance(module, torch.nn.LayerNorm) else rows
        eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
        divisor = (centred.square().mean(dim=1, keepdim=True) + eps).sqrt()
        made: Tensor = (module(rows) - module(torch.zeros_like(rows))) * divisor
        return made.double()


@contextmanager
def _hooked(modules: Iterable[Any], hook: Callable[..., Any], **options: Any) -> Iterator[None]:
    """Attach a hook that sees the output of these modules, and may change it."""
    handles = [module.register_forward_hook(hook, **options) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
