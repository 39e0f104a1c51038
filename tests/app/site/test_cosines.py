"""The cosine of a vector with each token of its list, beside the score under the lens cosine."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from starlette.testclient import TestClient

from lexiscope.app.lists.vectors import cosines_of
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA

NEURON, SUBHEAD, DIRECTION = f"/{LLAMA}/ff/1/3", f"/{LLAMA}/head/1/1/sub/2", f"/{LLAMA}/head/1/1/svd/0"


@pytest.fixture(scope="module")
def weights(site_data: Path) -> dict[str, Any]:
    return load_file(site_data.parent / "sources" / LLAMA / "model.safetensors")


def vectors_of(weights: dict[str, Any], path: str) -> dict[str, tuple[Any, Any]]:
    """Each vector of the page and the tokens' rows that it is compared with, straight from the checkpoint."""
    W_E = weights["model.embed_tokens.weight"]
    W_U = weights.get("lm_head.weight", W_E)
    layer = "model.layers.1."
    if path == NEURON:
        return {
            "key": (weights[f"{layer}mlp.gate_proj.weight"][3], W_E),
            "up": (weights[f"{layer}mlp.up_proj.weight"][3], W_E),
            "value": (weights[f"{layer}mlp.down_proj.weight"][:, 3], W_U),
        }
    d_head = len(weights[f"{layer}self_attn.q_proj.weight"]) // 4
    return {
        "q": (weights[f"{layer}self_attn.q_proj.weight"][d_head + 2], W_E),
        "o": (weights[f"{layer}self_attn.o_proj.weight"][:, d_head + 2], W_U),
    }


@pytest.mark.parametrize("path", [NEURON, SUBHEAD])
def test_it_is_the_cosine_with_the_centred_embedding(client: TestClient, weights: dict[str, Any], path: str) -> None:
    data = client.get(f"{path}.json?lens=cosine&k=30").json()
    for name, (v, rows) in vectors_of(weights, path).items():
        centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
        cosines = centred @ v.astype(np.float64) / np.linalg.norm(centred, axis=1) / np.linalg.norm(v)
        for end in ("top", "bottom"):
            listed = data[name][end]
            np.testing.assert_allclose(
                [entry["cosine"] for entry in listed], cosines[[entry["id"] for entry in listed]], atol=6e-5
            )


@pytest.mark.parametrize(
    "path", [NEURON, SUBHEAD, DIRECTION, f"/{GPT2}/ff/1/5", f"/{DIFFERENCE}/head/1/2/sub/0?hubs=hide"]
)
def test_every_format_has_it_under_the_lens_cosine_alone(client: TestClient, path: str) -> None:
    path, _, more = path.partition("?")
    data = client.get(f"{path}.json?k=3&lens=cosine&{more}").json()
    at = data.get("vo", data)
    vectors = {name: each for name, each in at.items() if isinstance(each, dict) and "norm" in each}
    assert vectors
    for each in vectors.values():
        for entry in each["top"] + each["bottom"]:
            assert entry["cosine"] == pytest.approx(entry["score"] / each["norm"], abs=6e-5)
    rows = list(csv.DictReader(io.StringIO(client.get(f"{path}.csv?k=3&lens=cosine&{more}").text)))
    name, vector = next(iter(vectors.items()))
    listed = [float(row["cosine"]) for row in rows if row["vector"] == name and row["end"] == "top"]
    assert listed == [entry["cosine"] for entry in vector["top"]]
    assert "| cosine |" in client.get(f"{path}.md?lens=cosine").text
    page = parsed(client.get(f"{path}?lens=cosine&{more}").text)
    assert len(page.all("td", **{"class": "cos"})) == len([row for row in page.all("tr") if "id" in row.attributes])
    assert "cosine" not in client.get(f"{path}.csv?lens=dot").text.partition("\n")[0]
    assert '"cosine":' not in client.get(f"{path}.json?lens=dot").text
    assert not parsed(client.get(f"{path}?lens=dot").text).all("td", **{"class": "cos"})


def test_a_vector_without_a_direction_has_none(client: TestClient) -> None:
    """Nothing changed in this neuron, so its lists are empty; and no number is not a number."""
    answer = client.get(f"/{DIFFERENCE}/ff/1/0.json?lens=cosine")
    assert answer.status_code == 200
    assert answer.json()["key"]["unchanged"] is True
    assert '"cosine":' not in answer.text


SCORES = np.array([[2.0, 1.0], [-3.0, 0.0]], np.float32)


@pytest.mark.parametrize(("norm", "lens", "cosines"), [
    (4.0, "cosine", [[0.5, 0.25], [-0.75, 0.0]]),
    (3.0, "cosine", [[0.6667, 0.3333], [-1.0, 0.0]]),
    (0.0, "cosine", [[], []]),
    (4.0, "dot", [[], []]),
])  # fmt: skip
def test_cosines_of(norm: float, lens: str, cosines: list[list[float]]) -> None:
    assert cosines_of(SCORES, norm, lens) == cosines
