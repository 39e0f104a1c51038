"""`lexiscope worker --ray`: its replicas answer as a plain worker does, with the same limits; a replica that is killed
costs nobody an answer; Ctrl-C leaves nothing behind. All tests share one cluster (tests/support/ray_replicas.py); how
many replicas there are under load is Serve's business (its options: test_deploy.py)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lexiscope.precompute.live.wire.protocol import WEIGHTS_HEADER
from tests.support.processes import ROOT, alive
from tests.support.ray_replicas import ENVIRONMENT, REPLICAS
from tests.support.site import GPT2
from tests.support.workers import PROMPT, SEEDS, HeldEngine, asking_site, in_thread, listening, post, until, worker_app

pytestmark = [pytest.mark.ray, pytest.mark.slow]

TOKEN = "0123456789-of-replicas"
KNOWN = {"authorization": f"Bearer {TOKEN}"}
LIMITS = {
    "LEXISCOPE_WORKER_TOKEN": TOKEN,
    "LEXISCOPE_PROMPT_TOKENS": "40",
    "LEXISCOPE_REQUEST_SECONDS": "240",  # prompts are held while a replica starts, on a machine that is busy
    "LEXISCOPE_BATCH_SIZE": "1",  # prompts that run together differ from those alone in the last digit of float32
}
LONG = 120  # seconds, for what a loaded machine takes its time for
ASKS: list[tuple[str, dict[str, Any]]] = [
    ("seeds", SEEDS),
    ("seeds", {**SEEDS, "heads": True}),
    ("relation", {"pairs": [{"source": "dog", "target": "dogs"}]}),
    ("heads", {"words": [[{"word": "dog"}]], "layers": [0, 1]}),
    ("reading", {"kind": "ff_value", "layer": 1, "index": 3, "reading": "norm", "k": 5}),
    ("states", {"text": "the dog", "layer": 0}),
    ("prompt", {"text": "The dog and the lion", "panel": ["evolution", "attention", "patterns", "neurons"]}),
    ("prompt", {"text": "The dog", "panel": ["coverage", "attribution"]}),
]


@dataclass(frozen=True)
class Cluster:
    """`url` is the application's, `site` that of a server which asks it, `plain` that of a plain worker."""

    process: "subprocess.Popen[str]"
    url: str
    site: str
    plain: str
    folder: Path

    def hold(self) -> None:
        """Prompts that begin from now on wait; what began before is forgotten."""
        for file in (*(self.folder / "begun").iterdir(), *(self.folder / "given-up").iterdir()):
            file.unlink()
        (self.folder / "hold").touch()

    def release(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)

    def computing(self, what: str = "begun") -> set[int]:
        """The processes of replicas in which a prompt has begun, or was given up."""
        return {int(file.name.partition("-")[0]) for file in (self.folder / what).iterdir()}


@pytest.fixture(scope="module")
def cluster(
    site_data: Path, loaded: tuple[HeldEngine, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("replicas")
    for name in ("begun", "given-up"):
        (folder / name).mkdir()
    words = [sys.executable, "-m", "tests.support.ray_replicas", str(site_data), str(folder)]
    environment, pipe = {**os.environ, **ENVIRONMENT, **LIMITS}, subprocess.PIPE
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("w+"))
        process = stack.enter_context(
            subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log, text=True, cwd=ROOT, env=environment)
        )
        stack.callback(process.kill)
        stack.callback(process.wait, LONG)
        assert process.stdin
        stack.callback(process.stdin.close)
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith(f"The worker of {GPT2} is at http://127.0.0.1:"), line + (folder / "log").read_text()
        assert line.endswith(f"/{GPT2} (Ctrl-C ends it)\n")
        url = line.split()[6]
        site, _ = asking_site(site_data, worker_url=f"{GPT2}={url}", worker_token=TOKEN, request_seconds=2 * LONG)
        at = stack.enter_context(listening(site))
        plain = stack.enter_context(listening(worker_app(loaded[0], GPT2, loaded[1])))
        yield Cluster(process, url, f"{at}/{GPT2}", plain, folder)


