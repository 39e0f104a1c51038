"""A small index of each shape, for tests of pages; a real engine that tests of workers can hold up, loaded once;
asynchronous tests run on asyncio."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jinja2.bccache import Bucket, BytecodeCache

from lexiscope.app.html import assets
from lexiscope.app.html.assets import TemplateEnvironment
from lexiscope.precompute.index.index import Index
from tests.support.site import GPT2

if TYPE_CHECKING:
    from tests.support.workers import HeldEngine


class CompiledTemplates(BytecodeCache):
    """Templates that any site has compiled, for all others."""

    def __init__(self) -> None:
        self.code: dict[tuple[str, str], bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if code := self.code.get((bucket.key, bucket.checksum)):
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.code[bucket.key, bucket.checksum] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def templates_are_compiled_once() -> Iterator[None]:
    """It takes most of the time of the first pages of a site, and tests start many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assets, "TemplateEnvironment", partial(TemplateEnvironment, bytecode_cache=CompiledTemplates()))
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def loaded(site_data: Path) -> "tuple[HeldEngine, str]":
    """The engine and the hash of its weights."""
    from tests.support.workers import held_engine

    return held_engine(site_data, GPT2)


@pytest.fixture
def engine(loaded: "tuple[HeldEngine, str]") -> "Iterator[HeldEngine]":
    """For one test, which may hold it."""
    engine = loaded[0]
    engine.batches.clear()
    engine.given_up.clear()
    yield engine
    engine.hold.clear()


@pytest.fixture(scope="session")
def live_url(site_data: Path, loaded: "tuple[HeldEngine, str]") -> Iterator[str]:
    """The site at an address, with a worker for GPT2."""
    from lexiscope.app.settings import Settings
    from lexiscope.app.site.server import create_app
    from tests.support.workers import listening, worker_app

    engine, weights = loaded
    with (
        listening(worker_app(engine, GPT2, weights)) as worker,
        listening(create_app(Settings(data=site_data, worker_url=f"{GPT2}={worker}"))) as url,
    ):
        yield url


@pytest.fixture(scope="session")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Index]:
    from tests.support.lists import open_indexes

    return open_indexes(tmp_path_factory.mktemp("views"))


@pytest.fixture(scope="session")
def index(indexes: dict[str, Index]) -> Index:
    return indexes["gpt2-like"]
