"""`lexiscope worker --ray`: what it refuses before anything starts (what it starts: worker/test_ray_serve.py)."""

import re
import socket
from pathlib import Path

import pytest

from lexiscope.app.commands.cli import main
from lexiscope.precompute.errors import ServeError
from tests.support.site import GPT2, LLAMA

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # Ray warns when imported


@pytest.mark.parametrize(("there", "said"), [
    ({"CPU": 3.0, "GPU": 1.0}, "the replicas want 4 CPUS and this machine has 3: give fewer --min-replicas"),
    ({"CPU": 4.0}, "the replicas want 1 GPUS and this machine has 0: give fewer --min-replicas, or less --gpus-per"),
])  # fmt: skip
def test_what_does_not_fit_is_not_waited_for(there: dict[str, float], said: str) -> None:
    from lexiscope.app.commands.ray_worker import check_room
    from lexiscope.app.worker.ray_serve import WorkerArguments

    wanted = {name: WorkerArguments(model=name, min_replicas=2, max_replicas=9, gpus_per_replica=0.25) for name in "ab"}
    check_room(wanted, {"CPU": 4.0, "GPU": 1.0})
    with pytest.raises(ServeError, match=re.escape(said)):
        check_room(wanted, there)


@pytest.mark.parametrize(("message", "reason"), [
    ("3 times:\nTraceback:\n  File ...\nprecompute.errors.BuildError: no: device", "no: device"),
    ("Deploying app 'gpt2' failed.\n", "Deploying app 'gpt2' failed."), ("", ""),
])  # fmt: skip
def test_why_a_model_cannot_be_loaded(message: str, reason: str) -> None:
    from lexiscope.app.commands.ray_worker import reason_of

    assert reason_of(message) == reason


@pytest.mark.parametrize(("words", "said"), [
    (["--model", GPT2, "--model", LLAMA], "a worker has one model, not tiny-gpt2 and tiny-llama: start one for each"),
    (["--ray", "--model", GPT2, "--model", GPT2], "two models are called tiny-gpt2"),
    (["--ray", "--model", GPT2, "--socket", "w.sock"], "Ray Serve listens at a port: leave out --socket, or --ray"),
    (["--ray", "--model", GPT2, "--min-replicas", "3", "--max-replicas", "2"], "max_replicas is 2, less than"),
    (["--ray", "--model", "./nothing"], "There is no folder or file './nothing'"),
    (["--ray", "--model", GPT2, "--host", "256.1.1.1"], "cannot listen at 256.1.1.1"),
    (["--ray", "--model", GPT2, "--port", "TAKEN"], "cannot listen at 127.0.0.1"),
    (["--ray", "--model", GPT2, "--ray-address", "127.0.0.1:9"], "127.0.0.1:9: no Ray cluster there can be used"),
    (["--ray", "--model", GPT2, "--ray-address", "auto", "--port", "0"], "--port 0 is for a cluster of its own"),
])  # fmt: skip
def test_what_is_refused_before_anything_starts(
    site_data: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [port if word == "TAKEN" else word for word in words]
        assert main(["worker", *words, "--data", str(site_data)]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert err.startswith("lexiscope: ")


@pytest.mark.parametrize("number", ["-1", "nan", "inf", "much"])
def test_amounts_are_numbers(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["worker", "--ray", "--model", GPT2, f"--gpus-per-replica={number}"])
    assert "is not a number from 0 on" in capsys.readouterr().err
