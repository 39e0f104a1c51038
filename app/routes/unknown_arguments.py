"""Refuses an argument that an address does not take, and names the nearest that it takes: a misspelt one would pass for
the default, in silence."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from urllib.parse import urlencode

from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from starlette.requests import Request

from lexiscope.precompute.errors import BadRequest

NEAR = 0.5  # how alike two names must be, from 0 to 1, for one to be taken for the other
MOST_SHOWN = 60  # characters of a name that is none


class UnknownArgument(BadRequest):
    """`instead` is what was probably meant, by its name; None where nothing is like it."""

    def __init__(self, message: str, name: str = "", instead: str | None = None) -> None:
        super().__init__(message)
        self.name, self.instead = name, instead


async def check_arguments(request: Request) -> None:
    """A dependency of the whole app: what an address takes is in the signature of its route and of what that depends
    on."""
    route = request.scope.get("route")
    if request.query_params and isinstance(route, APIRoute):
        known = [field.alias for field in get_flat_params(route.dependant) if field.alias not in request.path_params]
        check_names(request.query_params.keys(), list(dict.fromkeys(known)))


def check_names(names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            instead = next(iter(get_close_matches(name.lower(), known, n=1, cutoff=NEAR)), None)
            meant = f"did you mean {instead}? It" if instead else "it"
            takes = f"takes {', '.join(known)}" if known else "takes no arguments"
            raise UnknownArgument(f"this address has no argument {name[:MOST_SHOWN]!r}: {meant} {takes}", name, instead)


def corrected_address(request: Request, error: UnknownArgument) -> str:
    """The address with what was probably meant, or without what it does not take."""
    arguments = [
        (error.instead if name == error.name else name, value) for name, value in request.query_params.multi_items()
    ]
    query = urlencode([(name, value) for name, value in arguments if name is not None])
    return request.url.path + (f"?{query}" if query else "")
