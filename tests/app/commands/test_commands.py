"""The commands that build and check, as a user runs them: words in, text and exit code out, signals in between.
The lists that `show` prints are for test_show.py."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

import lexiscope
from lexiscope.app.commands import demo
from lexiscope.app.commands.cli import make_parser
from lexiscope.app.formats.json_format import ascii_json
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER, Manifest
from lexiscope.precompute.index.origin import DEMO_NAME
from tests.app.commands.conftest import Refused, Run
from tests.support.builds import SMALL, command, contents, copy, quick_build, small_gpt2
from tests.support.models import tiny_llama


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_gpt2(tmp_path_factory.mktemp("source") / "tiny", n_layers=2)


@pytest.fixture(scope="module")
def built(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_build(source, tmp_path_factory.mktemp("built"))


# Building


def test_build_then_again(run: Run, source: Path, built: Path, tmp_path: Path) -> None:
    code, out, err = run("precompute", source, "--data", "data", *SMALL)
    assert (code, out) == (0, "")
    assert "layer 1 is ready; 1 of 2 layers" in err
    assert contents(tmp_path / "data" / "tiny") == contents(built)
    code, out, err = run("precompute", "tiny", "--data", "data")  # an index knows its source and its options
    assert (code, out) == (0, "")
    assert "nothing to do" in err


def test_one_of_several_fails(refused: Refused, source: Path) -> None:
    err = refused("precompute", "./missing", source, "./lost", "--data", "data", *SMALL)
    assert "lexiscope: ./missing: There is no folder" in err
    assert "lexiscope: ./lost: There is no folder" in err
    assert Index.open(Path("data/tiny")).layers == (0, 1)
    err = refused("precompute", "./missing", "--data", "data")
    assert err.count("There is no folder") == 1


@pytest.mark.parametrize(("words", "code", "said"), [
    (("--device", "nonsense"), 1, "device 'nonsense' cannot be used here"),
    (("--layers", "9"), 1, "layer 9: tiny has layers 0 to 1"),
    *[
        (("--layers", text), 2, "is not a range of layers such as 30-35")
        for text in ("x", "3-1", "1,,2")
    ],
    (("--k", "0"), 2, "'0' is not a whole number from 1 on"),
    (("--pairs", "many"), 2, "'many' is not a whole number from 0 on"),
    (("--kinds", "ff_value,values"), 2, "'values' is none of ff_key, ff_up, ff_value"),
    (("--kinds", ""), 2, "'' is none of ff_key"),
    (("--kinds", "ff_up"), 1, "--kinds ff_up: the vectors of tiny are ff_key, ff_value, w_q, w_k, w_v, w_o"),
    (("--kinds", "ff_value,ff_key"), 1, "w_k,w_v,w_o,vo_in,vo_out,qk_query,qk_key, not ff_key,ff_value"),
    (("--lenses", "cosinus"), 2, "'cosinus' is none of dot, cosine"),
    (("--lenses", "cosine"), 1, "its lenses is dot,cosine, not cosine"),
    (("--pairs", "0"), 1, "its pairs is 12, not 0"),
    (("--threads", "-2"), 2, "'-2' is not a whole number from 1 on"),
    (("--revision", "main"), 1, "has no revisions"),
    (("--k", "9"), 1, "its k is 8, not 9"),
])  # fmt: skip
def test_options_that_make_no_sense(
    run: Run, source: Path, built: Path, words: tuple[str, str], code: int, said: str
) -> None:
    before = contents(built)
    flag, value = words
    got, _, err = run("precompute", source, "--data", built.parent, f"{flag}={value}")
    assert got == code
    assert said in err
    assert contents(built) == before


@pytest.mark.parametrize(
    ("text", "layers"), [("7", (7,)), ("0,5,7", (0, 5, 7)), ("30-32", (30, 31, 32)), ("3-3, 1", (3, 1))]
)
def test_layers(text: str, layers: tuple[int, ...]) -> None:
    assert make_parser().parse_args(["precompute", "x", "--layers", text]).layers == layers


def test_data_that_is_a_file(refused: Refused, source: Path) -> None:
    Path("file").write_text("")
    assert "--data file is a file" in refused("precompute", source, "--data", "file")
    assert "cannot build in file/below/tiny: Not a directory" in refused("precompute", source, "--data", "file/below")


def test_data_that_cannot_be_written(
    refused: Refused, source: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK or Path(path) != built.parent)
    assert "cannot be written to" in refused("precompute", source, "--data", built.parent)


# Which weights are meant


@pytest.mark.parametrize("name", ["layer-1.safetensors", "vocabulary.safetensors", TOKENIZER])
def test_name_of_an_index_is_enough_to_repair_it(run: Run, built: Path, tmp_path: Path, name: str) -> None:
    index = copy(built, tmp_path / "data")
    (index / name).unlink()
    code, _, err = run("precompute", "tiny", "--data", "data")
    assert code == 0, err
    assert contents(index) == contents(built)


@pytest.mark.parametrize("name", ["tiny", "mine"])
def test_manifest_that_knows_no_source(
    run: Run, refused: Refused, source: Path, built: Path, tmp_path: Path, name: str
) -> None:
    index = copy(built, tmp_path / "data")
    if name == "tiny":
        (index / MANIFEST).write_text("{}")
    else:
        index.rename(tmp_path / "data" / "mine")
    err = refused("precompute", name, "--data", "data")
    assert f"data/{name}/{MANIFEST}" in err
    assert f"{name!r} alone does not lead to the weights" in err
    if name == "tiny":
        assert "Delete the folder" in refused("precompute", source, "--data", "data")
        shutil.rmtree(index)
        assert run("precompute", source, "--data", "data", *SMALL)[0] == 0
        assert contents(index) == contents(built)


# Stopping


@pytest.mark.slow
def test_stopped_by_a_signal(run: Run, tmp_path: Path) -> None:
    """Others: test_interruption.py."""
    source = small_gpt2(tmp_path / "five", n_layers=5)
    words = ("precompute", source, "--data", tmp_path / "data", *SMALL)
    index = tmp_path / "data" / "five"
    with command(tmp_path / "log", *words, pause_at="layer 3 is ready") as child:
        child.send(signal.SIGTERM)
        assert child.ended() == 143
        assert child.output().rstrip().endswith("Finished layers are kept; the same command goes on from here.")
        assert "Traceback" not in child.output()
    assert not list(index.glob(f"*{PARTIAL}"))
    assert (index / ".lock").read_bytes() == b""
    ready = Index.open(index)
    assert ready.faults == {}
    assert {3, 4} <= {*ready.layers} < {*range(5)}
    code, _, err = run(*words, "--layers", str(ready.layers[0]))
    assert (code, re.search(r"layer \d+ is ready", err)) == (0, None)


@pytest.mark.slow
def test_second_build_stops_and_a_kill_frees_the_place(
    run: Run, refused: Refused, source: Path, tmp_path: Path
) -> None:
    words = ("precompute", source, "--data", tmp_path / "data", *SMALL)
    with command(tmp_path / "log", *words, pause_at="layer 1 is ready") as first:
        first.wait_until_paused()
        assert f"is being built by another process (pid {first.pid})" in refused(*words, "--force")
    assert run(*words)[0] == 0


# Checking and asking


def test_verify(run: Run, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path / "data")
    code, out, _ = run("verify", "tiny", "--data", "data")
    assert code == 0
    assert out.rstrip().endswith("everything is as it should be")
    seed = re.search(r"--seed (\d+)", out)
    assert seed
    assert run("verify", "tiny", "--data", "data", "--seed", seed[1]) == (0, out, "")
    shard = index / "layer-0.safetensors"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    code, out, _ = run("verify", "tiny", "--data", "data", "--sums-only")
    assert code == 1
    assert f"{shard.relative_to(tmp_path)} is damaged" in out
    assert "Delete this file and run `lexiscope precompute tiny`" in out
    assert out.rstrip().endswith("1 error")


def test_verify_when_the_weights_are_gone(run: Run, refused: Refused, source: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(source, tmp_path / "elsewhere" / "tiny"))
    quick_build(moved, tmp_path / "data")
    shutil.rmtree(moved)
    code, out, err = run("verify", "tiny", "--data", "data")
    assert code == 1
    assert "layer-1.safetensors: ok" in out
    assert str(moved) in err
    small_gpt2(moved, n_layers=3)
    assert "holds another model than the index" in refused("verify", "tiny", "--data", "data")
    small_gpt2(moved, n_layers=2, seed=5)  # the same shape
    for words in (("verify", "tiny"), ("seeds", "tiny", "dog")):
        err = refused(*words, "--data", "data")
        assert f"{moved} holds other weights than the index" in err
        assert "`lexiscope precompute tiny --force`" in err


def test_seeds(run: Run, refused: Refused, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path / "data")
    code, out, _ = run("seeds", "tiny", "dog", "horse", "--k", "3", "--data", "data")
    assert code == 0
    assert len(re.findall("ff_(?:value|key)  ", out)) == 3
    in_notebook = lexiscope.open("tiny", data="data").seeds("dog", "horse", k=3)
    assert json.loads(run("seeds", "tiny", "dog", "horse", "--k", "3", "--json", "--data", "data")[1]) == json.loads(
        ascii_json(in_notebook.view)
    )
    by_score = json.loads(run("seeds", "tiny", "dog", "--rank", "score", "--json", "--data", "data")[1])
    assert (by_score["rank"], by_score["kind"]) == ("score", "ff_value")
    code, out, _ = run("seeds", "tiny", "dog", "--kind", "w_q", "--kind", "w_k", "--json", "--data", "data")
    assert code == 0
    assert out.startswith("{")
    of_cosine = ("--lens", "cosine", "--words-alone", "--json", "--data", "data")
    cosine = json.loads(run("seeds", "tiny", "dog", *of_cosine)[1])
    assert (cosine["lens"], cosine["widen"]) == ("cosine", 0)
    assert all(abs(result["score"]) <= 1 for result in cosine["results"])
    twice = ("--kind", "w_q", "--kind", "w_q", "--kind", "w_k", "--json")
    assert json.loads(run("seeds", "tiny", "dog", *twice, "--data", "data")[1]) == json.loads(out)
    assert "is no text" in refused("seeds", "tiny", "do\udcffg", "--data", "data")
    for shard in index.glob("layer-*"):
        shard.write_bytes(shard.read_bytes()[:-1])
    damaged = refused("seeds", "tiny", "dog", "--data", "data")
    assert "bytes" in damaged  # a damaged layer is not told as one that is not built


def test_seeds_list_the_tokens_of_layers_that_are_not_built(run: Run, built: Path, tmp_path: Path) -> None:
    index = copy(built, tmp_path / "data")
    whole = json.loads(run("seeds", "tiny", "dog", "--json", "--data", "data")[1])["results"]
    manifest = Manifest.load(index)
    first, *others = manifest.shards
    manifest.with_changes(shards={layer: manifest.shards[layer] for layer in others}).save(index)
    results = json.loads(run("seeds", "tiny", "dog", "--json", "--data", "data")[1])["results"]
    assert {result["computed"]: result["layer"] == first for result in results} == {True: True, False: False}
    assert [result["top"] for result in results] == [result["top"] for result in whole]
    said = run("seeds", "tiny", "dog", "--data", "data")[1]
    assert f"Tokens of layer {first} are computed now" in " ".join(said.split())


@pytest.mark.parametrize(("words", "meant"), [
    (("dog", "-", "horse", "+", "lion"), [("dog", 1), ("horse", -1), ("lion", 1)]),
    (("dog - horse + lion",), [("dog", 1), ("horse", -1), ("lion", 1)]),
    (("2*dog",), [("dog", 2)]),
    (("horse,dog,lion",), [("horse", 1), ("dog", 1), ("lion", 1)]),
    (("horse", "dog", "lion"), [("horse", 1), ("dog", 1), ("lion", 1)]),
    (('"dog lion"',), [("dog lion", 1)]),
])  # fmt: skip
def test_seeds_are_written_as_on_their_page(
    run: Run, built: Path, words: tuple[str, ...], meant: list[tuple[str, float]]
) -> None:
    code, out, _ = run("seeds", "tiny", *words, "--json", "--data", built.parent)
    assert code == 0
    assert [(seed["word"], seed["weight"]) for seed in json.loads(out)["seeds"]] == meant


def test_tour_of_the_demo_parses(run: Run) -> None:
    parser = make_parser()
    for _, words in demo.TOUR:
        step = parser.parse_args([*words.split(), "--data", "nowhere"])
        assert getattr(step, "model", "demo") == "demo"
    code, out, _ = run("demo", "--help")
    assert code == 0
    assert "--revision" not in out  # there is one demo


def test_tour_skips_layers_that_are_not_built(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As `lexiscope demo --layers 29` leaves it, on a model with the demo's name, layers, heads and enough neurons."""
    folder = tmp_path / "source" / DEMO_NAME
    tiny_llama(folder, n_layers=30, n_heads=9, n_kv_heads=3, d_model=18, d_mlp=810, d_head=2)
    quick_build(folder, tmp_path / "data", layers=(29,))
    demo.show_tour(tmp_path / "data")
    out = capsys.readouterr().out
    assert all(f"$ lexiscope {words}\n" in out for _, words in demo.TOUR)
    assert "neuron 808" in out
    assert out.count("Skipped: ") == 1
    assert f"Skipped: layer 27 of {DEMO_NAME} is not built yet: 1 of 30 layers are ready (29)" in out
    assert "1 of 30 (29)" in out
