"""The lock of a build: one holder, named by its pid, and free again however the holder ends."""

import errno
import fcntl
import os
import threading
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from lexiscope.precompute.build.lock import LOCK, build_lock
from lexiscope.precompute.errors import BuildError, BuildRunning
from tests.support.builds import forks


def hold(folder: Path, held: Event) -> None:
    with build_lock(folder):
        held.set()
        threading.Event().wait()


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    with build_lock(tmp_path / "new"):
        with pytest.raises(BuildRunning, match=rf"\(pid {os.getpid()}\)"), build_lock(tmp_path / "new"):
            pass
        with build_lock(tmp_path / "another"):
            pass
    with build_lock(tmp_path / "new"):
        pass
    assert (tmp_path / "new" / LOCK).read_bytes() == b""


def test_free_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), build_lock(tmp_path):
        raise ZeroDivisionError
    with build_lock(tmp_path):
        pass


def test_free_after_a_kill(tmp_path: Path) -> None:
    context = forks()
    held = context.Event()
    child = context.Process(target=hold, args=(tmp_path, held))
    child.start()
    assert held.wait(300)
    with pytest.raises(BuildRunning, match=rf"\(pid {child.pid}\)"), build_lock(tmp_path):
        pass
    child.kill()
    child.join()
    with build_lock(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"


def test_a_disk_without_locks_is_not_taken_for_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(BuildError, match="No locks available") as caught, build_lock(tmp_path):
        pass
    assert not isinstance(caught.value, BuildRunning)


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_a_lock_that_is_no_file(tmp_path: Path, kind: str) -> None:
    """A link might lead to somebody's file, which a lock would empty; a pipe might never open."""
    precious, lock = tmp_path / "precious", tmp_path / "tiny" / LOCK
    lock.parent.mkdir()
    if kind == "link":
        precious.write_text("keep me")
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(precious)
    with pytest.raises(BuildError, match=r"tiny/\.lock"), build_lock(lock.parent):
        pass
    assert precious.exists() == (kind == "link")
    assert kind != "link" or precious.read_text() == "keep me"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match=r"file/tiny.*--data DIR"), build_lock(tmp_path / "file" / "tiny"):
        pass
