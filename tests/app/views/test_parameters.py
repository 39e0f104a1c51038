"""Views: the JSON that scripts rely on, filled from the right places of an index."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.formats.json_format import ascii_json
from app.views.neuron import neuron_view
from app.views.pairs import pairs_view
from app.views.seeds import SeedWord
from app.views.subhead import subhead_view
from precompute.errors import NotFound
from precompute.index.index import Index
from precompute.index.manifest import Manifest
from precompute.index.tokens import TokenTable
from precompute.shape import PRESETS
from tests.support.synthetic import (
    GPT2,
    LLAMA,
    PAIRS,
    K,
    make_manifest,
    raw_tokens,
    rewrite_shard,
    shard_arrays,
    write_index,
)


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("data") / "tiny"
    write_index(folder, make_manifest(GPT2, "tiny"), layers=(1, 2))
    return Index.open(folder)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("data") / "small"
    write_index(folder, make_manifest(LLAMA, "small"))
    return Index.open(folder)


def decoded(view: Any) -> Any:
    return json.loads(ascii_json(view))


def expected_list(ids: Any, scores: Any) -> list[dict[str, Any]]:
    texts = TokenTable.of(raw_tokens())
    return [{"id": i, "token": texts.text(i), "score": s} for i, s in zip(ids.tolist(), scores.tolist(), strict=True)]


def expected_vector(arrays: dict[str, Any], kind: str, row: int, lens: int) -> dict[str, Any]:
    ids, scores = arrays[f"{kind}.ids"][row, lens], arrays[f"{kind}.scores"][row, lens]
    return {"top": expected_list(ids[0], scores[0]), "bottom": expected_list(ids[1], scores[1])}


def test_ff(gpt2: Index) -> None:
    arrays = shard_arrays(GPT2, seed=1)
    assert decoded(neuron_view(gpt2, 1, 4, "cosine")) == {
        "model": "tiny",
        "layer": 1,
        "neuron": 4,
        "lens": "cosine",
        "key": expected_vector(arrays, "ff_key", 4, 1),
        "value": expected_vector(arrays, "ff_value", 4, 1),
        "similarity": arrays["ff.similarity"][4, 1].item(),
    }


def test_ff_has_up_where_neurons_are_gated(llama: Index) -> None:
    content = decoded(neuron_view(llama, 0, 3))
    assert content["up"] == expected_vector(shard_arrays(LLAMA), "ff_up", 3, 0)
    assert list(content) == ["model", "layer", "neuron", "lens", "key", "value", "up", "similarity"]


@pytest.mark.parametrize("matrix", ["vo", "qk"])
@pytest.mark.parametrize(("lens", "lens_at"), [("dot", 0), ("cosine", 1)])
@pytest.mark.parametrize(("preset", "preset_at"), [("all", 0), ("distinct", 1), ("words", 2)])
def test_pairs(gpt2: Index, matrix: str, lens: str, lens_at: int, preset: str, preset_at: int) -> None:
    arrays = shard_arrays(GPT2, seed=2)
    texts = TokenTable.of(raw_tokens())

    def expected(end: int) -> list[dict[str, Any]]:
        at = 1, lens_at, preset_at, end
        pairs = arrays[f"{matrix}.ids"][at][: arrays[f"{matrix}.count"][at]].tolist()
        scores = arrays[f"{matrix}.scores"][at].tolist()
        tokens = [[{"id": token, "token": texts.text(token)} for token in pair] for pair in pairs]
        return [{"from": a, "to": b, "score": score} for (a, b), score in zip(tokens, scores, strict=False)]

    assert decoded(pairs_view(gpt2, matrix, 2, 1, lens, preset)) == {
        "model": "tiny",
        "layer": 2,
        "head": 1,
        "matrix": matrix,
        "lens": lens,
        "preset": preset,
        "top": expected(0),
        "bottom": expected(1),
    }


def test_subhead_of_grouped_heads(llama: Index) -> None:
    """Heads 2 and 3 share the keys and values of group 1."""
    arrays = shard_arrays(LLAMA, seed=2)
    for head in (2, 3):
        view = subhead_view(llama, 2, head, 1, "dot")
        assert decoded(view) == {
            "model": "small",
            "layer": 2,
            "head": head,
            "subhead": 1,
            "lens": "dot",
            "q": expected_vector(arrays, "w_q", head * 3 + 1, 0),
            "k": expected_vector(arrays, "w_k", 1 * 3 + 1, 0),
            "v": expected_vector(arrays, "w_v", 1 * 3 + 1, 0),
            "o": expected_vector(arrays, "w_o", head * 3 + 1, 0),
        }
        assert "Heads 2 to 3 share" in view.note
        assert "mix channel 1 with 2:" in view.note


def test_heads_that_share_nothing_say_nothing(gpt2: Index) -> None:
    assert subhead_view(gpt2, 1, 1, 3).note == ""


def test_k_shortens_and_never_lengthens(gpt2: Index) -> None:
    full = neuron_view(gpt2, 1, 0)
    assert len(full.key.top) == len(full.value.bottom) == K
    short = neuron_view(gpt2, 1, 0, k=3)
    assert short.key.top == full.key.top[:3]
    assert short.value.bottom == full.value.bottom[:3]
    assert neuron_view(gpt2, 1, 0, k=10 * K) == full
    assert len(pairs_view(gpt2, "vo", 1, 0).top) == PAIRS
    assert len(pairs_view(gpt2, "vo", 1, 0, k=2).top) == 2
    assert len(subhead_view(gpt2, 1, 0, 0, k=1).o.bottom) == 1


def test_columns_and_notes(gpt2: Index, llama: Index) -> None:
    assert pairs_view(gpt2, "vo", 1, 0).columns == ("reads", "writes")
    assert pairs_view(gpt2, "vo", 1, 0).note == ""
    assert pairs_view(gpt2, "qk", 1, 0).columns == ("query", "key")
    assert "left out" in pairs_view(gpt2, "qk", 1, 0).note
    assert "distance zero only" in pairs_view(llama, "qk", 1, 0).note
    for matrix in ("vo", "qk"):
        assert "Heads 0 to 1 share" in pairs_view(llama, matrix, 1, 0).note


def test_what_people_see_and_scripts_do_not(gpt2: Index) -> None:
    arrays, view = shard_arrays(GPT2, seed=1), neuron_view(gpt2, 1, 2)
    assert view.key.norm == arrays["ff_key.norm"][2]
    assert view.key.coherence == tuple(arrays["ff_key.coherence"][2, 0].tolist())


def test_coherence_may_be_undefined(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    write_index(folder, make_manifest(GPT2, "tiny"), layers=())
    arrays = shard_arrays(GPT2)
    for name in ("ff_key.coherence", "vo.coherence"):
        arrays[name][:] = np.nan
    rewrite_shard(folder, Manifest.load(folder), 0, arrays)
    index = Index.open(folder)
    assert neuron_view(index, 0, 0).key.coherence == (None, None)
    assert pairs_view(index, "vo", 0, 0).coherence == (None, None)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda index: neuron_view(index, 1, 6), "neuron 6: tiny has neurons 0 to 5"),
        (lambda index: neuron_view(index, 1, -1), "neuron -1"),
        (lambda index: neuron_view(index, 4, 0), "layer 4: tiny has layers 0 to 3"),
        (lambda index: neuron_view(index, 0, 0), "layer 0 of tiny is not built yet"),
        (lambda index: neuron_view(index, 1, 0, "l2"), "lens 'l2'"),
        (lambda index: neuron_view(index, 1, 0, k=0), "k = 0"),
        (lambda index: pairs_view(index, "vo", 1, 2), "head 2: tiny has heads 0 to 1"),
        (lambda index: pairs_view(index, "ov", 1, 0), "matrix 'ov': there are vo, qk"),
        (lambda index: pairs_view(index, "vo", 1, 0, preset="x"), "preset 'x'"),
        (lambda index: subhead_view(index, 1, 2, 0), "head 2: tiny has heads 0 to 1"),
        (lambda index: subhead_view(index, 1, 1, 4), "subhead 4: tiny has subheads 0 to 3"),
        (lambda index: subhead_view(index, 1, 1, -1), "subhead -1"),
    ],
)
def test_what_does_not_exist_says_what_does(gpt2: Index, ask: Any, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        ask(gpt2)


def test_views_are_frozen() -> None:
    view = SeedWord(word="a", tokens=[], weight=1.0)
    with pytest.raises(FrozenInstanceError):
        view.word = "b"  # type: ignore[misc]


def test_json_is_ascii_and_holds_any_token(gpt2: Index) -> None:
    """Every token of the hostile vocabulary, by a list that is long enough."""
    text = ascii_json(pairs_view(gpt2, "vo", 1, 0))
    assert text.isascii()
    for token in range(len(raw_tokens())):
        text = gpt2.tokens.text(token)
        view = SeedWord(word=text, tokens=[{"id": token, "token": text}], weight=1.0)
        assert decoded(view) == {"word": text, "tokens": [{"id": token, "token": text}], "weight": 1.0}


def test_tokens_shared_by_key_and_value(tmp_path: Path) -> None:
    """Whatever k shows: of all that is stored, in the order of the value."""
    manifest = write_index(tmp_path / "small", make_manifest(LLAMA, "small"), (0,))
    arrays = {name: part.copy() for name, part in shard_arrays(LLAMA).items()}
    value, key, up = ([*range(10, 10 + K)], [*range(12, 12 + K)][::-1], [*range(13, 13 + K)])
    arrays["ff_value.ids"][1, 0, 0], arrays["ff_key.ids"][1, 0, 0], arrays["ff_up.ids"][1, 0, 1] = value, key, up
    rewrite_shard(tmp_path / "small", manifest, 0, arrays)
    view = neuron_view(Index.open(tmp_path / "small"), 0, 1, k=1)
    assert [token["id"] for token in view.shared] == value[2:]
    assert [token["id"] for token in view.opposed] == value[3:]


@pytest.mark.parametrize("preset", PRESETS)
def test_how_many_pairs_a_preset_hides(gpt2: Index, preset: str) -> None:
    everything = pairs_view(gpt2, "vo", 1, 0, "dot", "all", 5)
    view = pairs_view(gpt2, "vo", 1, 0, "dot", preset, 5)
    assert view.hidden == len([pair for pair in everything.top if pair not in view.top])
