"""Messages hold nothing that a terminal obeys: in the function that sees to it, and in every place that prints one."""

import io
import json
import unicodedata
from pathlib import Path

import pytest
from rich.console import Console

from lexiscope.app.commands.cli import main
from lexiscope.app.terminal import print_view
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import MANIFEST
from lexiscope.precompute.plain_text import plain
from tests.support.synthetic import make_manifest, write_index
from tests.support.views import seeds_of

EVIL = "[bold] :smile: [/b]\x1b]0;title\x07\x1b[31m\x9b2J\u202egnp\u2028\r\n\udcff\u200b"


@pytest.mark.parametrize(("text", "shown"), [
    ("", ""),
    ("layer 3 of gpt2: 12 µs, 日本", "layer 3 of gpt2: 12 µs, 日本"),
    ("\x1b[31m", "\\x1b[31m"), ("a\nb\rc\td", "a\\nb\\rc\\td"),
    ("\x9b\u202e\U000e0001\udc80", "\\u009b\\u202e\\U000e0001\\udc80"),
])  # fmt: skip
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


def harmless(text: str) -> bool:
    shown = text.replace("\n", "")
    return not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in shown)


def test_progress() -> None:
    output = io.StringIO()
    Progress(Console(file=output)).say(f"model {EVIL}: 1 of 2")
    assert output.getvalue().count("\n") == 1
    assert harmless(output.getvalue())
    assert "[bold] :smile: [/b]" in output.getvalue()


def test_seed_words(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(), layers=(0,))
    index, output = Index.open(tmp_path / "tiny"), io.StringIO()
    print_view(Console(file=output, width=200), seeds_of(index, "ff_key", 0, 1, EVIL))
    shown = output.getvalue().replace("\N{FIRST STRONG ISOLATE}", "").replace("\N{POP DIRECTIONAL ISOLATE}", "")
    assert "gnp" in shown
    assert harmless(shown)


@pytest.mark.parametrize("words", [
    ("show", EVIL, "ff", "0", "0"), ("models",), ("verify", "tiny"), ("precompute", "tiny"),
    ("precompute", "tiny", f"./{EVIL}"),
])  # fmt: skip
def test_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """The index says that its weights are at a place with such a name; another has such a manifest."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("LEXISCOPE_DATA", str(tmp_path))
    for name in ("tiny", "broken"):
        write_index(tmp_path / name, make_manifest(model=name), layers=(0,))
    for name, field in (("tiny", "source"), ("broken", "model")):
        content = json.loads((tmp_path / name / MANIFEST).read_text())
        (tmp_path / name / MANIFEST).write_text(json.dumps(content | {field: f"/nowhere/{EVIL}"}))
    code = main(words)
    captured = capsys.readouterr()
    assert code == (0 if words[0] == "models" else 1)
    assert "Traceback" not in captured.err
    assert captured.err or captured.out
    assert harmless(captured.err)
    assert harmless(captured.out)
