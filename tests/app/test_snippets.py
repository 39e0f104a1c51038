"""Every command and every Python snippet of the README and of docs/ runs, on small models that are as deep and wide as
the commands need. (SQL: tests/precompute/export.)"""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from lexiscope.app.commands.cli import COMMANDS, main, make_parser
from tests.support.dataset_hub import logged_in
from tests.support.models import tiny_gpt2

ROOT = Path(__file__).parents[2]
PAGES = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES, re.MULTILINE | re.DOTALL)
LINES = [
    line
    for kind, block in BLOCKS
    for line in re.findall(r"^(?:\$ |LEX\S+ )?lexiscope (.+?)(?: +#.*)?$", block, re.MULTILINE)
    if not kind
]
WRITTEN = [*dict.fromkeys(re.sub(r" {2,}", " ", line) for line in LINES)]  # each once, in their order
QUICK = " --layers 8,10 --k 10 --pairs 12"  # instead of all layers
NOT_RUN = (
    "serve", "worker", "run demo", "seeds demo", "compare", "stitch", "reproduce", "precompute TUNED",
    "pull https", "pull /mnt",
)  # fmt: skip
RUNNING = [line for line in WRITTEN if not line.startswith(NOT_RUN) and "--ray" not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Local folders with the names that are Hub ids in the documents, and the files that they name."""
    folder = tmp_path_factory.mktemp("snippets")
    (folder / "lines.txt").write_text("the dog and the lion\na horse\n")
    (folder / "reviews.csv").write_text("review\na dog\n")
    shutil.copy(ROOT / "examples" / "labels" / "smollm2.json", folder / "mine.json")
    tiny_gpt2(folder / "gpt2", n_layers=11, n_heads=12, d_model=72, d_mlp=2362)
    tiny_gpt2(folder / "gpt2-medium", n_layers=11, n_heads=1, d_model=8)
    tiny_gpt2(folder / "gpt2-large", n_layers=36, n_heads=1, d_model=8)
    return folder


def test_all_commands_are_there() -> None:
    said = {line.split()[0] for line in WRITTEN}
    assert said == {command.name for command in COMMANDS} - {"demo"}
    assert WRITTEN[0].startswith("precompute")  # the others read what it makes


@pytest.mark.slow
def test_commands_run_in_their_order_and_then_the_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LEXISCOPE_DATA", raising=False)
    with logged_in(monkeypatch):
        for line in RUNNING:
            words = line.replace("--k 100 --pairs 500", "--k 10 --pairs 12").replace("--layers 8-10", "--layers 8,10")
            if words.startswith("precompute") and "--layers" not in words:
                words += QUICK
            assert main(shlex.split(words)) == 0, (line, capsys.readouterr().err)
    for kind, code in BLOCKS:
        if kind == "python":
            exec(code, {})


@pytest.mark.parametrize("line", sorted({*WRITTEN} - {*RUNNING}))
def test_the_others_are_understood(line: str) -> None:
    assert callable(make_parser().parse_args(shlex.split(line)).run)


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", PAGES))))
def test_every_option_exists(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            make_parser().parse_args([command.name, "--help"])
        helps.append(capsys.readouterr().out)
    assert any(option in text for text in helps)


def test_the_pictures_are_there() -> None:
    pictures = set(re.findall(r"!\[.+?\]\((?:\.\./)?(.+?)\)", PAGES))
    assert len(pictures) >= 10 - 1
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 150_000
