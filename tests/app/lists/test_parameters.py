"""Views: the JSON that scripts rely on, filled from the right places of an index."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lexiscope.app.formats.json_format import ascii_json
from lexiscope.app.pages.seeds import SeedsView
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import TokenTable
from lexiscope.precompute.live.wire.answers import TermUsed
from lexiscope.precompute.shape import LENSES
from tests.support.synthetic import GPT2, LLAMA, K, make_manifest, raw_tokens, rewrite_shard, shard_arrays, write_index
from tests.support.views import neuron_view, pairs_view, subhead_view


def decoded(view: Any) -> Any:
    return json.loads(ascii_json(view))


def expected_list(ids: Any, scores: Any) -> list[dict[str, Any]]:
    texts = TokenTable.of(raw_tokens())
    return [{"id": i, "token": texts.text(i), "score": s} for i, s in zip(ids.tolist(), scores.tolist(), strict=True)]


def expected_vector(arrays: dict[str, Any], kind: str, row: int, lens: int) -> dict[str, Any]:
    ids, scores = arrays[f"{kind}.ids"][row, lens], arrays[f"{kind}.scores"][row, lens]
    lists = [expected_list(*of_end) for of_end in zip(ids, scores, strict=True)]
    norm = arrays[f"{kind}.norm"][row].item()
    if LENSES[lens] == "cosine":
        lists = [[{**each, "cosine": round(each["score"] / norm, 4)} for each in entries] for entries in lists]
    return {
        "top": lists[0], "bottom": lists[1], "norm": norm, "coherence": defined(arrays[f"{kind}.coherence"][row, lens]),
        "moments": None, "chance": None,
    }  # fmt: skip


def defined(numbers: Any) -> list[float | None]:
    return [number if math.isfinite(number) else None for number in numbers.tolist()]


def expected_tokens(ids: Iterable[int]) -> list[dict[str, Any]]:
    texts = TokenTable.of(raw_tokens())
    return [{"id": token, "token": texts.text(token)} for token in ids]


def expected_agreement(
    arrays: dict[str, Any], compared: str, at: tuple[int, ...], first: tuple[str, int], second: tuple[str, int]
) -> dict[str, Any]:
    """By sets of the stored lists; `at` is the place of its similarities, the lens last."""
    top, bottom = arrays[f"{compared}.similarity"][at].tolist()
    end = "top" if top >= bottom else "bottom"
    tokens = arrays[f"{second[0]}.ids"][second[1], at[-1], ("top", "bottom").index(end)].tolist()
    in_first = {*arrays[f"{first[0]}.ids"][first[1], at[-1], 0].tolist()}
    shuffled = arrays[f"{compared}.shuffled"].reshape(-1, 2, 2)[:, at[-1]].tolist()
    return {
        "top": top, "bottom": bottom, "end": end,
        "shared": expected_tokens(token for token in tokens if token in in_first),
        "shuffled": {
            "similarity": pytest.approx(sum(of[0] for of in shuffled) / len(shuffled)),
            "similarity_bottom": pytest.approx(sum(of[1] for of in shuffled) / len(shuffled)),
            "share_15": sum(max(of) >= np.float32(0.15) for of in shuffled) / len(shuffled),
        },
    }  # fmt: skip


def test_ff(index: Index) -> None:
    arrays = shard_arrays(GPT2, seed=1)
    agreed = expected_agreement(arrays, "ff", (4, 1), ("ff_key", 4), ("ff_value", 4))
    assert decoded(neuron_view(index, 1, 4, "cosine")) == {
        "model": "gpt2-like", "build": index.manifest.build, "layer": 1, "neuron": 4, "lens": "cosine",
        "key": expected_vector(arrays, "ff_key", 4, 1),
        "value": expected_vector(arrays, "ff_value", 4, 1), "similarity": agreed["top"],
        "similarity_bottom": agreed["bottom"], "agrees": agreed["end"], "shared": agreed["shared"], "along": [],
        "opposed": [], "shuffled": agreed["shuffled"], "matches": {}, "note": "", "cosines": None,
    }  # fmt: skip


def test_ff_has_up_where_neurons_are_gated(indexes: dict[str, Index]) -> None:
    content = decoded(neuron_view(indexes["llama-like"], 2, 3))
    assert content["up"] == expected_vector(shard_arrays(LLAMA, seed=2), "ff_up", 3, 0)
    assert content.keys() == {
        "model", "build", "layer", "neuron", "lens", "key", "value", "up", "similarity", "similarity_bottom",
        "agrees", "shared", "along", "opposed", "shuffled", "matches", "note", "cosines",
    }  # fmt: skip


@pytest.mark.parametrize("matrix", ["vo", "qk"])
@pytest.mark.parametrize(("lens", "lens_at"), [("dot", 0), ("cosine", 1)])
@pytest.mark.parametrize(("preset", "preset_at"), [("all", 0), ("distinct", 1), ("words", 2)])
def test_pairs(index: Index, matrix: str, lens: str, lens_at: int, preset: str, preset_at: int) -> None:
    arrays = shard_arrays(GPT2, seed=3)
    texts = TokenTable.of(raw_tokens())

    def expected(end: int) -> list[dict[str, Any]]:
        at = 1, lens_at, preset_at, end
        pairs = arrays[f"{matrix}.ids"][at][: arrays[f"{matrix}.count"][at]].tolist()
        scores = arrays[f"{matrix}.scores"][at].tolist()
        tokens = [[{"id": token, "token": texts.text(token)} for token in pair] for pair in pairs]
        return [{"from": a, "to": b, "score": score} for (a, b), score in zip(tokens, scores, strict=False)]

    def hidden() -> int:
        """Of as many best pairs as are shown."""
        ids, count = arrays[f"{matrix}.ids"][1, lens_at, :, 0], arrays[f"{matrix}.count"][1, lens_at, :, 0]  # (P, ...)
        shown = ids[preset_at, : count[preset_at]].tolist()
        best = ids[0, : min(len(shown), count[0])].tolist()
        return len({tuple(pair) for pair in best} - {tuple(pair) for pair in shown})

    note = "" if matrix == "vo" else "Positions are learned, and left out: these are the scores of the tokens alone."
    assert decoded(pairs_view(index, matrix, 3, 1, lens, preset)) == {
        "model": "gpt2-like", "build": index.manifest.build, "layer": 3, "head": 1, "matrix": matrix, "lens": lens,
        "preset": preset, "top": expected(0), "bottom": expected(1),
        "coherence": defined(arrays[f"{matrix}.coherence"][1, lens_at, preset_at]), "hidden": hidden(),
        "note": note,
    }  # fmt: skip


def test_subhead_of_grouped_heads(indexes: dict[str, Index]) -> None:
    """Heads 2 and 3 share the keys and values of group 1."""
    arrays = shard_arrays(LLAMA, seed=2)
    for head in (2, 3):
        view = subhead_view(indexes["llama-like"], 2, head, 1, "dot")
        assert decoded(view) == {
            "model": "llama-like", "build": indexes["llama-like"].manifest.build, "layer": 2,
            "head": head, "subhead": 1, "lens": "dot",
            "q": expected_vector(arrays, "w_q", head * 3 + 1, 0), "k": expected_vector(arrays, "w_k", 1 * 3 + 1, 0),
            "v": expected_vector(arrays, "w_v", 1 * 3 + 1, 0), "o": expected_vector(arrays, "w_o", head * 3 + 1, 0),
            "similarity": {
                "vo": expected_agreement(arrays, "vo", (head, 1, 0), ("w_v", 1 * 3 + 1), ("w_o", head * 3 + 1)),
                "qk": expected_agreement(arrays, "qk", (head, 1, 0), ("w_q", head * 3 + 1), ("w_k", 1 * 3 + 1)),
            },
            "matches": {}, "note": view.note,
        }  # fmt: skip
        assert "Heads 2 to 3 share" in view.note
        assert "mix channel 1 with 2:" in view.note


def test_columns_and_notes(indexes: dict[str, Index]) -> None:
    gpt2, llama = indexes.values()
    assert (pairs_view(gpt2, "vo", 1, 0).columns, pairs_view(gpt2, "vo", 1, 0).note) == (("reads", "writes"), "")
    assert pairs_view(gpt2, "qk", 1, 0).columns == ("query", "key")
    assert "left out" in pairs_view(gpt2, "qk", 1, 0).note
    assert "distance zero only" in pairs_view(llama, "qk", 2, 0).note
    assert all("Heads 0 to 1 share" in pairs_view(llama, matrix, 2, 0).note for matrix in ("vo", "qk"))
    assert subhead_view(gpt2, 1, 1, 3).note == ""  # whose heads share nothing


def test_coherence_may_be_undefined(index: Index) -> None:
    value = neuron_view(index, 0, 1).value
    assert value
    assert value.coherence == (None, None)
    assert pairs_view(index, "vo", 0, 0).coherence == (None, None)


def test_json_is_ascii_and_holds_any_token(index: Index) -> None:
    """Every token of the hostile vocabulary, by a list that is long enough."""
    text = ascii_json(pairs_view(index, "vo", 1, 0))
    assert text.isascii()
    for token in range(len(raw_tokens())):
        text = index.tokens.text(token)
        nothing: Any = {"words": "", "nearest": [], "nearest_hubs": [], "heads": []}
        seed: TermUsed = {"word": text, "tokens": [{"id": token, "token": text}], "weight": 1.0}
        view = SeedsView(model="tiny", build="", kind="ff_key", lens="dot", seeds=[seed], results=[], **nothing)
        assert decoded(view)["seeds"] == [seed]


def test_tokens_shared_by_key_and_value(tmp_path: Path) -> None:
    """Whatever k shows: of all that is stored, in the order of the value."""
    manifest = write_index(tmp_path / "small", make_manifest(LLAMA, "small"), (0,))
    arrays = {name: part.copy() for name, part in shard_arrays(LLAMA).items()}
    value, key, up = ([*range(10, 10 + K)], [*range(12, 12 + K)][::-1], [*range(13, 13 + K)])
    arrays["ff_value.ids"][1, 0, 0], arrays["ff_key.ids"][1, 0, 0], arrays["ff_up.ids"][1, 0, 1] = value, key, up
    arrays["ff_up.ids"][1, 0, 0] = [*range(11 + K, 11 + 2 * K)]
    arrays["ff_value.ids"][1, 0, 1] = value[::-1]
    for numbers, end, shared, along, opposed in (
        ([0.3, 0.3], "top", value[2:], [], value[3:]),
        ([0.2, 0.3], "bottom", value[:1:-1], [], value[:2:-1]),
        ([0, 0], None, [], [], []),
    ):
        arrays["ff.similarity"][1, 0] = numbers
        rewrite_shard(tmp_path / "small", manifest, 0, arrays)
        view = neuron_view(Index.open(tmp_path / "small"), 0, 1, k=1)
        assert view.agrees == end
        assert [[token["id"] for token in part] for part in (view.shared, view.along, view.opposed)] == [
            shared, along, opposed,
        ]  # fmt: skip
        assert view.telling == (end is not None)
    arrays["ff_up.ids"][1, 0] = arrays["ff_up.ids"][1, 0, ::-1].copy()
    arrays["ff.similarity"][1, 0] = [0.2, 0.3]
    rewrite_shard(tmp_path / "small", manifest, 0, arrays)
    view = neuron_view(Index.open(tmp_path / "small"), 0, 1, k=1)
    assert [token["id"] for token in view.along] == value[:2:-1]
