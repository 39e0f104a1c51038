"""Run only the last layers of a model: `transformers` runs the model, but its first blocks compute nothing, and the
next block reads states that it is given. Masks, positions, windows and whatever follows the last layer are the model's
own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.weights.architectures.base import Model


class LastLayers:
    """The last layers of a net. Only one thread may use an object, because the net's blocks are changed during a
    run."""

    def __init__(self, model: Model, net: Any, last: int) -> None:
        n_layers = model.shape.n_layers
        if not 1 <= last <= n_layers:
            raise BadRequest(
                f"the last {last} layers of {model.checkpoint.name} were asked for: it has {n_layers}, so give 1 to "
                f"{n_layers}"
            )
        self.net, self.first = net, n_layers - last
        body = model.body_of(net)
        self.blocks = [body.get_submodule(model.block.format(layer)) for layer in range(n_layers)]
        self._outputs = self._count_outputs()

    @contextmanager
    def reading(self, states: Tensor) -> Iterator[None]:
        """Within this context, a run of the net runs only the last layers, on `states` (B, T, d_model)."""

        def replace(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return ((states, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": states})

        idle = self.blocks[: self.first]
        for block in idle:
            block.forward = self._hand_on
        try:
            with self.blocks[self.first].register_forward_pre_hook(replace, with_kwargs=True):
                yield
        finally:
            for block in idle:
                del block.forward  # makes the method of its class visible again

    @contextmanager
    def read(self) -> Iterator[Callable[[], Tensor]]:
        """Yield a function that returns, once the net has run, the input (B, T, d_model) of the first of the last
        layers."""
        seen: list[Tensor] = []
        with self.blocks[self.first].register_forward_pre_hook(
            lambda _, args, kwargs: seen.append(args[0] if args else kwargs["hidden_states"]), with_kwargs=True
        ):
            yield lambda: seen[-1]

    @contextmanager
    def stream(self) -> Iterator[Callable[[], Tensor]]:
        """Yield a function that returns, once the net has run, the stream after the last layer (B, T, d_model)."""
        seen: list[Tensor] = []
        with self.blocks[-1].register_forward_hook(
            lambda _, __, output: seen.append(output[0] if isinstance(output, tuple) else output)
        ):
            yield lambda: seen[-1]

    def _hand_on(self, hidden_states: Tensor, *_: Any, **__: Any) -> Any:
        rest = (None,) * (self._outputs - 1)
        return (hidden_states, *rest) if self._outputs else hidden_states

    def _count_outputs(self) -> int:
        """Run one token, and return how many values a block returns as a tuple; 0 if it returns the stream itself."""
        seen: list[Any] = []
        with self.blocks[0].register_forward_hook(lambda _, __, output: seen.append(output)), torch.inference_mode():
            self.net.base_model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=self.net.device))
        return len(seen[0]) if isinstance(seen[0], tuple) else 0
