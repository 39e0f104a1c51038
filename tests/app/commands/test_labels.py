"""`lexiscope labels check`."""

from pathlib import Path

from tests.app.commands.conftest import Refused, Run
from tests.support.site import LLAMA
from tests.support.site_labels import write_labels


def test_good_files(run: Run, site_data: Path) -> None:
    code, out, _ = run("labels", "check", "--data", site_data)
    assert code == 0
    assert f"site.json: ok, labels: 6 of {LLAMA}" in out
    assert "everything is as it should be" in out


def test_bad_files(run: Run, tmp_path: Path, site_data: Path) -> None:
    bad = write_labels(tmp_path, "bad.json", [
        {"address": f"{LLAMA}/vo/99/1", "title": "x"}, {"address": "gpt2/vo/99/1", "title": "\x1b[2J"},
        {"address": "unknown/vo/99/1", "title": "x"},
    ])  # fmt: skip
    code, out, _ = run("labels", "check", bad, tmp_path / "missing.json", "--data", site_data)
    assert code == 1
    assert f"  {bad}, entry 1, address: layer 99: {LLAMA} has layers 0 to" in out
    assert f"  {bad}, entry 2, title: it holds U+001B" in out
    assert "missing.json: it cannot be read (No such file or directory)" in out
    assert "entry 3" not in out
    assert "3 faults" in out
    assert "\x1b" not in out


def test_nothing_to_check(refused: Refused, tmp_path: Path) -> None:
    assert "no file of labels" in refused("labels", "check", "--data", tmp_path)
    (tmp_path / "labels").touch()
    assert "cannot be read" in refused("labels", "check", "--data", tmp_path)
