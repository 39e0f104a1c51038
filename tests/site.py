"""The whole explorer over two small real indexes, one of each architecture, built once per run: fixtures for all tests.
Tests that damage files do it in a copy."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

if TYPE_CHECKING:
    from starlette.testclient import TestClient

GPT2, LLAMA = "tiny-gpt2", "tiny-llama"  # of the first, layer 0 is not built
K, PAIRS = 30, 60
SCRIPT = 473  # the token <script>


@pytest.fixture(scope="session")
def site_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.builds import quick_build
    from tests.models import tiny_gpt2, tiny_llama

    sources, data = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("data")
    quick_build(tiny_gpt2(sources / GPT2, n_layers=3), data, k=K, pairs=PAIRS, layers=(1, 2))
    quick_build(tiny_llama(sources / LLAMA), data, k=K, pairs=PAIRS)
    return data


@pytest.fixture(scope="session")
def client(site_data: Path) -> Iterator["TestClient"]:
    with visit(site_data) as visitor:
        yield visitor


@contextmanager
def visit(data: Path, **settings: Any) -> Iterator["TestClient"]:
    """A visitor of the explorer over a data folder, who sees what a browser would, also of failures."""
    from starlette.testclient import TestClient

    from app.server import create_app
    from app.settings import Settings

    app = create_app(Settings(data=data, **settings))
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as visitor:
        yield visitor


def copied(site_data: Path, folder: Path) -> Path:
    return Path(shutil.copytree(site_data, folder / "data"))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(client: "TestClient", target: str, method: str = "GET", **headers: str) -> Answer:
    """A request whose target reaches the app as it is: clients tidy dots away and refuse long addresses."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"testserver"), *((name.lower().encode(), at.encode()) for name, at in headers.items())],
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))  # type: ignore[arg-type]
    start, *bodies = sent
    fields = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], fields, b"".join(part["body"] for part in bodies))
