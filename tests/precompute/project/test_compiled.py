"""Compiled kernels are kept as long as no source changes, where there is a place to keep them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from precompute.project.compiled import SOURCES, digest, first_writable
from precompute.project.exact import LANES, dot


def test_compiled_code_is_kept_under_the_digest_of_the_sources() -> None:
    x = np.arange(40, dtype=np.float32)
    assert dot(x, x, np.empty(LANES)) == float((x * x).sum())
    kept = [path for path in SOURCES.glob("__pycache__/kernels-*") if list(path.rglob("exact.dot-*"))]
    assert f"kernels-{digest(SOURCES)}" in [path.name for path in kept]


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_damaged_code_on_disk_is_made_anew(tmp_path: Path, damage: str) -> None:
    """Each run is a process of its own: what one keeps, the next one finds."""
    (tmp_path / "small.py").write_text(
        "from precompute import compiled\n"
        "compiled._folder = lambda: compiled.Path(__file__).parent / 'kept'\n"
        "@compiled.kernel()\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "print(double(21), sum(double.stats.cache_hits.values()))\n"
    )

    def run() -> str:
        environment = {**os.environ, "PYTHONPATH": str(SOURCES.parent)}
        command = [sys.executable, str(tmp_path / "small.py")]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    assert (run(), run()) == ("42 0", "42 1")
    for index in (tmp_path / "kept").rglob("*.nbi"):
        index.write_bytes({"cut": index.read_bytes()[:-20], "empty": b"", "other": b"not numba's"}[damage])
    assert (run(), run()) == ("42 0", "42 1")


@pytest.mark.parametrize("change", ["edit", "rename", "add", "remove"])
def test_the_digest_tells_any_change_of_a_source(tmp_path: Path, change: str) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    match change:
        case "edit":
            (tmp_path / "inner" / "b.py").write_text("# other\n")
        case "rename":
            (tmp_path / "a.py").rename(tmp_path / "c.py")
        case "add":
            (tmp_path / "c.py").write_text("")
        case "remove":
            (tmp_path / "a.py").unlink()
    assert digest(tmp_path) != before


def test_the_first_folder_that_can_be_written_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    good, better = tmp_path / "deep" / "good", tmp_path / "better"
    assert first_writable([tmp_path / "file" / "x", good, better]) == good
    assert os.access(good, os.W_OK)
    assert not better.exists()
    assert first_writable([tmp_path / "file" / "x"]) is None
