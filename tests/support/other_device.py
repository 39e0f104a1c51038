"""Register a device in Python that is not the CPU: its tensors hold a tensor of the CPU and refuse to be mixed with
those of the CPU, as a GPU's do. Without a GPU, it shows that nothing is computed across devices."""

from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as trees
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "lexiscope_test"
# Operations that go from one device to another.
COPY, TO_COPY = torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default
SAME_KIND = torch.ops.aten._has_compatible_shallow_copy_type.default  # torch asks it when a module is moved


class OtherTensor(torch.Tensor):
    """A tensor of the device; `held` has its numbers."""

    held: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> "OtherTensor":
        made: OtherTensor = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, held.stride(), held.storage_offset(), dtype=held.dtype, device=torch.device(NAME, 0)
        )
        made.held = held
        return made

    def tolist(self) -> Any:
        """Return the numbers; torch does so itself, but not for a class of tensors made in Python."""
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, op: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the operation on the tensors of the CPU that the arguments hold."""
        del types
        kwargs = dict(kwargs or {})
        if op is SAME_KIND:
            return False
        if (answer := op.decompose(*args, **kwargs)) is not NotImplemented:  # in inference mode torch leaves this to us
            return answer
        to_cpu = op is TO_COPY and torch.device(kwargs.get("device") or NAME).type == "cpu"
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        given, shape = trees.tree_flatten((args, kwargs))
        if op is not COPY:
            refuse_tensors_of_the_cpu(op, given)
        known = {id(tensor.held): tensor for tensor in given if isinstance(tensor, OtherTensor)}
        plain_args, plain_kwargs = trees.tree_unflatten([getattr(value, "held", value) for value in given], shape)
        answer = op(*plain_args, **plain_kwargs)
        if op is COPY:
            return args[0]
        if to_cpu:
            return answer

        def hold(found: torch.Tensor) -> OtherTensor:
            """Wrap a result; a tensor that was changed in place stays the same object."""
            same = known.get(id(found))
            assert same is None or same.shape == found.shape, f"{op} gave a tensor another shape"
            return OtherTensor(found) if same is None else same

        return trees.tree_map_only(torch.Tensor, hold, answer)


def refuse_tensors_of_the_cpu(op: object, given: list[Any]) -> None:
    """Raise an error if an operation mixes devices; a single number may come from anywhere, as on a GPU."""
    for tensor in given:
        if isinstance(tensor, torch.Tensor) and not isinstance(tensor, OtherTensor) and tensor.ndim:
            raise RuntimeError(f"Expected all tensors to be on the same device: {op} got one of the CPU")


@cache
def other_device() -> str:
    """Return the name of the device, which is registered when it is first asked for."""
    _setup_privateuseone_for_python_backend(NAME)

    @torch.library.impl("aten::empty.memory_format", "privateuseone")
    def empty(size: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        return OtherTensor(torch.empty(size, dtype=dtype))

    @torch.library.impl("aten::empty_strided", "privateuseone")
    def empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
        return OtherTensor(torch.empty_strided(size, stride, dtype=dtype))

    for name in ("arange", "arange.start", "arange.start_step"):

        @torch.library.impl(f"aten::{name}", "privateuseone")
        def arange(*numbers: Any, dtype: Any = None, **_: Any) -> torch.Tensor:
            return OtherTensor(torch.arange(*numbers, dtype=dtype))

    @torch.library.impl("aten::_copy_from", "privateuseone")
    def copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        getattr(target, "held", target).copy_(getattr(source, "held", source), non_blocking)
        return target

    return NAME
