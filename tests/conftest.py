"""What all tests share: two small indexes and the site over them, built once; no waiting for the disk;
hypothesis takes the same 25 examples in every run, without a time limit: the first call of a kernel compiles it.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.support.shared import make_once_per_run
from tests.support.site import AWAY, DIFFERENCE, GPT2, LLAMA, PAIRS, K, visit

if TYPE_CHECKING:
    from starlette.testclient import TestClient

if "PYTEST_XDIST_WORKER" in os.environ:  # a process per core: threads of torch would only get in each other's way
    os.environ.setdefault("OMP_NUM_THREADS", "1")

LONGEST_FIRST = ("ray", "browser", "demo", "slow")  # marks of tests

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # commands that tests start have it ignored otherwise, under nohup

REAL_MODELS = {"smollm2", "minilm", "sre", "gte_small", "stories", "gpt2_tokens"}  # fixtures

settings.register_profile("lexiscope", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("lexiscope")


def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are cores, because tests that start servers, workers or clusters mostly wait."""
    return 1 + (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need Chromium, a real model or a worker, and begin with the files that take longest: `make test`
    gives whole files to its processes, and short files at the end keep all of them busy until then."""
    browser = Path(__file__).parent / "browser"
    for item in items:
        if item.path.is_relative_to(browser):
            item.add_marker("browser")
        fixtures = getattr(item, "fixturenames", ())
        if not REAL_MODELS.isdisjoint(fixtures):
            item.add_marker("demo")
        if "live" in fixtures:
            item.add_marker("slow")
    long_files = [{item.path for item in items if item.get_closest_marker(name)} for name in LONGEST_FIRST]
    items.sort(key=lambda item: next((n for n, files in enumerate(long_files) if item.path in files), len(long_files)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.getreports("skipped") if "browser" in report.keywords]
    if skipped:
        line = f"{len(skipped)} browser tests were skipped: there is no Chromium on the PATH (apt install chromium)"
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Flushing takes most of the time of writing many small indexes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_users() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("LEXISCOPE_")]:
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def site_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small real indexes, one of each architecture, their comparison, and the index of a difference; measurements
    of all but the first. Who damages files does it in a copy."""

    def build(folder: Path) -> None:
        from tests.support.builds import quick_build
        from tests.support.classifiers import with_labels
        from tests.support.comparisons import compare_site_models
        from tests.support.differences import build_difference, fine_tune_llama, tuned_from
        from tests.support.labs import add_site_labs
        from tests.support.models import tiny_gpt2, tiny_llama
        from tests.support.site_labels import write_labels

        sources, data = folder / "sources", folder / "data"
        quick_build(tiny_gpt2(sources / GPT2, n_layers=3), data, k=K, pairs=PAIRS, layers=(1, 2))
        quick_build(llama := tiny_llama(sources / LLAMA), data, k=K, pairs=PAIRS)
        compare_site_models(data)
        tuned = with_labels(tuned_from(llama, sources / "tiny-tuned", fine_tune_llama))
        build_difference(tuned, llama, data, name=DIFFERENCE, k=K, pairs=PAIRS)
        add_site_labs(data, LLAMA, DIFFERENCE)
        write_labels(data)

    return make_once_per_run(tmp_path_factory, "site", build) / "data"


@pytest.fixture(scope="session")
def difference_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of a difference, in which some vectors and one whole layer did not change, and that of its base
    (names: `tests/support/differences.py`)."""

    def build(folder: Path) -> None:
        from tests.support.differences import make_difference_data

        make_difference_data(folder, K, PAIRS)

    return make_once_per_run(tmp_path_factory, "difference", build) / "data"


@pytest.fixture(scope="session")
def paper_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of small GPT-2s in which some of the paper's lists are planted, or none; their checkpoints are beside it
    (names: `tests/support/planted.py`)."""

    def build(folder: Path) -> None:
        from tests.support.planted import make_paper_data

        make_paper_data(folder)

    return make_once_per_run(tmp_path_factory, "paper", build) / "data"


@pytest.fixture(scope="session")
def client(site_data: Path) -> Iterator["TestClient"]:
    """The site, whose workers are away: its pages have links to live ones."""
    with visit(site_data, worker_url=AWAY) as visitor:
        yield visitor


@pytest.fixture(scope="session")
def workers(site_data: Path) -> Iterator[str]:
    """The addresses of workers for the three models of the site, in threads of this process, as a setting has them."""
    from tests.support.workers import workers_of

    with workers_of(site_data, GPT2, LLAMA, DIFFERENCE) as addresses:
        yield addresses


@pytest.fixture(scope="session")
def live(site_data: Path, workers: str) -> Iterator["TestClient"]:
    """The site with its workers."""
    with visit(site_data, worker_url=workers) as visitor:
        yield visitor
