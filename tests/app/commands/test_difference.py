"""`lexiscope precompute TUNED --minus BASE`, and what the other commands make of a difference."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from lexiscope.app.commands.cli import main
from lexiscope.app.weights import find_difference
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import Manifest
from tests.app.commands.conftest import Refused, Run
from tests.precompute.weights.gguf_files import write_gguf
from tests.support.builds import SMALL, contents, small_gpt2
from tests.support.differences import BASE, DIFFERENCE, TUNED, nudged, tuned_from
from tests.support.models import tiny_llama
from tests.support.shared import make_once_per_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tuned_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed build by the command, to copy and compare with; never changed."""

    def make(folder: Path) -> None:
        base = small_gpt2(folder / "sources" / "base")
        tuned_from(base, folder / "sources" / "tuned", fine_tune_layer_1)
        assert main([*map(str, words(folder / "sources", folder))]) == 0

    return make_once_per_run(tmp_path_factory, "made-difference", make) / "tuned-minus-base"


@pytest.fixture(scope="module")
def sources(tuned_index: Path) -> Path:
    return tuned_index.parent / "sources"


def fine_tune_layer_1(name: str, tensor: torch.Tensor) -> torch.Tensor:
    return nudged(tensor, len(name)) if ".h.1." in name else tensor


def words(sources: Path, data: Path) -> list[str | Path]:
    return ["precompute", sources / "tuned", "--minus", sources / "base", "--data", data, *SMALL]


def copied(index: Path, data: Path) -> Path:
    return Path(shutil.copytree(index, data / index.name))


def test_built_again_it_is_up_to_date(run: Run, sources: Path, tuned_index: Path) -> None:
    code, _, err = run(*words(sources, tuned_index.parent))
    assert (code, "was up to date already" in err) == (0, True)
    assert "nothing in layers 0, 2" in err


@pytest.mark.parametrize("by_name", [True, False])
def test_it_goes_on_by_its_name_or_by_the_same_command(
    run: Run, sources: Path, tuned_index: Path, tmp_path: Path, by_name: bool
) -> None:
    index = copied(tuned_index, tmp_path)
    manifest = Manifest.load(index)
    manifest.with_changes(shards={2: manifest.shards[2]}, reads_best=None).save(index)
    for layer in (0, 1):
        (index / f"layer-{layer}.safetensors").unlink()
    again = ["precompute", tuned_index.name, "--data", tmp_path] if by_name else words(sources, tmp_path)
    code, _, err = run(*again)
    assert code == 0, err
    assert "1 of 3 layers are ready, 2 to build" in err
    assert contents(index) == contents(tuned_index)


def test_a_name_of_its_own(run: Run, sources: Path, tmp_path: Path) -> None:
    code, _, err = run(*words(sources, tmp_path), "--name", "what-changed", "--layers", "1", "--pairs", "0")
    assert code == 0, err
    index = Index.open(tmp_path / "what-changed")
    assert index.manifest.rebuild_command == "lexiscope precompute tuned --minus base --name what-changed"
    with pytest.raises(Exception, match="`lexiscope precompute tuned --minus base --name what-changed` goes on"):
        index.shard(0)
    (tmp_path / "what-changed" / "layer-1.safetensors").write_bytes(b"half")
    with pytest.raises(Exception, match="run `lexiscope precompute tuned --minus base --name what-changed` again"):
        Index.open(tmp_path / "what-changed").shard(1)


def test_other_commands_know_it(run: Run, difference_data: Path) -> None:
    code, out, err = run("verify", DIFFERENCE, "--data", difference_data, "--seed", "1")
    assert (code, "everything is as it should be" in out) == (0, True), out + err
    _, out, _ = run("models", "--data", difference_data)
    assert f"{TUNED} − {BASE}" in out
    code, out, err = run("seeds", DIFFERENCE, "dog", "lion", "--data", difference_data, "--json")
    assert code == 0, err
    assert {result["layer"] for result in json.loads(out)["results"]} == {1}
    code, out, err = run("show", DIFFERENCE, "ff", "1", "5", "--data", difference_data, "--json")
    assert (code, json.loads(out)["model"]) == (0, DIFFERENCE), err


@pytest.mark.parametrize("which", ["tuned", "base"])
def test_weights_that_are_others_now(run: Run, sources: Path, tuned_index: Path, tmp_path: Path, which: str) -> None:
    elsewhere = Path(shutil.copytree(sources, tmp_path / "sources"))
    index = copied(tuned_index, tmp_path)
    text = (index / "manifest.json").read_text().replace(str(sources), str(elsewhere))
    (index / "manifest.json").write_text(text)
    assert run("verify", tuned_index.name, "--data", tmp_path, "--seed", "1")[0] == 0
    shutil.copy(small_gpt2(tmp_path / "others", seed=9) / "model.safetensors", elsewhere / which)
    code, _, err = run("verify", tuned_index.name, "--data", tmp_path)
    assert (code, f"{which} holds other weights than the index" in err) == (1, True)
    code, _, err = run(*words(elsewhere, tmp_path))
    hash_of = {"tuned": "weights' hash", "base": "base's hash"}[which]
    assert (code, f"holds another build, from {elsewhere}/tuned (its {hash_of} is" in err) == (1, True), err
    shutil.rmtree(elsewhere / which)
    code, _, err = run("precompute", tuned_index.name, "--data", tmp_path)
    assert (code, f"{which}'" in err) == (1, True), err
    assert Index.open(index).layers == (0, 1, 2)  # it is read as before


def test_names_of_indexes_and_mixed_sources(run: Run, sources: Path, tmp_path: Path) -> None:
    """A folder, the name of an index that is built, a GGUF file."""
    assert run("precompute", sources / "base", "--data", tmp_path, *SMALL, "--pairs", "0")[0] == 0
    difference = find_difference(str(sources / "tuned"), "base", tmp_path)
    assert (difference.checkpoint.name, difference.base.checkpoint.folder) == ("tuned-minus-base", sources / "base")
    llama = tiny_llama(tmp_path / "llama")
    write_gguf(llama, tmp_path / "of-llama.gguf")
    difference = find_difference(str(tmp_path / "of-llama.gguf"), str(llama), tmp_path)
    assert difference.checkpoint.name == "of-llama-minus-llama"
    assert not any(difference.vectors(0, kind).any() for kind in difference.shape.kinds)


def test_a_name_is_for_one_difference(refused: Refused, sources: Path) -> None:
    assert "--name x is for one difference" in refused("precompute", sources / "tuned", "--name", "x")
    both = ("precompute", sources / "tuned", sources / "base", "--minus", sources / "base", "--name", "x")
    assert "--name x is for one difference" in refused(*both)
