"""`lexiscope precompute --ray`: what it is given, and a cluster that is not there (one that is: test_ray_build.py)."""

import os
import socket
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lexiscope.app.commands.cli import main, make_parser
from lexiscope.precompute.ray_cluster import keep_others_out


@pytest.mark.parametrize("address", ["auto", "local", "ray://127.0.0.1:10001", "ray://[::1]:10001", "ray://head:1"])
def test_addresses(address: str) -> None:
    assert make_parser().parse_args(["precompute", "tiny", "--ray", address]).ray == address


@pytest.mark.parametrize(
    "address", ["", "here", "ray://", "ray://head", "ray://head:port", "127.0.0.1:6379", "ray://a b:1"]
)
def test_what_is_no_address(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        make_parser().parse_args(["precompute", "tiny", "--ray", address])
    assert f"argument --ray: {address!r} is none of auto, local and ray://HOST:PORT" in capsys.readouterr().err


def test_gpus_are_of_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["precompute", "tiny", "--data", str(tmp_path), "--gpus-per-task", "1"]) == 1
    assert capsys.readouterr().err == "lexiscope: --gpus-per-task 1 is for a cluster: add --ray auto\n"


def test_a_cluster_of_this_machine_alone_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody has decided otherwise, or Ray is imported, which reads the environment once."""
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "disabled")
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    keep_others_out()
    assert os.environ["RAY_AUTH_MODE"] == "disabled"
    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    keep_others_out()
    assert "RAY_AUTH_MODE" not in os.environ
    monkeypatch.delitem(sys.modules, "ray")
    keep_others_out()
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert len(bytes.fromhex(os.environ["RAY_AUTH_TOKEN"])) == 32


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("auto", "--ray auto: no Ray cluster at RAY_ADDRESS=127.0.0.1:9 can be used: "),
        ("ray://127.0.0.1:9", "--ray ray://127.0.0.1:9: no Ray cluster there can be used: "),
    ],
)
def test_where_nobody_listens(
    address: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    assert main(["precompute", "tiny", "--data", str(tmp_path), "--ray", address]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"lexiscope: {said}")
    assert error.count("\n") == 1


def test_a_cluster_that_was_killed_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it leaves is the file in which Ray keeps the address of the cluster that was started last."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    file = tmp_path / "ray" / "ray_current_cluster"
    file.parent.mkdir()
    file.write_text("127.0.0.1:9\n")
    assert main(["precompute", "tiny", "--data", str(tmp_path), "--ray", "auto"]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"lexiscope: --ray auto: no Ray cluster at 127.0.0.1:9, which {file} names, can be used: ")
    assert "; remove that file if its cluster has ended, start one here with `ray start --head`, name one" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("failures", [2, 3])
def test_ray_client_is_tried_again(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its server may fail to start the process of a client, and says so as Ray 2.60 does."""
    import ray

    tries: list[str] = []

    def init(address: str, **_: object) -> None:
        tries.append(address)
        if len(tries) <= failures:
            raise ConnectionAbortedError(
                "Initialization failure from server:\nTraceback (most recent call last):\n  File ...\n"
                "RuntimeError: Starting Ray client server failed.\n"
            )
        raise ValueError("it is there, and of another version")

    monkeypatch.setattr(ray, "init", init)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"ray://127.0.0.1:{listener.getsockname()[1]}"
        assert main(["precompute", "tiny", "--data", str(tmp_path), "--ray", address]) == 1
    assert tries == [address] * min(failures + 1, 3)
    server_said = "Initialization failure from server: RuntimeError: Starting Ray client server failed."
    expected = server_said if failures == 3 else "it is there, and of another version"
    assert f"no Ray cluster there can be used: {expected}; check that" in capsys.readouterr().err
