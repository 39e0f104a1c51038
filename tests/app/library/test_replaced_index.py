"""Over HTTP, the first answer after the files of an index were replaced: all of it is of what is there now."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.site import visit
from tests.support.synthetic import make_manifest, write_index

pytestmark = pytest.mark.slow


def rebuild(folder: Path) -> None:
    shutil.rmtree(folder)
    write_index(folder, replace(make_manifest(pairs=5), revision="2" * 40), (0, 2))


def touch(folder: Path) -> None:
    for path in folder.glob("layer-*"):
        os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("change", [rebuild, touch])
@pytest.mark.parametrize("path", [f"/tiny/{page}{face}" for page in ("token/40", "ff/0/1", "layer/2", "search")
                                  for face in ("", ".json", ".md", ".tex", ".csv")])  # fmt: skip
def test_the_first_answer_is_of_the_new_files(tmp_path: Path, path: str, change: Callable[[Path], None]) -> None:
    path += "?q=e" if "search" in path else ""
    write_index(tmp_path / "tiny", replace(make_manifest(), revision="1" * 40), (0, 1, 2, 3))
    with visit(tmp_path, refresh=3600) as visitor:
        assert visitor.get(path).status_code == 200
        change(tmp_path / "tiny")
        first = visitor.get(path)
        second = visitor.get(path)
    with visit(tmp_path) as visitor:
        anew = visitor.get(path)
    assert (first.status_code, first.text) == (anew.status_code, anew.text)
    assert first.headers["etag"] == second.headers["etag"]
