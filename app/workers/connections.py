"""Connections to workers, kept open between requests: one pool per place at which a worker listens.
Which place that is, is for supervisor.py or a setting."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from precompute.errors import ServeError

if TYPE_CHECKING:
    import httpx2

UNIX = "unix:"
CONNECTIONS = 1000  # at once; a worker refuses what is beyond its queue much earlier
CONNECT_SECONDS = 5
KEEP_SECONDS = 30  # less than the worker keeps them (worker/main.py), so that none is closed as it is used


@dataclass(frozen=True)
class Place:
    address: str  # http://host:port, or unix:/path
    generation: int = 0  # another one after each restart: nothing of an older process is used again


class Connections:
    """`patience`: seconds without a byte after which an answer is given up."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._open: dict[str, tuple[Place, asyncio.AbstractEventLoop, httpx2.AsyncClient]] = {}

    async def to(self, place: Place) -> "httpx2.AsyncClient":
        held = self._open.get(place.address)
        loop = asyncio.get_running_loop()
        if held and held[:2] == (place, loop):
            return held[2]
        client = _client(place, self._patience)
        self._open[place.address] = place, loop, client
        if held and held[1] is loop:
            await held[2].aclose()
        return client

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        held, self._open = self._open, {}
        for _, its_loop, client in held.values():
            if its_loop is loop:
                await client.aclose()


def places(text: str) -> dict[str, str]:
    """The setting worker_url as model -> address; "" stands for every model."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        model, equals, address = part.rpartition("=")
        if model in found or (equals and not model):
            raise ServeError(f"the setting worker_url names {model!r} twice, or with no model before =: {text!r}")
        found[model.strip()] = _checked(address.strip())
    if "" in found and len(found) > 1:
        raise ServeError(f"the setting worker_url is one address for all models, or model=address for each: {text!r}")
    return found


def _checked(address: str) -> str:
    if address.startswith(UNIX + "/"):
        return address
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
        good = good and parts.path in ("", "/") and not parts.query
    except ValueError:
        good = False
    if not good:
        raise ServeError(
            f"the setting worker_url holds {address!r}, which is no address of a worker: "
            "give http://host:port or unix:/path"
        )
    return address.rstrip("/")


def _client(place: Place, patience: float) -> "httpx2.AsyncClient":
    import httpx2  # not needed until a live page is asked for

    socket = place.address.removeprefix(UNIX) if place.address.startswith(UNIX) else None
    limits = httpx2.Limits(
        max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=KEEP_SECONDS
    )
    return httpx2.AsyncClient(
        transport=httpx2.AsyncHTTPTransport(uds=socket, limits=limits, trust_env=False),
        base_url="http://worker" if socket else place.address,
        timeout=httpx2.Timeout(patience, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
        trust_env=False,
    )
