"""Folders made once: complete or absent after a kill, made by one of two processes, a full disk said plainly."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lexiscope.precompute.errors import DiskFull
from lexiscope.precompute.weights.folders import make_folder_once, raise_if_disk_full
from tests.support.small_disk import small_disk
from tests.support.workers import until

SLOW_MAKER = """
import sys, time
from pathlib import Path
from lexiscope.precompute.weights.folders import make_folder_once

def make(folder):
    (folder / "one").write_text("1")
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    time.sleep(float(sys.argv[3]))
    (folder / "two").write_text("2")

make_folder_once(Path(sys.argv[1]), make)
"""


def start(target: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SLOW_MAKER, str(target), str(log), str(seconds)])


def test_made_once_and_then_only_read(tmp_path: Path) -> None:
    calls = []

    def make(folder: Path) -> None:
        calls.append(folder)
        (folder / "file").write_text("x")

    for _ in range(2):
        assert (make_folder_once(tmp_path / "deep" / "target", make) / "file").read_text() == "x"
    assert len(calls) == 1
    assert calls[0].parent == tmp_path / "deep"
    assert not calls[0].exists()


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        make_folder_once(tmp_path / "target", fail)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".lock"]


def test_after_a_kill_the_next_one_starts_afresh(tmp_path: Path) -> None:
    target, log = tmp_path / "target", tmp_path / "log"
    process = start(target, log, 600)
    until(log.exists)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not target.exists()
    assert list(tmp_path.glob(".target.part-*"))
    make_folder_once(target, lambda folder: (folder / "new").touch())
    assert [path.name for path in target.iterdir()] == ["new"]
    assert not list(tmp_path.glob(".target.part-*"))


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    target, log = tmp_path / "target", tmp_path / "log"
    processes = [start(target, log, 0.5) for _ in range(3)]
    assert [process.wait(240) for process in processes] == [0, 0, 0]
    assert log.read_text() == "made\n"
    assert sorted(path.name for path in target.iterdir()) == ["one", "two"]


def test_a_full_disk(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "x").write_bytes(bytes(5000))

    with small_disk(1000), pytest.raises(DiskFull, match=r"File too large.*Free some space"):
        make_folder_once(tmp_path / "target", fill)
    assert not (tmp_path / "target").exists()
    assert not list(tmp_path.glob(".target.part-*"))


def chained(outer: Exception, cause: Exception) -> Exception:
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(("error", "is_full"), [
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), True),
    (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), True),
    (RuntimeError("I/O error: No space left on device (os error 28)"), True),
    (chained(RuntimeError("download failed"), OSError(errno.ENOSPC, "full")), True),
    (OSError(errno.EACCES, "denied"), False),
    (RuntimeError("(os error 2)"), False),
])  # fmt: skip
def test_what_counts_as_full(tmp_path: Path, error: Exception, is_full: bool) -> None:
    if is_full:
        with pytest.raises(DiskFull, match=tmp_path.name):
            raise_if_disk_full(error, tmp_path)
    else:
        raise_if_disk_full(error, tmp_path)
