"""A function that hands its arguments on to a method has the signature of the method: in `help`, Jupyter and mypy."""

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

First = TypeVar("First")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def takes_arguments_of(
    method: Callable[Concatenate[Any, Arguments], Result],
) -> Callable[[Callable[Concatenate[First, ...], Result]], Callable[Concatenate[First, Arguments], Result]]:
    """All but `self`, in whose stead the function has an argument of its own."""

    def with_signature(
        function: Callable[Concatenate[First, ...], Result],
    ) -> Callable[Concatenate[First, Arguments], Result]:
        own, *_ = inspect.signature(function).parameters.values()
        signature = inspect.signature(method)
        _, *taken = signature.parameters.values()
        function.__signature__ = signature.replace(parameters=[own, *taken])  # type: ignore[attr-defined]
        return function

    return with_signature
