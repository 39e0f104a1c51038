"""An index to send around, places it can be published at, and commands as a person types them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lexiscope.app.commands.cli import main
from lexiscope.precompute.build.lock import LOCK
from lexiscope.precompute.travel.pull import PULLED
from tests.support.dataset_hub import TOKEN, DatasetHub, logged_in
from tests.support.static_server import StaticServer
from tests.support.synthetic import make_manifest, write_index

REPOSITORY = "me/tiny-lists"

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index with four layers."""
    folder = tmp_path_factory.mktemp("published") / "tiny"
    write_index(folder, make_manifest(reads_best="dot"))
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Words -> exit code, and what was said on standard error; a token is never said."""

    def run(*words: str | Path) -> tuple[int, str]:
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert TOKEN not in printed.err + printed.out
        return code, printed.err

    return run


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetHub]:
    """A Hub where whoever writes needs a token, and a user who has it."""
    with logged_in(monkeypatch) as server:
        yield server


@pytest.fixture
def web(tiny: Path) -> Iterator[tuple[StaticServer, str]]:
    """A static server, and the address of the index there."""
    site = StaticServer(tiny.parent)
    with site.serve() as url:
        yield site, f"{url}/{tiny.name}"


def files(folder: Path) -> dict[str, bytes]:
    """Every file of an index, without what this machine alone knows of it."""
    names = [name for name in os.listdir(folder) if name not in (LOCK, PULLED)]
    return {name: (folder / name).read_bytes() for name in names}


def publish(hub: DatasetHub, folder: Path) -> str:
    """Puts the files of a folder into a repository, as nobody but a stranger would; its commit."""
    return hub.make(REPOSITORY, files(folder)).branches["main"]
