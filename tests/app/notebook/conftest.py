"""Models of the site's data folder as a notebook opens them, and a server over the same folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import lexiscope
from tests.support.site import DIFFERENCE, GPT2, LLAMA


@pytest.fixture
def gpt2(site_data: Path) -> lexiscope.Model:
    return lexiscope.open(GPT2, data=site_data)


@pytest.fixture
def llama(site_data: Path) -> lexiscope.Model:
    return lexiscope.open(LLAMA, data=site_data)


@pytest.fixture
def difference(site_data: Path) -> lexiscope.Model:
    return lexiscope.open(DIFFERENCE, data=site_data)


@pytest.fixture(scope="session")
def site_url(site_data: Path) -> Iterator[str]:
    """The site at an address, without a worker."""
    from lexiscope.app.settings import Settings
    from lexiscope.app.site.server import create_app
    from tests.support.workers import listening

    with listening(create_app(Settings(data=site_data, worker="off"))) as url:
        yield url
