"""Addresses of workers, and the connections to them, which are kept open between requests."""

import asyncio
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lexiscope.precompute.errors import ServeError

if TYPE_CHECKING:
    import httpx2

UNIX = "unix:"
UNCOMPRESSED = {"accept-encoding": "identity"}  # a compressed answer could be a thousand times longer than its bytes
MOST_CONNECTIONS = 1000  # most open connections; a worker refuses requests beyond its queue much earlier
CONNECT_SECONDS = 5
# These characters separate two entries of the setting.
BETWEEN_ENTRIES = re.compile(r"\s*,\s*|(?<![=\s])\s+(?=(?:[^\s,=]+=)?(?:https?://|unix:/))")
PATH = re.compile(r"(?:/[\w.~-]+)*/?", re.ASCII)  # the path of a worker behind a proxy such as Ray Serve
KEEP_SECONDS = 30  # shorter than a worker keeps connections (asgi/http_server.py), so that it closes none in use


@dataclass(frozen=True)
class WorkerAddress:
    url: str  # http://host:port, or unix:/path
    start: int = 0  # the number of restarts: no connection to an older process is used again


class Connections:
    """Connections to workers, by address. An answer that has not arrived after `patience` seconds is given up."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._clients: dict[str, tuple[WorkerAddress, asyncio.AbstractEventLoop, httpx2.AsyncClient]] = {}

    async def client(self, address: WorkerAddress) -> "httpx2.AsyncClient":
        loop = asyncio.get_running_loop()
        held_address, held_loop, held_client = self._clients.get(address.url, (None, None, None))
        if held_client and (held_address, held_loop) == (address, loop):
            return held_client
        client = _new_client(address, self.patience)
        self._clients[address.url] = address, loop, client
        if held_client and held_loop is loop:
            await held_client.aclose()
        return client

    async def close(self) -> None:
        running = asyncio.get_running_loop()
        clients, self._clients = self._clients, {}
        for _, loop, client in clients.values():
            if loop is running:
                await client.aclose()


def parse_worker_urls(setting: str) -> dict[str, WorkerAddress]:
    """Return the address of each model in the setting worker_url; "" stands for every model."""
    addresses: dict[str, WorkerAddress] = {}
    for entry in filter(None, BETWEEN_ENTRIES.split(setting.strip())):
        model, equals, url = (part.strip() for part in entry.rpartition("="))
        address = WorkerAddress(_checked_url(url, setting))
        if equals and not model:
            raise ServeError(f"the setting worker_url names no model before = in {_shown(entry, setting)}")
        if model in addresses:
            raise ServeError(
                f"the setting worker_url names two addresses for {_shown(model or 'every model', setting)}, and a "
                "model has one: several workers stand behind it with Ray Serve (lexiscope worker --ray), or with a "
                f"proxy such as nginx: {_shown(setting, setting)}"
            )
        addresses[model] = address
    if "" in addresses and len(addresses) > 1:
        raise ServeError(
            "the setting worker_url is one address for all models, or model=address for each: "
            f"{_shown(setting, setting)}"
        )
    return addresses


def _shown(text: str, setting: str) -> str:
    """Quote text for a message, but quote nothing of a setting with an @: a password may be anywhere before it."""
    return repr(text) if "@" not in setting else "(not shown: there is an @, which only follows a name or a password)"


def _checked_url(url: str, setting: str) -> str:
    import httpx2

    if url.startswith(UNIX + "/"):
        return url
    try:
        split = urlsplit(url)
        good = split.scheme in ("http", "https") and split.hostname and "@" not in split.netloc and split.port != 0
        good = good and PATH.fullmatch(split.path) and not split.query and not split.fragment
        (split.hostname or "").encode("idna")  # raises an error if a part of the name is empty or too long
        httpx2.URL(url)  # raises an error if no name has such characters
    except (ValueError, httpx2.InvalidURL):
        good = False
    if not good:
        raise ServeError(
            f"the setting worker_url holds {_shown(url, setting)}, which is no address of a worker: give "
            "http://host:port, with a path if it has one, or unix:/path"
        )
    return url.rstrip("/")


def plain_client(address: WorkerAddress, timeout: float) -> "httpx2.Client":
    """Return an HTTP client for use in a thread, which waits for each answer."""
    import httpx2

    # A socket needs no certificates, and reading them takes 20 ms each time.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if _socket(address) else True
    transport = httpx2.HTTPTransport(uds=_socket(address), verify=verify, trust_env=False)
    return httpx2.Client(
        transport=transport, base_url=_base_url(address), timeout=timeout, headers=UNCOMPRESSED, trust_env=False
    )


def _new_client(address: WorkerAddress, patience: float) -> "httpx2.AsyncClient":
    import httpx2  # imported late: only live pages need it

    limits = httpx2.Limits(
        max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS, keepalive_expiry=KEEP_SECONDS
    )
    return httpx2.AsyncClient(
        transport=httpx2.AsyncHTTPTransport(uds=_socket(address), limits=limits, trust_env=False),
        base_url=_base_url(address),
        headers=UNCOMPRESSED,
        timeout=httpx2.Timeout(patience, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
        trust_env=False,
    )


def _socket(address: WorkerAddress) -> str | None:
    return address.url.removeprefix(UNIX) if address.url.startswith(UNIX) else None


def _base_url(address: WorkerAddress) -> str:
    return "http://worker" if _socket(address) else address.url
