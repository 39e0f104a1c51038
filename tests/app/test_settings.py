"""Settings: from arguments, else the environment; documented where they are defined."""

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lexiscope.app.settings import HIDDEN, PREFIX, Settings, described, load
from lexiscope.precompute.errors import ServeError
from tests.support.site import visit


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_arguments_before_the_environment_before_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEXISCOPE_PORT", "9000")
    monkeypatch.setenv("LEXISCOPE_HOST", "0.0.0.0")
    monkeypatch.setenv("LEXISCOPE_DATA", "")
    settings = load(host="::1", port=None)
    assert (settings.host, settings.port, settings.data) == ("::1", 9000, Path("data"))


@pytest.mark.parametrize(("chosen", "said"), [
    ({"port": 65536}, "LEXISCOPE_PORT = 65536"), ({"port": "http"}, "LEXISCOPE_PORT = 'http'"),
    ({"refresh": -1}, "LEXISCOPE_REFRESH = -1"),
    ({"log_level": "loud"}, "'debug', 'info', 'warning' or 'error'"),
    ({"url_limit": 0}, "LEXISCOPE_URL_LIMIT = 0"),
    ({"layer_rows": 10**9}, "LEXISCOPE_LAYER_ROWS"),
    ({"worker": "on"}, "'auto', 'start' or 'off'"),
    ({"queue": 0}, "LEXISCOPE_QUEUE = 0"),
    ({"url": "lexiscope.org"}, "LEXISCOPE_URL = 'lexiscope.org': Value error, write http://"),
    ({"url": "ftp://lexiscope.org"}, "write http:// or https://"),
    ({"url": "https://user@lexiscope.org"}, "write http:// or https://"),
    ({"url": "https://lexiscope.org/models"}, "served from / on"),
    ({"url": "https://lexiscope.org/?x=1"}, "leave out what follows the host"),
    ({"request_seconds": 0}, "LEXISCOPE_REQUEST_SECONDS = 0"),
])  # fmt: skip
def test_a_wrong_value_is_named(chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(ServeError, match=re.escape(said)):
        load(**chosen)


def test_every_setting_says_what_it_means() -> None:
    for setting in described(Settings()):
        assert setting["description"]
        assert setting["value"] == setting["default"]


def test_every_setting_is_shown(client: TestClient) -> None:
    shown = client.get("/-/settings.json").json()["settings"]
    assert [setting["name"] for setting in shown] == list(Settings.model_fields)
    page = client.get("/-/settings").text
    assert all(setting["variable"] in page and setting["description"] in page for setting in shown)


def test_paths_and_addresses_are_not_shown(site_data: Path) -> None:
    with visit(site_data, worker_url="http://gpu.internal:8100") as visitor:
        pages = visitor.get("/-/settings.json").text + visitor.get("/-/settings").text
    assert pages.count(HIDDEN) == 4
    assert str(site_data) not in pages
    assert "gpu.internal" not in pages
