"""Workers as processes: `lexiscope worker`, and those that a server starts, watches, and takes along when it ends.
What a worker answers is for worker/test_service.py, faults behind pages for test_client.py."""

import errno
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lexiscope.app.commands.cli import main
from lexiscope.app.live import keeper, process
from lexiscope.app.live.keeper import Keeper, without_folders
from lexiscope.app.live.process import lexiscope_command
from lexiscope.app.settings import Settings
from lexiscope.precompute.index.manifest import Manifest
from tests.support.builds import small_gpt2
from tests.support.processes import alive, serving
from tests.support.site import GPT2
from tests.support.workers import SEEDS, asking_site, listening, post, until

pytestmark = pytest.mark.slow


def source(site_data: Path) -> str:
    return Manifest.load(site_data / GPT2).source


def test_a_worker_at_a_socket(site_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.sock"
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(path))  # by one that was killed
    words = lexiscope_command(["worker", "--model", GPT2, "--data", str(site_data), "--socket", str(path)])
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        assert worker.stdout.readline() == f"The worker of {GPT2} is at unix:{path} (Ctrl-C ends it)\n"
        assert path.stat().st_mode & 0o077 == 0
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://worker") as client:
            assert client.get("/health").json()["model"] == GPT2
            assert client.post("/seeds", json=SEEDS).status_code == 200
        worker.send_signal(signal.SIGINT)
        assert worker.communicate(timeout=120) == ("", "")
        assert worker.returncode in (0, 130)
    assert not path.exists()


def other_weights(data: Path, tmp_path: Path) -> list[str]:
    copied = Path(shutil.copytree(data / GPT2, tmp_path / "data" / GPT2)).parent
    small_gpt2(Path(source(data)).with_name("other") / GPT2)
    manifest = copied / GPT2 / "manifest.json"
    manifest.write_text(manifest.read_text().replace(source(data), str(Path(source(data)).with_name("other") / GPT2)))
    return ["--model", GPT2, "--data", str(copied)]


