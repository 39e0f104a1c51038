"""Seeds from stored lists: by brute force over the lists, and against the weights where these can be compared."""

from pathlib import Path

import numpy as np
import pytest

from lexiscope.app.notebook.stored_seeds import stored_seeds_view
from lexiscope.app.weights import weights_of_index
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import TOKENIZER
from lexiscope.precompute.index.tokenizer import parse_tokenizer
from lexiscope.precompute.live.seed_words import find_seed
from lexiscope.precompute.shape import ENDS
from tests.support.site import DIFFERENCE, GPT2, LLAMA


def listed_score(index: Index, kind: str, layer: int, row: int, lens: str, token: int) -> float | None:
    lists = index.shard(layer).vector(kind, row, lens)
    if lists.norm == 0:
        return None
    for end in range(len(ENDS)):
        if token in (ids := lists.ids[end].tolist()):
            score = float(lists.scores[end][ids.index(token)])
            return score / lists.norm if lens == "cosine" else score
    return None


@pytest.mark.parametrize("lens", ["dot", "cosine"])
@pytest.mark.parametrize(("model", "kinds"), [
    (GPT2, ["ff_value"]), (LLAMA, ["ff_key", "w_o"]), (DIFFERENCE, ["ff_value", "vo_out"]),
])  # fmt: skip
def test_by_brute_force(site_data: Path, model: str, kinds: list[str], lens: str) -> None:
    index = Index.open(site_data / model)
    tokenizer = parse_tokenizer((index.folder / TOKENIZER).read_bytes())
    seeds = [find_seed(tokenizer, "dog"), find_seed(tokenizer, "lion", -2.0), find_seed(tokenizer, "unheardof")]
    view, missing = stored_seeds_view(index, tokenizer, "dog - 2*lion + unheardof", kinds, lens, 1000)
    expected = {}
    for kind in kinds:
        for layer in index.layers:
            for row in range(index.shape.count(kind)):
                found = [[listed_score(index, kind, layer, row, lens, t) for t in seed.tokens] for seed in seeds]
                if any(score is not None for scores in found for score in scores):
                    scores = [float(np.mean([score or 0 for score in scores])) for scores in found]
                    expected[kind, layer, row] = (scores[0] - 2 * scores[1] + scores[2]) / 4, scores
    results = {(r["kind"], r["layer"], r["index"]): (r["score"], [*r["scores"]]) for r in view.results}
    assert results.keys() == expected.keys()
    assert len(results) > 3
    for place, (score, scores) in results.items():
        assert [score, *scores] == pytest.approx([expected[place][0], *expected[place][1]], rel=1e-5, abs=1e-7)
    assert [r["score"] for r in view.results] == sorted((r["score"] for r in view.results), reverse=True)
    assert missing == tuple(layer for layer in range(index.shape.n_layers) if layer not in index.layers)
    assert (
        view.results[: len(expected) // 2]
        == stored_seeds_view(index, tokenizer, "dog - 2*lion + unheardof", kinds, lens, len(expected) // 2)[0].results
    )


def test_cosines_are_those_of_the_weights(site_data: Path) -> None:
    index = Index.open(site_data / GPT2)
    tokenizer = parse_tokenizer((index.folder / TOKENIZER).read_bytes())
    seed = find_seed(tokenizer, "dog")
    assert len(seed.tokens) == 1
    model = weights_of_index(index)
    W = model.W_U.numpy().astype(np.float64)
    word = W[seed.tokens[0]] - W.mean(axis=0)
    exact = {
        (layer, n): float(v @ word / np.linalg.norm(v) / np.linalg.norm(word))
        for layer in range(index.shape.n_layers)
        for n, v in enumerate(model.vectors(layer, "ff_value").numpy().astype(np.float64))
    }
    view, _ = stored_seeds_view(index, tokenizer, "dog", ["ff_value"], "cosine", 1000)
    assert view.results
    for result in view.results:
        assert result["score"] == pytest.approx(exact[result["layer"], result["index"]], rel=1e-5)
    best = sorted((place for place in exact if place[0] in index.layers), key=lambda place: -exact[place])[:3]
    assert [(r["layer"], r["index"]) for r in view.results[:3]] == best  # who lists it most is whom it is most like
