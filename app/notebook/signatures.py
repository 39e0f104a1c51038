"""Give a function that passes its arguments on the signature of the method that takes them, for `help`, Jupyter and
(for a method) mypy."""

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from lexiscope.precompute.live.wire.fields import Ask

First = TypeVar("First")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])


def takes_arguments_of(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[[Callable[Concatenate[First, ...], Result]], Callable[Concatenate[First, Arguments], Result]]:
    """Give the function the signature of a method, with the function's own first argument instead of `self`."""

    def with_signature(
        function: Callable[Concatenate[First, ...], Result],
    ) -> Callable[Concatenate[First, Arguments], Result]:
        own, *_ = inspect.signature(function).parameters.values()
        signature = inspect.signature(method)
        _, *taken = signature.parameters.values()
        function.__signature__ = signature.replace(parameters=[own, *taken])  # type: ignore[attr-defined]
        return function

    return with_signature


def takes_fields_of(ask: type[Ask[Any]]) -> Callable[[Function], Function]:
    """Give the function the fields of a request to a worker, as far as people type them, in place of its
    `**arguments`."""

    def with_signature(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        usual = dict(zip(ask.model_fields, ask.left_out().values(), strict=True))  # by the names that Python can have
        fields = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default or None)
            for name, default in usual.items()
            if name not in ("text", "panel")
        ]
        function.__signature__ = signature.replace(parameters=[*own, *fields])  # type: ignore[attr-defined]
        return function

    return with_signature
