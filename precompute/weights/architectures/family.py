"""Declare what a family of models says of itself, in names: which checkpoints it has, and which module holds what.

Weights of the modules of one block hold the vectors; a run by `transformers` passes through the same modules, so the
same names say where the hooks of a run are (precompute/live/run.py).
"""

from typing import ClassVar, Literal

from lexiscope.precompute.weights.architectures.gguf_layout import Layout

NormName = Literal["attention", "ff", "final"]  # the norm before a layer's attention, before its FF, or before W_U
Part = Literal["attention", "ff"]  # a part of a layer


class Family:
    # Which checkpoints belong to the family.
    model_types: ClassVar[dict[str, str]]  # config.json: "model_type" -> the name that people know
    prefixes: ClassVar[tuple[str, ...]]  # what may stand before the names of tensors
    # The shape of a model, where config.json does not say it.
    config_names: ClassVar[dict[str, str]] = {}  # field names in config.json for hidden_size, num_hidden_layers, ...
    default_d_head: ClassVar[dict[str, int]] = {}  # d_head by model_type, where it is not d_model / n_heads
    mlp_factor: ClassVar[int | None] = None  # d_mlp / d_model, where intermediate_size is missing
    tied_by_default: ClassVar[bool] = False
    positions: ClassVar[Literal["learned", "rotary"]] = "rotary"
    rotary_share: ClassVar[float] = 1.0  # share of a head's channels that turn with the position
    causal: ClassVar[bool] = True
    left_out: dict[str, tuple[str, ...]] = {}  # by model_type: what lists of QK do not show
    left_out_writing: ClassVar[tuple[str, ...]] = ()  # what lists of VO and of values do not show
    # Where the vectors are.
    embedding: ClassVar[str]  # the module of W_E, after the prefix
    position_embedding: ClassVar[str] = ""  # the module of W_pos, after the prefix, where positions are learned
    first_position: int = 0  # the row of that module's weight which belongs to the first position of a text
    unembeddings: ClassVar[tuple[str, ...]] = ("lm_head",)  # the module of W_U by the names it may have; no prefix
    block: ClassVar[str]  # the module of layer {}, after the prefix
    linears: ClassVar[dict[str, str]]  # kind -> the module of the block that holds it; kinds may share one
    stored_in_out: ClassVar[bool] = False  # weights are (in, out) as in GPT-2, not (out, in)
    # Where a run shows what panels need.
    body: ClassVar[str] = ""  # the path from transformers' base model to the module that has the blocks
    attention: ClassVar[str]  # the module of the block whose second output are the attention weights
    norms: dict[NormName, str]  # the modules of norms: in the block; of `final` in the body
    # The module of the block whose input is the stream between attention and FF; None: what attention returns is
    # added to the stream as it is, maybe beside FF.
    after_attention: ClassVar[str | None] = None
    gain_offset: ClassVar[float] = 0.0  # what a norm adds to its stored gain
    centres: ClassVar[bool] = True  # whether norms subtract the mean (LayerNorm); an RMSNorm does not
    activation_field: ClassVar[str] = "hidden_act"  # the field of config.json that names the activation
    gguf: "ClassVar[type[Layout] | None]" = None  # how GGUF files hold the family, if they do
    unused: ClassVar[tuple[str, ...]] = ()  # beginnings of the names of tensors that a run does not need

    def module(self, layer: int, name: str) -> str:
        """Return the full name of a module of a block, after the prefix."""
        return f"{self.block.format(layer)}.{name}"
