"""Compiled kernels are kept as long as no source changes, where there is a place to keep them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lexiscope.precompute.project.compiled import KERNEL_FOLDERS, PACKAGE, digest, first_writable

pytestmark = pytest.mark.slow

SMALL = """
from lexiscope.precompute.project.compiled import kernel
@kernel()
def double(x):
    return 2 * x
print(double(21), sum(double.stats.cache_hits.values()))
"""
Run = Callable[[Path], str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a kernel in a process of its own, with this folder as NUMBA_CACHE_DIR: its result and cache hits."""
    script = tmp_path / "small.py"
    script.write_text(SMALL)

    def run(folder: Path) -> str:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parents[1]), "NUMBA_CACHE_DIR": str(folder)}
        command = [sys.executable, str(script)]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    return run


def test_code_is_kept_in_the_given_folder_and_damaged_code_is_made_anew(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "kept"
    assert (run(folder), run(folder)) == ("42 0", "42 1")
    assert [path.name for path in folder.iterdir()] == [f"kernels-{digest(KERNEL_FOLDERS)}"]
    for pattern, content in (("*.nbi", b"not numba's"), ("*.nbc", b"")):
        for path in folder.rglob(pattern):
            path.write_bytes(content)
        assert run(folder) == "42 0", (pattern, content)


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(tmp_path / "file" / "x").startswith("42 ")


@pytest.mark.parametrize("change", ["edit", "rename", "add", "remove"])
def test_the_digest_tells_any_change_of_a_source(tmp_path: Path, change: str) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    before = digest([tmp_path])
    assert digest([tmp_path]) == before
    match change:
        case "edit":
            (tmp_path / "inner" / "b.py").write_text("# other\n")
        case "rename":
            (tmp_path / "a.py").rename(tmp_path / "c.py")
        case "add":
            (tmp_path / "c.py").write_text("")
        case "remove":
            (tmp_path / "a.py").unlink()
    assert digest([tmp_path]) != before


def test_the_first_folder_that_can_be_written_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    good, better = tmp_path / "deep" / "good", tmp_path / "better"
    assert first_writable([tmp_path / "file" / "x", good, better]) == good
    assert os.access(good, os.W_OK)
    assert not better.exists()
    assert first_writable([tmp_path / "file" / "x"]) is None
