"""Templates and static files are found from a clone, and are in the wheel with every package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.html.assets import fingerprint, folder, load_assets

ROOT = Path(__file__).parents[3]
ASSETS = ("static", "templates")


def test_a_clone_has_them_beside_the_packages() -> None:
    assert folder("templates") == ROOT / "templates"
    assert (folder("static") / "lexiscope.css").is_file()


@pytest.mark.slow
def test_the_wheel_has_every_package_and_every_file(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    for folder_name in ("app", "lexiscope", "precompute", "static", "templates"):
        shutil.copytree(ROOT / folder_name, source / folder_name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    expected = {
        str(path.relative_to(source) if folder_name not in ASSETS else "app" / path.relative_to(source))
        for folder_name in ("app", "lexiscope", "precompute", "static", "templates")
        for path in (source / folder_name).rglob("*")
        if path.is_file()
    }
    command = [sys.executable, "setup.py", "-q", "build", "--build-lib", str(built)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    assert {str(path.relative_to(built)) for path in built.rglob("*") if path.is_file()} == expected


def test_assets_have_addresses_of_their_content(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("1")
    (tmp_path / ".hidden").write_text("2")
    (tmp_path / "folder").mkdir()
    before, marked = load_assets(tmp_path), fingerprint(tmp_path)
    assert list(before) == ["a.js"]
    assert before["a.js"].media_type == "text/javascript; charset=utf-8"
    (tmp_path / "a.js").write_text("3")
    assert load_assets(tmp_path)["a.js"].url != before["a.js"].url
    assert fingerprint(tmp_path) != marked
