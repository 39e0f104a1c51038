"""Define what every family's MODEL is: a checkpoint whose tensors are read by their usual names (W_E, w_q, ...), and
the same modules of its net once `transformers` has loaded it. A family gives the names of its modules, as family.py
declares; what follows from them for the weights, and for a run, is here."""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional

from lexiscope.precompute.errors import BadWeights, NotFound, first_line
from lexiscope.precompute.shape import DIRECTION_KINDS, FACTORS, SIDES, Shape
from lexiscope.precompute.weights.architectures.config import Config, find_model_type
from lexiscope.precompute.weights.architectures.family import Family, NormName, Part
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.directions import Factors, KeptDirections

# The tensor of a classification head that has a vector per label, by the names that transformers' families have for it.
LABEL_TENSORS = ("score.weight", "classifier.out_proj.weight", "classifier.weight")
_OLD_NAMES = {"weight": "gamma", "bias": "beta"}  # parameters of norms in the oldest checkpoints of BERT
Rotation = tuple[Tensor, Tensor]  # cosines and sines (T, how many subheads are turned) of rotary positions


class Model(Family):
    """A model of one checkpoint. Its tensors are float32, read from its files, or those of a net (`in_memory`)."""

    net: Any  # of `transformers`, of a model in memory

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.prefix = self._find_prefix()
        self.read_tensor: Callable[[str], Tensor] = lambda name: checkpoint.tensor(self.prefix + name)
        self.model_type = find_model_type(checkpoint.config, self.model_types) or ""
        config = Config(checkpoint)
        self.adapt(config)
        self.shape = self.read_shape(config)
        self._check()

    def adapt(self, config: Config) -> None:
        """Set `norms` and `left_out` where config.json decides them, and refuse a model that cannot be read."""

    def read_shape(self, config: Config) -> Shape:
        """Read the model's dimensions from config.json, by the names that the family has for them."""

        def size(name: str, default: int | None = None) -> int:
            return config.size(self.config_names.get(name, name), default=default)

        d_model, n_heads = size("hidden_size"), size("num_attention_heads")
        n_kv_heads = size("num_key_value_heads", default=n_heads)
        config.share(n_heads, n_kv_heads, "num_attention_heads over num_key_value_heads")
        d_head = self.default_d_head.get(self.model_type)
        if config.values.get("head_dim") is None and d_head is None:
            d_head = config.share(d_model, n_heads, "hidden_size over num_attention_heads")
        d_head = size("head_dim", default=d_head)
        return Shape(
            architecture=self.model_type,
            n_layers=size("num_hidden_layers"),
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            d_model=d_model,
            d_head=d_head,
            d_mlp=size("intermediate_size", default=self.mlp_factor and self.mlp_factor * d_model),
            d_vocab=size("vocab_size"),
            gated="ff_up" in self.linears,
            tied=config.flag("tie_word_embeddings", default=self.tied_by_default),
            positions=self.positions,
            causal=self.causal,
            name=self.model_types[self.model_type],
            left_out=self.left_out.get(self.model_type, ()),
            left_out_writing=self.left_out_writing,
            d_rotary=self._d_rotary(config, d_head),
            predicts="next" if self.causal else "masked" if self.predicts else "nearest",
        )

    def cut(self, kind: str, outputs: Tensor) -> Tensor:
        """Return the part that belongs to one kind of vectors, from a weight (out, in) or bias (out,) that several
        kinds share, one after the other."""
        module = self.linears[kind]
        sharing = [other for other in self.shape.weight_kinds if self.linears[other] == module]
        start = sum(self.shape.count(other) for other in sharing[: sharing.index(kind)])
        return outputs[start : start + self.shape.count(kind)]

    def read(self, layer: int, kind: str) -> Tensor:
        """Return the vectors of a kind as rows, (shape.count(kind), d_model), as a view if the weight is in memory.
        Directions are computed when they are first asked for."""
        if kind in DIRECTION_KINDS:
            return self.directions.vectors(layer, kind)
        weight = self.read_tensor(f"{self.module(layer, self.linears[kind])}.weight")
        if self.stored_in_out:
            weight = weight.T
        return weight.T if SIDES[kind] == "writes" else self.cut(kind, weight)

    def vectors(self, layer: int, kind: str) -> Tensor:
        """Return the vectors of a kind as rows, (shape.count(kind), d_model), contiguous in memory; w_k and w_v of
        grouped heads are not repeated."""
        if not 0 <= layer < self.shape.n_layers:
            raise NotFound(
                f"Layer {layer} of {self.checkpoint.name} does not exist: 0 to {self.shape.n_layers - 1} do."
            )
        if kind not in self.shape.kinds:
            raise NotFound(
                f"{self.checkpoint.name} has no vectors of kind {kind!r}, only {', '.join(self.shape.kinds)}."
            )
        return self.read(layer, kind).contiguous()

    def norm_in_front(self, layer: int) -> tuple[Tensor, bool]:
        """Return what stands between the stream and a layer's neurons: the gain (d_model,) of the norm in front of FF,
        and whether that norm centres. A norm whose gain the checkpoint does not store has a gain of 1."""
        name = f"{self.module(layer, self.norms['ff'])}.weight"
        if self.prefix + name not in self.checkpoint.files:
            return torch.ones(self.shape.d_model), self.centres
        return self.read_tensor(name) + self.gain_offset, self.centres

    @cached_property
    def directions(self) -> KeptDirections:
        return KeptDirections(self)

    def head_factors(self, layer: int, matrix: str) -> Iterator[Factors]:
        """Yield for each head the factors left and right of its matrix left rightᵀ, (d_model, d_head) each, float64."""
        left, right = (self._heads(layer, kind) for kind in FACTORS[matrix])
        for of_left, of_right in zip(left, right, strict=True):
            yield of_left.T.double().cpu(), of_right.T.double().cpu()

    def factors(self, layer: int, matrix: str) -> tuple[Tensor, Tensor]:
        """Return the factors of all heads' matrices left[h] @ right[h]: W_V W_O for "vo", W_Q W_Kᵀ for "qk".

        They are (n_heads, d_model, d_head) and (n_heads, d_head, d_model); W_K and W_V of grouped heads are repeated.
        """
        if matrix not in FACTORS:
            raise NotFound(f"There is no head matrix {matrix!r}, only {' and '.join(FACTORS)}.")
        left, right = FACTORS[matrix]
        return self._heads(layer, left).transpose(1, 2), self._heads(layer, right)

    def tokenizer_file(self) -> Path:
        return self.checkpoint.tokenizer_file()

    @cached_property
    def W_E(self) -> Tensor:
        return self.read_tensor(f"{self.embedding}.weight")  # (d_vocab, d_model)

    @cached_property
    def W_U(self) -> Tensor:
        if self.shape.tied:
            return self.W_E
        if self.lacks_unembedding:
            raise BadWeights(
                f"{self.checkpoint.source} is a classifier, which has no {self.unembedding}, and its config.json says "
                "that W_U is not W_E: what it writes cannot be read as words by itself. Subtract the model that it was "
                "made from, whose W_U is then used: add --minus BASE"
            )
        return self.checkpoint.tensor(self.unembedding)  # (d_vocab, d_model)

    @property
    def W_pos(self) -> Tensor:
        """Return the vectors (positions, d_model) that are added to the embeddings, where positions are learned: that
        of a text's first position first."""
        return self.read_tensor(f"{self.position_embedding}.weight")[self.first_position :]

    @property
    def is_classifier(self) -> bool:
        return any(name in self.checkpoint.files for name in LABEL_TENSORS)

    @property
    def lacks_unembedding(self) -> bool:
        """Return True if this is a classifier made from a model whose W_U is not W_E: it was saved without W_U."""
        return not self.shape.tied and self.is_classifier and self.unembedding not in self.checkpoint.files

    @property
    def unembedding(self) -> str:
        """Return the name of the tensor of W_U; if the checkpoint has none, the first name that it might have."""
        names = [f"{module}.weight" for module in self.unembeddings]
        return next((name for name in names if name in self.checkpoint.files), names[0])

    @property
    def predicts(self) -> bool:
        """Return True if the checkpoint has a head that turns a stream into probabilities of tokens."""
        return True

    def _d_rotary(self, config: Config, d_head: int) -> int | None:
        """Return how many channels of a head turn with the position; None if all do, or none."""
        if self.positions != "rotary":
            return None
        turning = int(d_head * config.rotary_share(default=self.rotary_share))
        return turning if 0 < turning < d_head else None

    def _heads(self, layer: int, kind: str) -> Tensor:
        s = self.shape
        vectors = self.vectors(layer, kind).view(-1, s.d_head, s.d_model)
        rows = [s.row(kind, head, 0) // s.d_head for head in range(s.n_heads)]
        return vectors if len(vectors) == s.n_heads else vectors[rows]  # (n_heads, d_head, d_model)

    def _find_prefix(self) -> str:
        name = f"{self.embedding}.weight"
        for prefix in self.prefixes:
            if prefix + name in self.checkpoint.files:
                return prefix
        known = " or ".join(prefix + name for prefix in self.prefixes)
        raise BadWeights(f"{self.checkpoint.folder} has no embedding: its files hold no tensor {known}.")

    def _expected(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Return the names and shapes of the tensors that a build reads."""
        s = self.shape
        yield f"{self.prefix}{self.embedding}.weight", (s.d_vocab, s.d_model)
        if not s.tied and not self.lacks_unembedding:
            yield self.unembedding, (s.d_vocab, s.d_model)
        sizes: dict[str, tuple[int, ...]] = {}  # (out, in) of each module
        for kind in s.weight_kinds:
            module, count = self.linears[kind], s.count(kind)
            out = count + sizes.get(module, (0,))[0]
            sizes[module] = (s.d_model, count) if SIDES[kind] == "writes" else (out, s.d_model)
        for layer in range(s.n_layers):
            for module, size in sizes.items():
                name = f"{self.prefix}{self.module(layer, module)}.weight"
                yield name, size[::-1] if self.stored_in_out else size

    def _check(self) -> None:
        """Check that every tensor that a build will read is there and fits config.json, instead of finding out an hour
        later."""
        for name, expected in self._expected():
            shape = self.checkpoint.tensor_shape(name)
            if shape != expected:
                raise BadWeights(
                    f"{name} of {self.checkpoint.folder} has the shape {shape}, but by its config.json it must be "
                    f"{expected}. The files do not belong together: get the whole checkpoint again."
                )

    # In memory

    def in_memory(self, net: Any) -> Self:
        """Return the same model with the tensors of `net` instead of those of the checkpoint's files."""
        W_E = net.get_input_embeddings().weight
        W_U = W_E if self.shape.tied else net.get_output_embeddings().weight
        model = copy(self)
        model.net = net
        model.read_tensor = self.body_of(net).get_parameter
        model.__dict__.pop("directions", None)
        model.__dict__.update(W_E=W_E, W_U=W_U)
        return model

    @cached_property
    def skeleton(self) -> Self:
        """Return the same model with a net whose tensors have no values yet, so that what stands in front of attention
        scores can be computed by the modules of `transformers` while other weights stay on disk."""
        import transformers as untyped

        transformers: Any = untyped  # most of its functions carry no types
        fields = {name: value for name, value in self.checkpoint.config.items() if name != "model_type"}
        try:
            config = transformers.AutoConfig.for_model(self.model_type, **fields)
            with torch.device("meta"):
                net = transformers.AutoModel.from_config(config, attn_implementation="eager")
        except Exception as error:  # a config that is wrong can cause errors of any kind
            said = f"transformers cannot make {self.shape.name} from {self.checkpoint.folder}: {first_line(error)}"
            raise BadWeights(said) from error
        model = copy(self)
        model.net = net.requires_grad_(False)
        return model

    def fill_attention(self, layer: int, device: torch.device) -> None:
        """Give the skeleton of a model the norms and biases in front of a layer's attention scores. What a checkpoint
        does not store leaves a stream as it is: a gain of 1, a bias of 0."""
        names = {module: name for name, module in self.body_of(self.net).named_modules()}
        norms = [
            self.norm("attention", layer),
            *(norm for kind in FACTORS["qk"] for norm in self.head_norms(layer, kind)),
        ]
        for module in (*norms, *(self.module_of(layer, self.linears[kind]) for kind in FACTORS["qk"])):
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.dim() > 1:  # vectors are read where they are needed
                    continue
                stored = [f"{names[module]}.{known}" for known in (name, _OLD_NAMES[name])]
                stored = [tensor for tensor in stored if self.prefix + tensor in self.checkpoint.files]
                usual = torch.full(parameter.shape, 0.0 if name == "bias" else 1 - self.gain_offset)
                values = self.read_tensor(stored[0]) if stored else usual
                setattr(module, name, torch.nn.Parameter(values.to(device), requires_grad=False))

    def body_of(self, net: Any) -> Any:
        """Return the module of the net that has the blocks."""
        return net.base_model.get_submodule(self.body)

    def module_of(self, layer: int, name: str) -> Any:
        """Return a module of a layer's block by its name."""
        return self.body_of(self.net).get_submodule(self.module(layer, name))

    def norm(self, name: NormName, layer: int) -> Any:
        """Return the module of a norm; in an encoder, the one whose output is read at that place."""
        module = self.norms[name]
        return self.body_of(self.net).get_submodule(module) if name == "final" else self.module_of(layer, module)

    def watch_middle(self, block: Any, see: Callable[[Tensor], None]) -> list[Any]:
        """Put hooks on a block that call `see` with the stream between its attention and its FF; return handles that
        remove them."""
        if self.after_attention is not None:
            return [block.get_submodule(self.after_attention).register_forward_pre_hook(lambda _, args: see(args[0]))]
        streams: list[Tensor] = []
        return [
            block.register_forward_pre_hook(lambda _, args: streams.append(args[0])),
            block.get_submodule(self.attention).register_forward_hook(
                lambda _, __, output: see(streams.pop() + output[0])
            ),
        ]

    def bias(self, layer: int, kind: str) -> Tensor | None:
        """Return the bias of a kind of vectors, if there is one: (count,) if they read, (d_model,) if they write."""
        bias: Tensor | None = self.module_of(layer, self.linears[kind]).bias
        return bias if bias is None or SIDES[kind] == "writes" else self.cut(kind, bias)

    def activation(self) -> Callable[[Tensor], Tensor]:
        from transformers.activations import ACT2FN

        activation: Callable[[Tensor], Tensor] = ACT2FN[getattr(self.net.config, self.activation_field)]
        return activation

    def scale(self, layer: int) -> float:
        """Return the factor with which attention scores are multiplied."""
        return float(self.attention_of(layer).scaling)

    def attention_of(self, layer: int) -> Any:
        """Return the attention module of a layer, which may have a soft cap."""
        return self.module_of(layer, self.attention)

    def head_norms(self, layer: int, kind: str) -> list[Any]:
        """Return the norms of queries (w_q) or keys (w_k) over d_head: none, one for all heads, or one for each."""
        norm = getattr(self.attention_of(layer), {"w_q": "q_norm", "w_k": "k_norm"}[kind], None)
        return [] if norm is None else [norm]

    def head_states(self, layer: int, kind: str, x: Tensor) -> Tensor:
        """Return queries (w_q) or keys (w_k) of states x (n, d_model) as the model computes them, with biases and norms
        but without the rotation by position: (n_heads, n, d_head), with the keys of grouped heads repeated."""
        made = functional.linear(x, self.read(layer, kind).to(x.device), self.bias(layer, kind))
        z = made.view(len(x), -1, self.shape.d_head).transpose(0, 1)
        if norms := self.head_norms(layer, kind):
            z = torch.cat([norm(part) for norm, part in zip(norms, z.chunk(len(norms)), strict=True)])
        return z.repeat_interleave(self.shape.n_heads // len(z), dim=0)

    def capped(self, layer: int, scores: Tensor) -> Tensor:
        """Return attention scores after the soft cap, where the model has one."""
        cap = getattr(self.attention_of(layer), "attn_logit_softcapping", None)
        return scores if cap is None else cap * torch.tanh(scores / cap)

    def rotation(self, layer: int, n: int) -> Rotation:
        """Return cosines and sines (n, how many subheads turn) of the rotary positions 0 to n - 1 in a layer."""
        rotary = type(self.body_of(self.net).rotary_emb)(self.net.config)  # anew: buffers of a skeleton have no values
        by_layer = "layer_type" in signature(rotary.forward).parameters
        of_layer = (self.net.config.layer_types[layer],) if by_layer else ()
        cos, sin = rotary(torch.zeros(1), torch.arange(n)[None], *of_layer)
        return cos[0], sin[0]

    @property
    def embedding_scale(self) -> float:
        """Return the factor with which embeddings are multiplied before the first layer."""
        return float(getattr(self.net.get_input_embeddings(), "scalar_embed_scale", 1.0))

    def stream_of(self, e: Tensor) -> Tensor:
        """Return embeddings e (n, d_model) as the first layer gets them, but without positions."""
        return e * self.embedding_scale

    def add_ff(self, stream: Tensor, ff: Callable[[Tensor], Tensor], layer: int) -> Tensor:
        """Return the stream (n, d_model) after a layer's FF, norms included; `ff` computes the output of the layer's
        neurons from a normed stream."""
        return stream + ff(self.norm("ff", layer)(stream))

    def norm_of_written(self, layer: int, part: Part) -> Any | None:  # noqa: ARG002
        """Return the norm, if there is one, of what attention or FF writes, before it is added to the stream."""
        return None

    def norm_of_sum(self, layer: int, part: Part) -> Any | None:  # noqa: ARG002
        """Return the norm, if there is one, of the stream after the output of attention or FF was added to it."""
        return None

    def transform(self) -> tuple[Any, Callable[[Tensor], Tensor], Any] | None:
        """Return the modules that some models have between the last layer's stream and W_U instead of a final norm: a
        linear module, an activation and a norm."""
        return None

    def before_unembedding(self, stream: Tensor) -> Tensor:
        """Send a stream (..., d_model), as it is after a layer, through the final norm."""
        normed: Tensor = self.norm("final", 0)(stream)
        return normed

    def logits(self, stream: Tensor) -> Tensor:
        """Return the logits of the next token (n, d_vocab) for a stream (n, d_model), by the model's own last steps."""
        logits: Tensor = self.net.get_output_embeddings()(self.before_unembedding(stream))
        cap = getattr(self.net.config, "final_logit_softcapping", None)
        return logits if cap is None else cap * torch.tanh(logits / cap)

    @property
    def net_class(self) -> str:
        """Return the name of the class of `transformers` that runs the checkpoint."""
        return "AutoModelForCausalLM"

    def n_positions(self, net: Any) -> int:
        """Return how many tokens a prompt may have."""
        return int(net.config.max_position_embeddings)


def rotated(x: Tensor, rotation: Rotation) -> Tensor:
    """Return x (..., d_head) rotated by position. Only the first subheads turn, each in the first half of these
    together with one in the second half; the others stay."""
    cos, sin = rotation
    turning, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    first, second = turning.chunk(2, dim=-1)
    return torch.cat((turning * cos + torch.cat((-second, first), dim=-1) * sin, rest), dim=-1)
