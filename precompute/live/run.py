"""Run the model with `transformers` for several prompts at once; hooks show a Watcher what the run computes.

A run can be changed: the same hooks change the input of w_o (mixed values of heads) and of ff_value (coefficients of
neurons), at all positions or at one. The hooks exist for one run only, so only one thread may run a model. Prompts are
padded on the right: padding affects no position of the text, because no position attends to later ones, or because an
encoder is told where the text ends.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.grammar import HeadOff, NeuronSet
from lexiscope.precompute.weights.architectures.base import Rotation
from lexiscope.precompute.weights.architectures.family import NormName


@dataclass(frozen=True)
class Given:
    """A head whose mixed values, or a neuron whose coefficients, are given for a run."""

    layer: int
    head: int | None  # either this or a neuron
    neuron: int | None
    position: int | None  # None: all positions
    values: Tensor  # by position: (T, d_head) of a head, (T,) of a neuron


Change = NeuronSet | HeadOff | Given
Changes = Sequence[Change]


class Watcher:
    """A watcher of a run, whose methods the run calls; a subclass keeps what it needs. There are B prompts of T tokens,
    padding included."""

    def layer(self, layer: int) -> None:
        """Do what must happen before each layer; an error that this raises ends the run."""

    def stream(self, layer: int, after: str, x: Tensor) -> None:
        """Take the stream x (B, T, d_model) after the embedding (as layer 0), after a layer's attention, or after its
        ff."""

    def before_norm(self, x: Tensor) -> None:
        """Take what each norm is given whose output attention reads, and in an encoder also of the norm between
        attention and FF, (B, T, d_model). Only models with learned positions show it."""

    def attention(self, layer: int, x: Tensor, weights: Tensor, z: Tensor, rotation: Rotation | None) -> None:
        """Take the states x (B, T, d_model) that heads read, the attention weights (B, n_heads, T, T) and the mixed
        values z (B, n_heads, T, d_head)."""

    def ff(self, layer: int, keys: Tensor, coefficients: Tensor) -> None:
        """Take what the keys read, before the activation, and the coefficients, which multiply the values: (B, T,
        d_mlp) each."""


def run(
    w: Weights,
    tokens: Tensor,
    lengths: Sequence[int],
    changes: Sequence[Changes],
    watcher: Watcher,
    joins: Sequence[int] = (),
) -> Tensor:
    """Run tokens (B, T), and return the stream after the last layer (B, T, d_model), before the final norm of a
    decoder.

    `lengths` says where each text ends; `changes` holds the changes of each prompt. If there is only one prompt, copies
    of it may join the run, each before a layer of the rising `joins`: their changes, which follow in `changes`, are
    those of the prompt up to that layer.
    """
    hooks = _Hooks(w, tokens.shape, changes, watcher, joins)
    with hooks.attached():
        w.net.base_model(**inputs_of(tokens, lengths, causal=w.shape.causal))
    assert hooks.last is not None
    return hooks.last


def inputs_of(tokens: Tensor, lengths: Sequence[int], *, causal: bool) -> dict[str, Any]:
    """Return the arguments with which a net is called to run tokens (B, T)."""
    if causal:
        return {"input_ids": tokens, "use_cache": False}
    ends = torch.tensor(lengths, device=tokens.device)[:, None]
    return {"input_ids": tokens, "attention_mask": (torch.arange(tokens.shape[1], device=tokens.device) < ends).long()}


def padded(texts: Sequence[Sequence[int]], padding: int, device: torch.device) -> Tensor:
    """Return the tokens of texts as one array (B, T), with the shorter texts filled up by the token `padding`."""
    T = max(map(len, texts))
    return torch.tensor([[*tokens, *[padding] * (T - len(tokens))] for tokens in texts], device=device)


class _Hooks:
    """The hooks on the modules during one run."""

    def __init__(
        self, w: Weights, size: torch.Size, changes: Sequence[Changes], watcher: Watcher, joins: Sequence[int]
    ) -> None:
        self.w, self.watcher, self.changes, self.joins = w, watcher, changes, joins
        self.B, self.T = size
        self.last: Tensor | None = None  # the stream after the latest layer
        self.read = self.mixed = self.keys = torch.empty(0)  # tensors of the layer that is being computed
        self.rotation: Rotation | None = None

    @contextmanager
    def attached(self) -> Iterator[None]:
        model = self.w.model
        with ExitStack() as handles:
            for layer in range(self.w.shape.n_layers):
                block = model.body_of(self.w.net).get_submodule(model.block.format(layer))
                attention = model.module_of(layer, model.attention)
                w_q, w_o, ff_key, ff_value = (
                    model.module_of(layer, model.linears[kind]) for kind in ("w_q", "w_o", "ff_key", "ff_value")
                )
                names: tuple[NormName, ...] = ("attention",) if self.w.shape.causal else ("attention", "ff")
                norms = [model.norm(name, layer) for name in names if self.w.shape.positions == "learned"]
                for handle in (
                    *(norm.register_forward_pre_hook(self.before_norm) for norm in norms),
                    block.register_forward_pre_hook(partial(self.before_layer, layer), with_kwargs=True),
                    attention.register_forward_pre_hook(self.before_attention, with_kwargs=True),
                    w_q.register_forward_pre_hook(self.before_queries),
                    w_o.register_forward_pre_hook(partial(self.before_output, layer)),
                    ff_value.register_forward_pre_hook(partial(self.before_values, layer)),
                    *model.watch_middle(block, partial(self.between, layer)),
                    attention.register_forward_hook(partial(self.after_attention, layer)),
                    ff_key.register_forward_hook(self.after_keys),
                    block.register_forward_hook(partial(self.after_layer, layer)),
                ):
                    handles.enter_context(handle)
            yield

    def before_layer(
        self, layer: int, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        self.watcher.layer(layer)
        stream: Tensor = args[0] if args else kwargs["hidden_states"]
        if layer == 0:
            self.last = stream
            self.watcher.stream(0, "embedding", stream)
        joining = self.joins.count(layer)
        if not joining:
            return None
        self.B += joining
        stream = torch.cat((stream, stream[:1].expand(joining, -1, -1)))
        return ((stream, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": stream})

    def before_attention(self, _: Any, __: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        turned = kwargs.get("position_embeddings")
        self.rotation = None if turned is None else (turned[0][0], turned[1][0])  # equal for all prompts

    def before_queries(self, _: Any, args: tuple[Tensor]) -> None:
        self.read = args[0]

    def before_output(self, layer: int, _: Any, args: tuple[Tensor]) -> tuple[Tensor]:
        z = args[0].view(self.B, self.T, self.w.shape.n_heads, self.w.shape.d_head)
        if changes := [(b, change) for b, change in self._changes(layer) if change.head is not None]:
            z = z.clone()
            for b, change in changes:
                _change(z[b, :, change.head], change)
        self.mixed = z
        return (z.view(args[0].shape),)

    def after_attention(self, layer: int, _: Any, __: Any, output: tuple[Tensor, ...]) -> None:
        self.watcher.attention(layer, self.read, output[1], self.mixed.transpose(1, 2), self.rotation)

    def before_norm(self, _: Any, args: tuple[Tensor]) -> None:
        self.watcher.before_norm(args[0].view(self.B, self.T, -1))

    def between(self, layer: int, stream: Tensor) -> None:
        self.watcher.stream(layer, "attention", stream.view(self.B, self.T, -1))

    def after_keys(self, _: Any, __: Any, output: Tensor) -> None:
        self.keys = output.view(self.B, self.T, -1)

    def before_values(self, layer: int, _: Any, args: tuple[Tensor]) -> tuple[Tensor]:
        coefficients = args[0].view(self.B, self.T, -1)
        if changes := [(b, change) for b, change in self._changes(layer) if change.neuron is not None]:
            coefficients = coefficients.clone()
            for b, change in changes:
                _change(coefficients[b, :, change.neuron], change)
        keys = self.w.model.cut("ff_key", self.keys.movedim(-1, 0)).movedim(0, -1)
        self.watcher.ff(layer, keys, coefficients)
        return (coefficients.view(args[0].shape),)

    def after_layer(self, layer: int, _: Any, __: Any, output: Any) -> None:
        self.last = output[0] if isinstance(output, tuple) else output
        self.watcher.stream(layer, "ff", self.last)

    def _changes(self, layer: int) -> Iterator[tuple[int, Change]]:
        """Yield each change of a layer with the number of its prompt. Changes of single positions come last, so that
        they win over changes of all positions."""
        for b, of_prompt in enumerate(self.changes[: self.B]):
            here = [change for change in of_prompt if change.layer == layer]
            yield from ((b, change) for change in sorted(here, key=lambda change: change.position is not None))


def _change(x: Tensor, change: Change) -> None:
    """Change the values of a head (T, d_head) or of a neuron (T,), padding included, in place."""
    at = slice(None) if change.position is None else change.position
    if isinstance(change, Given):
        x[: len(change.values)][at] = change.values[at]
    else:
        x[at] = 0 if isinstance(change, HeadOff) else change.value
