"""The whole explorer over two small real indexes, one of each architecture, built once per run: fixtures for all tests.
Tests that damage files do it in a copy."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
