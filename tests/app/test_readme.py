"""Every command in the README runs, on a small model that is as deep and wide as the commands need."""

import re
from pathlib import Path

import pytest

from lexiscope.app.commands.cli import main, make_parser
from lexiscope.precompute.weights.architectures import supported
from tests.support.dataset_hub import logged_in
from tests.support.models import tiny_gpt2

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^(?:\$ )?lexiscope (.+?)(?: +#.*)?$", README, re.MULTILINE)
QUICK = " --layers 8,10 --k 10 --pairs 12"  # instead of all layers
NOT_RUN = (
    "serve", "worker", "seeds demo", "compare", "stitch", "labels", "vocabulary", "reproduce", "precompute TUNED",
    "pull https", "pull /mnt",
)  # fmt: skip
RUNNING = [line for line in COMMANDS if not line.startswith(NOT_RUN) and "--ray" not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Local folders with the names that are Hub ids in the README, and a file of texts."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "lines.txt").write_text("the dog and the lion\na horse\n")
    tiny_gpt2(folder / "gpt2", n_layers=11, n_heads=12, d_model=72, d_mlp=2362)
    tiny_gpt2(folder / "gpt2-medium", n_layers=11, n_heads=1, d_model=8)
    tiny_gpt2(folder / "gpt2-large", n_layers=36, n_heads=1, d_model=8)
    return folder


def test_all_commands_are_there() -> None:
    said = {line.split()[0] for line in COMMANDS}
    assert said >= {"precompute", "serve", "show", "seeds", "verify", "models"}
    assert COMMANDS[0].startswith("precompute")  # the others read what it makes


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
            assert main(words.split()) == 0, (line, capsys.readouterr().err)
    for code in re.findall(r"^```python\n(.+?)^```$", README, re.MULTILINE | re.DOTALL):
        exec(code, {})


@pytest.mark.parametrize("line", sorted({*COMMANDS} - {*RUNNING}))
def test_the_others_are_understood(line: str) -> None:
    assert callable(make_parser().parse_args(line.split()).run)


@pytest.mark.parametrize("option", sorted(set(re.findall(r"`(--[a-z-]+)", README))))
def test_every_option_exists(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    commands = (
        "precompute", "show", "seeds", "verify", "demo", "serve", "models", "compare", "stitch", "lab", "labels",
        "export", "reproduce", "push", "pull", "worker",
    )  # fmt: skip
    for command in commands:
        with pytest.raises(SystemExit):
            make_parser().parse_args([command, "--help"])
        helps.append(capsys.readouterr().out)
    assert any(option in text for text in helps)


@pytest.mark.parametrize(("kind", "causal"), [("decoders", True), ("encoders", False)])
def test_every_family_of_models_is_named(kind: str, causal: bool) -> None:
    (said,) = re.findall(rf"^- {kind}: (.+?)[;.]$", README, re.MULTILINE | re.DOTALL)
    names = {name for model in supported().values() if model.causal == causal for name in model.model_types.values()}
    assert sorted(re.findall(r"\*\*(.+?)\*\*", said)) == sorted(names)


def test_families_that_are_read_from_gguf() -> None:
    (said,) = re.findall(r"^(.+) also from GGUF\.", README, re.MULTILINE)
    families = supported()
    known = {name for model in families.values() if model.gguf for name in model.gguf.architectures}
    assert set(re.split(r", | and ", said)) == {families[name].model_types[name] for name in known}


def test_the_pictures_are_there() -> None:
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", README)
    assert len(pictures) >= 10 - 1
    for picture in pictures:
        assert (Path(__file__).parents[2] / picture).stat().st_size < 150_000
