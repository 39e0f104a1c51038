"""Run servers in threads for tests of live pages: a worker around a real engine that can be held up, and a site that
asks. The pages themselves are not needed: one address asks whatever a test wants, through the real client and error
pages."""

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

from lexiscope.app.live.client import LiveClient
from lexiscope.app.pages.page import find_pages
from lexiscope.app.settings import Settings
from lexiscope.app.site.server import app_without_routes, with_middleware
from lexiscope.app.worker.loading import load_model
from lexiscope.app.worker.service import create_worker
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.answers import PromptAnswer
from lexiscope.precompute.live.wire.asks import ASKS, PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.fields import adapter
from lexiscope.precompute.weights.checkpoint import Checkpoint

SEEDS = {"words": [{"word": "dog"}, {"word": "lion"}], "kind": ["ff_value"], "k": 5}
PROMPT = {"text": "The dog and the lion", "panel": ["evolution"]}


class HeldEngine(Engine):
    """Let prompts wait while `hold` is set; record the prompts that were computed together, and those that were given
    up."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.hold = threading.Event()
        self._one_run = threading.Lock()  # several workers of a test may have this engine
        self.batches: list[list[str]] = []
        self.given_up: list[list[str]] = []

    def prompts(
        self,
        asks: Sequence[PromptAsk],
        step: Callable[[str, float], None] = lambda *_: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[PromptAnswer | LexiscopeError]:
        texts = [ask.text for ask in asks]
        self.batches.append(texts)
        while self.hold.is_set():
            if cancelled():
                self.given_up.append(texts)
                raise Cancelled
            time.sleep(0.005)
        with self._one_run:
            return super().prompts(asks, step, cancelled)


def held_engine(data: Path, model: str) -> tuple[HeldEngine, str]:
    """Load the weights that an index was made from, and return the engine and their hash."""
    manifest = Manifest.load(data / model)
    engine = HeldEngine.load(Checkpoint.open(Path(manifest.source)), "cpu", 1)
    assert isinstance(engine, HeldEngine)
    return engine, manifest.weights_sha256


def worker_app(engine: Engine, model: str, weights: str, **settings: Any) -> ASGIApp:
    return create_worker(engine, model, weights, Settings(**settings))


@contextmanager
def workers_of(data: Path, *models: str) -> Iterator[str]:
    """Serve workers for models of a data folder, in threads; yield the setting that names their addresses."""
    with ExitStack() as stack:
        addresses = []
        for model in models:
            loaded = load_model(model, data, "cpu", 1)
            app = create_worker(loaded.engine, loaded.name, loaded.weights, Settings())
            addresses.append(f"{model}={stack.enter_context(listening(app))}")
        yield ",".join(addresses)


def asking_site(data: Path, **settings: Any) -> tuple[ASGIApp, State]:
    """Make a site: POST /{model}/{path of the worker} asks the worker through the server; /{model}/events streams."""
    find_pages()  # error pages link to them
    app = app_without_routes(Settings(data=data, **{"recent_answers_mb": 0, **settings}))  # so that workers are asked
    live: LiveClient = app.state.live

    @app.get("/still")
    async def still() -> str:
        return "here"

    @app.post("/{model}/events")
    async def events(model: str, request: Request) -> Response:
        stream = live.stream(model, PromptAsk.model_validate_json(await request.body()), request)
        first = await anext(stream)

        async def lines() -> AsyncIterator[str]:
            yield f"{type(first).__name__}\n"
            async for item in stream:
                yield f"{(PromptAnswer if isinstance(item, dict) else type(item)).__name__}\n"

        return StreamingResponse(lines())

    @app.post("/{model}/{path}")
    async def asked(model: str, path: str, request: Request) -> Response:
        kind = next(ask for ask in ASKS if ask.path == f"/{path}")
        ask = kind.model_validate_json(await request.body())
        answer = await live.ask(model, ask, request)
        return Response(adapter(ask.answer).dump_json(answer), media_type="application/json")

    return with_middleware(app), app.state


@contextmanager
def listening(app: ASGIApp, path: Path | None = None) -> Iterator[str]:
    """Serve the app at an address, in a thread of its own; with a path, at a Unix socket."""
    with _socket_at(path) if path else socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started)
            yield f"unix:{path}" if path else f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(120)
            assert not thread.is_alive()


def _socket_at(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    return listener


def until(true: Callable[[], Any], seconds: float = 120, pause: float = 0.01) -> None:
    """Wait until `true()` returns a true value. `pause`, in seconds, is longer if each call is work for the process
    that is waited for."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(pause)


def post(url: str, content: Any, headers: Mapping[str, str] | None = None, timeout: float = 120) -> httpx2.Response:
    accepted = {"accept": "application/json", **(headers or {})}
    return httpx2.post(url, json=content, timeout=timeout, headers=accepted, verify=False)


def get(url: str) -> httpx2.Response:
    return httpx2.get(url, timeout=120, verify=False)  # so that no certificates are loaded for each request


def in_thread(call: Callable[[], httpx2.Response]) -> tuple[threading.Thread, list[Any]]:
    """Send a request in a thread; its response, or its error, is put into the list."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except httpx2.HTTPError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found
