"""Over HTTP, answers after the files of an index were replaced: nothing of the old ones, and soon what is there now."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.site import visit
from tests.support.synthetic import make_manifest, write_index

pytestmark = pytest.mark.slow


def rebuild(folder: Path) -> None:
    shutil.rmtree(folder)
    write_index(folder, make_manifest(pairs=5).with_changes(revision="2" * 40), (0, 2))


def touch(folder: Path) -> None:
    for path in folder.glob("layer-*"):
        os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("change", [rebuild, touch])
@pytest.mark.parametrize("page", ["token/40", "ff/0/1", "layer/2", "search"])
@pytest.mark.parametrize("format", ["", ".json", ".csv"])
def test_a_page_of_replaced_files(tmp_path: Path, page: str, format: str, change: Callable[[Path], None]) -> None:
    path = f"/tiny/{page}{format}{'?q=e' if page == 'search' else ''}"
    write_index(tmp_path / "tiny", make_manifest().with_changes(revision="1" * 40), (0, 1, 2, 3))
    with visit(tmp_path, refresh=3600) as visitor:
        assert visitor.get(path).status_code == 200
        change(tmp_path / "tiny")
        assert visitor.get(path).status_code in (200, 503)  # pages about all layers name those that are missing
        with visit(tmp_path) as other:
            anew = other.get(path)
        deadline = time.monotonic() + 10
        while (answer := visitor.get(path)).text != anew.text and time.monotonic() < deadline:
            time.sleep(0.01)  # touched files are being checked
        assert (answer.status_code, answer.text) == (anew.status_code, anew.text)
        assert visitor.get(path).headers["etag"] == answer.headers["etag"]