@pytest.mark.parametrize(("words", "said"), [
    (lambda *_: ["--model", "./nothing"], "There is no folder or file './nothing'"),
    (other_weights, "holds other weights than the index"),
    (lambda data, _: ["--model", source(data), "--device", "warp"], "warp"),
    (lambda data, _: ["--model", source(data), "--host", "256.1.1.1"], "cannot listen at 256.1.1.1"),
    (lambda data, _: ["--model", source(data), "--socket", "/nowhere/w.sock"], "cannot listen at /nowhere/w.sock"),
    (lambda data, _: ["--model", source(data), "--socket", "/tmp/" + "x" * 200], "cannot listen at /tmp/xxx"),
])  # fmt: skip
def test_a_worker_that_cannot_start_says_why(
    site_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Callable[..., list[str]], said: str
) -> None:
    assert main(["worker", *words(site_data, tmp_path)]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("lexiscope: ")
    assert err.count("\n") == 1


def test_the_page_says_why_a_worker_cannot_start(site_data: Path, tmp_path: Path) -> None:
    index = Path(shutil.copytree(site_data / GPT2, tmp_path / "data" / GPT2))
    Manifest.load(index).with_changes(source=str(tmp_path / "gone")).save(index)
    app, state = asking_site(index.parent)
    with listening(app) as url:
        until(lambda: "is loading the model" not in post(f"{url}/{GPT2}/seeds", SEEDS).text)
        refused = post(f"{url}/{GPT2}/seeds", SEEDS)
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) >= 1
        said = refused.json()["error"]["detail"]
        assert said.startswith(f"the worker of {GPT2} cannot start: There is no folder or file")
        assert state.live.worker_states() == {GPT2: "down"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_worker_ends_with_its_server(site_data: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """However that ends, and while the model is still being loaded."""
    monkeypatch.setenv("LEXISCOPE_WORKER", "start")
    monkeypatch.setenv("LEXISCOPE_WORKERS", "1")
    with serving("--data", site_data) as (server, _):
        until(lambda: children(server.pid))
        workers = children(server.pid)
        assert len(workers) == 1
        server.send_signal(number)
        _, err = server.communicate(timeout=120)
        assert err == ""
    until(lambda: not any(map(alive, workers)))


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


def run_instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Another program in the worker's place."""
    monkeypatch.setattr(process, "lexiscope_command", lambda _: [sys.executable, "-c", code])


def test_pauses_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    run_instead(monkeypatch, "import sys; print('lexiscope: no such weights'); sys.exit(1)")
    assert (keeper.FIRST_PAUSE, keeper.LONGEST_PAUSE) == (1, 60)
    monkeypatch.setattr(keeper, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(keeper, "LONGEST_PAUSE", 0.05)
    with caplog.at_level(logging.WARNING):
        kept = Keeper("gpt2", Settings(), tmp_path / "w.sock")
        until(lambda: caplog.text.count("started again in") >= 5)
        kept.close()
    assert re.findall(r"again in (\S+) s", caplog.text)[:5] == ["0.01", "0.02", "0.04", "0.05", "0.05"]
    assert "the worker of gpt2 cannot start: no such weights; it is" in caplog.text
    assert kept.state.address is None


def test_a_server_that_may_start_no_process_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_instead(monkeypatch, "import time; time.sleep(60)")
    monkeypatch.setattr(keeper, "FIRST_PAUSE", 0.01)
    real = subprocess.Popen
    refusals = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.EAGAIN, "Try again")]

    def start(*args: Any, **kwargs: Any) -> "subprocess.Popen[str]":
        if refusals:
            raise refusals.pop()
        return real(*args, **kwargs)

    monkeypatch.setattr(subprocess, "Popen", start)
    kept = Keeper("gpt2", Settings(), tmp_path / "w.sock")
    until(lambda: kept.pid)
    kept.close()
    assert "the worker of gpt2 cannot start: Try again; it is" in caplog.text
    assert "the worker of gpt2 cannot start: Too many open files; it is" in caplog.text


def test_a_worker_that_hangs_while_it_loads_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_instead(monkeypatch, "import time; time.sleep(60)")
    monkeypatch.setattr(process, "LOADING_SILENCE_SECONDS", 0.2)
    kept = Keeper("gpt2", Settings(worker_silence=0.1), tmp_path / "w.sock")
    until(lambda: "no sign of life" in caplog.text)
    kept.close()


def test_a_worker_of_the_server_has_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Only this user reaches its socket."""
    monkeypatch.setenv("LEXISCOPE_WORKER_TOKEN", "a secret" * 3)
    code = "import os, sys; print('lexiscope: the token', os.environ['LEXISCOPE_WORKER_TOKEN'] or 'none'); sys.exit(1)"
    run_instead(monkeypatch, code)
    kept = Keeper("gpt2", Settings(worker_token="never-shown-to-anybody"), tmp_path / "w.sock")
    until(lambda: kept.state.failed)
    kept.close()
    assert kept.state.reason == "the worker of gpt2 cannot start: the token none"
    assert "secret" not in caplog.text


@pytest.mark.parametrize("code", [
    "import time; time.sleep(600)",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",  # is killed after the grace
])  # fmt: skip
def test_a_worker_is_gone_when_its_keeper_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    run_instead(monkeypatch, code)
    monkeypatch.setattr(keeper, "END_SECONDS", 0.3)
    kept = Keeper("gpt2", Settings(), tmp_path / "w.sock")
    until(lambda: kept.pid)
    pid = kept.pid
    kept.close()
    assert pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(("text", "told"), [
    ("There is no folder or file '/home/somebody/models/mine'.", "There is no folder or file 'mine'."),
    ("/data/gpt2/layer-1.safetensors is damaged; see http://host/a/b", "layer-1.safetensors is damaged; see http://host/a/b"),
    ("2 / 3 of ./here and a/b stay", "2 / 3 of ./here and a/b stay"),
])  # fmt: skip
def test_without_folders(text: str, told: str) -> None:
    assert without_folders(text) == told
