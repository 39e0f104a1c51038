"""`lexiscope stitch` as a person types it."""

import json
from pathlib import Path

import pytest

from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.stitching import STITCHING
from tests.app.commands.conftest import Refused, Run
from tests.support.families import FAMILIES
from tests.support.larger_vocabulary import TOKENS, comparable_gpt2

LINES = "The dog and the lion saw the horse\na lion and a horse of the farm\nParis is in France\n"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stitched")
    comparable_gpt2(folder / "ann", n_layers=2, seed=1)
    comparable_gpt2(folder / "bob", n_layers=3, d_model=48, seed=2)
    FAMILIES["gpt2"].save(folder / "small")
    (folder / "lines.txt").write_text(LINES)
    return folder


def stitching(data: Path, a: str, b: str) -> list[dict[str, object]]:
    runs = json.loads((data / "vs" / a / b / STITCHING).read_text())
    assert isinstance(runs, list)
    return runs


@pytest.mark.slow
def test_a_run_is_printed_and_kept_beside_the_comparison(run: Run, sources: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    words = ("stitch", sources / "ann", sources / "bob", "--texts", sources / "lines.txt", "--data", data)
    code, printed, said = run(*words, "--last", "1")
    assert code == 0, said
    assert f"ann and bob have {TOKENS} tokens in common" in said
    assert "ann → bob: 0 of 3 texts are ready, 3 to stitch" in said
    lines = printed.splitlines()
    assert len({len(line) for line in lines[1:]}) == 1  # a table
    assert "ann → the last 1 layers of bob" in lines[0]
    names = ("embedding", "after layer 0", "after layer 1", "bob by itself", "chance")
    for name, line in zip(names, lines[2:], strict=True):
        assert line.strip().startswith(name)
    assert run(*words, "--last", "2", "--limit", "2", "--tokens", "4")[0] == 0
    runs = stitching(data, "ann", "bob")
    assert [(each["last"], each["count"], each["length"], each["texts"]) for each in runs] == [
        (1, 3, 64, "lines.txt"), (2, 2, 4, "lines.txt"),
    ]  # fmt: skip
    before = runs[1]
    assert run(*words, "--last", "2")[0] == 0
    runs = stitching(data, "ann", "bob")
    assert [each["last"] for each in runs] == [1, 2]
    assert runs[1] != before
    comparison = Comparison.open(data / "vs" / "ann" / "bob")
    assert comparison.kinds == ()
    assert comparison.kernel().shape == (32, 48)
    assert [each["last"] for each in comparison.stitching()] == [1, 2]


@pytest.mark.slow
def test_other_weights_of_the_same_name(run: Run, refused: Refused, sources: Path, tmp_path: Path) -> None:
    """A run of former weights is no longer told; the comparison says what to do."""
    data, other = tmp_path / "data", comparable_gpt2(tmp_path / "ann", n_layers=2, seed=7)
    words = ("--texts", sources / "lines.txt", "--data", data, "--last", "1")
    assert run("stitch", sources / "ann", sources / "bob", *words)[0] == 0
    said = refused("stitch", other, sources / "bob", *words)
    assert "holds another comparison" in said
    assert "`lexiscope compare` that takes --force" in said
    assert len(stitching(data, "ann", "bob")) == 1


@pytest.mark.parametrize(("words", "said"), [
    ("{0}/ann {0}/bob --texts {0}/none.txt", "none.txt cannot be read: No such file"),
    ("{0}/ann {0}/bob --texts {0}/lines.pdf", "give a .txt with a text in each line"),
    ("{0}/ann {0}/none --texts {0}/lines.txt", "none"),
    ("{0}/ann {0}/bob --texts {0}/lines.txt --last 4", "it has 3, so give 1 to 3"),
    ("{0}/small {0}/bob --texts {0}/lines.txt", "a comparison needs at least 1000"),
])  # fmt: skip
def test_what_is_refused(refused: Refused, sources: Path, tmp_path: Path, words: str, said: str) -> None:
    data = tmp_path / "data"
    assert said in refused("stitch", *words.format(sources).split(), "--data", data)
    assert not list(data.rglob(STITCHING))
