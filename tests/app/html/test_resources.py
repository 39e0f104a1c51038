"""Templates and static files are found from a clone, and are in the wheel with every package."""

import tomllib
from pathlib import Path

from app.html.assets import fingerprint, load_assets
from app.html.resources import folder

ROOT = Path(__file__).parents[3]


def test_a_clone_has_them_beside_the_packages() -> None:
    assert folder("templates") == ROOT / "templates"
    assert (folder("static") / "lexiscope.css").is_file()


def test_the_wheel_has_every_package_and_every_file() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("app", "precompute")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert set(about["packages"]) == found | {"app.static", "app.templates"}
    for package, place in about["package-dir"].items():
        held = {path for pattern in about["package-data"][package] for path in (ROOT / place).glob(pattern)}
        assert held == {path for path in (ROOT / place).rglob("*") if path.is_file()}


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
