"""Templates and static files are found from a clone; tests/test_wheel.py finds them in a wheel."""

from pathlib import Path

from lexiscope.app.html.assets import fingerprint, folder, load_assets

ROOT = Path(__file__).parents[3]


def test_a_clone_links_to_them() -> None:
    assert folder("templates").resolve() == ROOT / "templates"
    assert (folder("static") / "lexiscope.css").is_file()


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