@pytest.fixture(autouse=True)
def released(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.release()


def events(text: str) -> list[Any]:
    """The data of the events but for progress, whose number depends on the time."""
    found = [block.split("\n") for block in text.replace("\r", "").split("\n\n") if block.startswith("event: ")]
    return [(block[0], json.loads(block[1].removeprefix("data: "))) for block in found if "progress" not in block[0]]


def test_replicas_answer_as_a_plain_worker_does(cluster: Cluster) -> None:
    """Ask until both replicas have answered prompts; streamed events arrive before the answer ends."""
    cluster.hold()
    cluster.release()
    answered = 0
    while answered < 2 or len(cluster.computing()) < REPLICAS:
        for path, ask in ASKS:
            expected, found = post(f"{cluster.plain}/{path}", ask), post(f"{cluster.url}/{path}", ask, KNOWN)
            assert (found.status_code, found.json()) == (200, expected.json()), (path, ask)
        streamed = post(f"{cluster.url}/prompt/events", PROMPT, KNOWN)
        assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "event: progress" in streamed.text
        assert events(streamed.text) == events(post(f"{cluster.plain}/prompt/events", PROMPT).text)
        answered += 1
        assert answered < 50


@pytest.mark.parametrize(("path", "ask", "headers", "status", "said"), [
    ("seeds", SEEDS, {}, 401, "LEXISCOPE_WORKER_TOKEN"),
    ("seeds", SEEDS, {**KNOWN, WEIGHTS_HEADER: "0" * 64}, 409, f"the worker has {GPT2} with the weights"),
    ("prompt/events", {**PROMPT, "text": "dog " * 60}, KNOWN, 413, "up to 40 are read (the setting prompt_tokens)"),
])  # fmt: skip
def test_refusals_are_those_of_a_plain_worker(
    cluster: Cluster, path: str, ask: Any, headers: dict[str, str], status: int, said: str
) -> None:
    answer = post(f"{cluster.url}/{path}", ask, headers)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert said in answer.json()["detail"]


def test_a_visitor_who_leaves_is_cancelled(cluster: Cluster) -> None:
    """From the visitor through the server and Serve to the computing thread of a replica."""
    cluster.hold()
    server, _, model = cluster.site.removeprefix("http://").partition("/")
    with closing(HTTPConnection(server)) as visitor:
        visitor.request("POST", f"/{model}/events", json.dumps(PROMPT))
        until(cluster.computing, LONG)
    until(lambda: cluster.computing("given-up"), LONG)


def ask_site(cluster: Cluster, path: str, number: int) -> httpx2.Response:
    """As a visitor of their own."""
    text = f"dog {number} and lion"
    return post(f"{cluster.site}/{path}", {**PROMPT, "text": text}, {"x-forwarded-for": f"192.0.2.{number}"}, LONG)


def test_a_replica_killed_under_load_costs_nobody_more_than_a_retry(cluster: Cluster) -> None:
    cluster.hold()
    asked: list[tuple[Any, list[Any]]] = []
    while len(asked) < 4 or len(cluster.computing()) < REPLICAS:  # Serve asks the less busy one, soon enough
        number, path = len(asked), ("prompt", "events")[len(asked) % 2]
        asked.append(in_thread(lambda path=path, number=number: ask_site(cluster, path, number)))  # type: ignore[misc]
        time.sleep(0.2)
        assert len(asked) < 200
    killed = min(cluster.computing())
    os.kill(killed, signal.SIGKILL)
    until(lambda: not alive(killed))
    cluster.release()
    for number, (thread, found) in enumerate(asked):
        thread.join()
        assert found[0].status_code == 200, found[0].text
        if number % 2 == 0:
            expected = post(f"{cluster.plain}/prompt", {**PROMPT, "text": f"dog {number} and lion"})
            assert found[0].json() == expected.json()
        else:
            assert found[0].text.endswith("PromptAnswer\n")


def descendants(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have; some of Ray's end at any time."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from descendants(child)


def command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def test_interrupted_it_leaves_no_process(cluster: Cluster) -> None:
    """This is the last test of the module: no replica is there afterwards."""
    started = set(descendants(cluster.process.pid))
    raylets = [pid for pid in started if "/raylet/raylet" in command_line(pid)]
    assert raylets
    for pid in raylets:  # Ray's own ports are closed to whoever does not know its token
        assert b"RAY_AUTH_MODE=token\0" in Path(f"/proc/{pid}/environ").read_bytes()
    cluster.process.send_signal(signal.SIGINT)
    assert cluster.process.wait(LONG) == 130
    assert "Traceback" not in (cluster.folder / "log").read_text()
    until(lambda: not any(map(alive, started)))
