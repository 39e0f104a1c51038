"""Indexes in a data folder: which there are, by which names they are found, and what is said of others."""

import os
from pathlib import Path

import pytest

from lexiscope.precompute.errors import IndexFault, NotFound
from lexiscope.precompute.index.data_folder import list_models, open_model
from lexiscope.precompute.index.index import ranges
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST
from lexiscope.precompute.index.origin import DEMO_NAME
from tests.support.synthetic import make_manifest, write_index


def test_models_in_a_data_folder(tmp_path: Path) -> None:
    write_index(tmp_path / "a", make_manifest(model="a"))
    write_index(tmp_path / "b", make_manifest(model="b"), layers=(2, 3))
    os.truncate(tmp_path / "b" / Piece("lists", 2).file(1), 10)
    for name in ("c-broken", ".hidden", "no-manifest"):
        (tmp_path / name).mkdir()
    for name in ("c-broken", ".hidden"):
        (tmp_path / name / MANIFEST).write_text("{}")
    (tmp_path / "notes.txt").write_text("")
    write_index(tmp_path / "renamed", make_manifest(model="d"))
    a, b, c, renamed = list_models(tmp_path)
    assert (a.name, a.layers, a.n_layers, a.errors) == ("a", (0, 1, 2, 3), 4, ())
    assert a.n_bytes == sum(path.stat().st_size for path in (tmp_path / "a").glob("*.safetensors"))
    assert (b.name, b.layers, b.n_layers) == ("b", (3,), 4)
    assert "layer-2.safetensors is cut short" in b.errors[0]
    assert (c.name, c.layers, c.n_layers) == ("c-broken", (), 0)
    assert "manifest.json is damaged" in c.errors[0]
    assert "is of another model, d: rename the folder" in renamed.errors[0]


def test_a_model_whose_folder_is_called_demo(tmp_path: Path) -> None:
    """The name stands for another model; its folder is one like any other."""
    write_index(tmp_path / "demo", make_manifest(model="demo"), layers=(1,))
    (summary,) = list_models(tmp_path)
    assert (summary.name, summary.layers, summary.errors) == ("demo", (1,), ())
    with pytest.raises(NotFound, match=r"\(built: demo\)"):
        open_model(tmp_path, "demo")


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_data_folder_that_is_none_has_no_models(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    assert list_models(tmp_path / name) == ()


def test_a_data_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(IndexFault, match="cannot list"):
        list_models(tmp_path / "loop")


def test_models_by_name(tmp_path: Path) -> None:
    for name in ("gpt2", DEMO_NAME):
        write_index(tmp_path / name, make_manifest(model=name), layers=())
    for asked, name in {"gpt2": "gpt2", "openai-community/gpt2": "gpt2", "demo": DEMO_NAME}.items():
        assert open_model(tmp_path, asked).manifest.model == name


@pytest.mark.parametrize("asked", ["gpt3", "../gpt2/../gpt3", "", ".", "..", "/etc", "gpt2\n", "gpt2/", "a/b/gpt2"])
def test_a_model_that_is_not_built_says_which_are(tmp_path: Path, asked: str) -> None:
    """Without opening any of them: one is damaged."""
    for name in ("broken", "gpt2"):
        write_index(tmp_path / name, make_manifest(model=name), layers=())
    (tmp_path / "broken" / MANIFEST).write_text("{}")
    with pytest.raises(NotFound, match=r"\(built: broken, gpt2\)"):
        open_model(tmp_path, asked)


def test_an_empty_folder_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stands in another folder than the one with `data` sees where it was looked for."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound) as caught:
        open_model(Path("data"), "gpt2")
    assert f"no index of 'gpt2' in {tmp_path / 'data'} (built: none)" in str(caught.value)
    assert "LEXISCOPE_DATA names another folder" in str(caught.value)


@pytest.mark.parametrize(("asked", "said"), [
    ("SmolLM2-135M", "did you mean `smollm2-135m`?"),
    ("HuggingFaceTB/SmolLM2-135M", "did you mean `smollm2-135m`?"),
    ("./data/smollm2-135m/", "did you mean `smollm2-135m`?"),
    ("/models/SmolLM2-135M.gguf", "did you mean `smollm2-135m`?"),
    ("gpt2", "did you mean `GPT2`?"),
    ("gpt3", "`lexiscope precompute gpt3` makes one"),
    ("owner/gpt3", "`lexiscope precompute owner/gpt3` makes one"),
    ("/models/gpt3", "this is no model's name"),
    ("", "this is no model's name"),
])  # fmt: skip
def test_a_name_that_is_nearly_right(tmp_path: Path, asked: str, said: str) -> None:
    for name in ("GPT2", "smollm2-135m"):
        write_index(tmp_path / name, make_manifest(model=name), layers=())
    with pytest.raises(NotFound) as caught:
        open_model(tmp_path, asked)
    assert str(caught.value).endswith(f"(built: GPT2, smollm2-135m); {said}")


@pytest.mark.parametrize(
    ("numbers", "text"), [((), "none"), ((4,), "4"), ((0, 1, 2), "0-2"), ((0, 2, 3, 7), "0, 2-3, 7"), ((3, 2), "2-3")]
)
def test_ranges(numbers: tuple[int, ...], text: str) -> None:
    assert ranges(numbers) == text
