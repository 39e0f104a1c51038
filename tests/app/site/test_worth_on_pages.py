"""What lists are worth, on the pages of small real indexes, against the arrays of their files."""

import math
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import LENSES
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, visit


def line99(index: Index, kind: str, lens: str) -> float:
    return float(np.nanmax(index.part("chance").array(f"{kind}.line")[LENSES.index(lens), :, 1]))


def z_of(index: Index, layer: int, kind: str, lens: str) -> Any:
    return index.part("stats", layer).array(f"{kind}.z")[:, LENSES.index(lens)].astype(float)


@pytest.mark.parametrize("lens", LENSES)
@pytest.mark.parametrize(("path", "rows"), [
    ("ff/1/3", {"key": ("ff_key", 3), "up": ("ff_up", 3), "value": ("ff_value", 3)}),
    ("head/1/3/sub/2", {"q": ("w_q", 26), "k": ("w_k", 10), "v": ("w_v", 10), "o": ("w_o", 26)}),
])  # fmt: skip
def test_a_badge_beside_each_list(
    site_data: Path, client: TestClient, path: str, rows: dict[str, tuple[str, int]], lens: str
) -> None:
    index = Index.open(site_data / LLAMA)
    data = client.get(f"/{LLAMA}/{path}.json?lens={lens}").json()
    text = client.get(f"/{LLAMA}/{path}?lens={lens}").text
    badges = [unescape(re.sub(r"\s+", " ", found)) for found in re.findall(r'class="badge[^>]*>([^<]*)</a>', text)]
    expected: list[str] = []
    for name, (kind, row) in rows.items():
        line = line99(index, kind, lens)
        assert data[name]["chance"]["line99"] == line
        for end, z in zip(("z", "z_bottom"), z_of(index, 1, kind, lens)[row].tolist(), strict=True):
            assert data[name]["moments"][end] == pytest.approx(z, rel=1e-6)
            written = f"{z:.1f}".replace("-", "−")
            expected.append(f"z {written}, ")
            above = [badge for badge in badges if badge.startswith(f"z {written}, ") and f"{line:.1f})" in badge]
            assert bool(above) == (abs(z) > line)
    assert [re.sub(r", .*", ", ", badge).replace(" ,", ",") for badge in badges] == expected


def test_what_has_no_list_has_no_badge(client: TestClient) -> None:
    assert 'class="badge' not in client.get(f"/{DIFFERENCE}/ff/1/0").text  # it did not change
    assert 'class="badge' in client.get(f"/{DIFFERENCE}/ff/1/5").text


@pytest.mark.parametrize("model", [GPT2, LLAMA])
def test_a_neurons_cosines(site_data: Path, client: TestClient, model: str) -> None:
    stored = Index.open(site_data / model).part("stats", 1).array("ff.cosines")
    for neuron in (0, 5, 17):
        cosines = client.get(f"/{model}/ff/1/{neuron}.json").json()["cosines"]
        for at, name in enumerate(("key_value", "up_value", "key_up")):
            value = stored[neuron, at].item()
            assert cosines[name] == (value if math.isfinite(value) else None)
        assert cosines["class"]
        assert f"<b>{cosines['class']}</b>" in client.get(f"/{model}/ff/1/{neuron}").text
    assert client.get(f"/{DIFFERENCE}/ff/1/5.json").json()["cosines"] is None
    assert "cos(key, value)" not in client.get(f"/{DIFFERENCE}/ff/1/5").text


@pytest.mark.parametrize("lens", LENSES)
def test_a_layer_by_z(site_data: Path, client: TestClient, lens: str) -> None:
    index = Index.open(site_data / LLAMA)
    z, line = z_of(index, 1, "ff_value", lens)[:, 0].tolist(), line99(index, "ff_value", lens)
    falling = sorted(range(len(z)), key=lambda neuron: -z[neuron])
    address = f"/{LLAMA}/layer/1.json?lens={lens}"
    view = client.get(f"{address}&sort=z").json()
    assert [row["neuron"] for row in view["rows"]] == falling[:50]
    assert [row["z"] for row in view["rows"]] == [pytest.approx(z[neuron]) for neuron in falling[:50]]
    rising = client.get(f"{address}&sort=-z").json()["rows"]
    assert [row["neuron"] for row in rising] == falling[::-1][:50]
    above = client.get(f"{address}&above=chance").json()
    assert [row["neuron"] for row in above["rows"]] == [neuron for neuron in range(len(z)) if z[neuron] > line][:50]
    assert above["chance"]["line99"] == line


def test_a_layer_by_class(client: TestClient) -> None:
    """The small models are random, so that nearly all of their neurons have no clear class."""
    rows = [row for page in ("1", "2", "3") if (answer := client.get(f"/{GPT2}/layer/1.json?page={page}").json())
            for row in answer.get("rows", [])]  # fmt: skip
    classes = {row["neuron"]: row["cosines"]["class"] for row in rows}
    for name in ("strengthening", "weakening", "no clear class"):
        view = client.get(f"/{GPT2}/layer/1.json", params={"class": name}).json()
        assert view["total"] == list(classes.values()).count(name)
        assert {row["neuron"] for row in view["rows"]} <= {neuron for neuron, of in classes.items() if of == name}
    assert client.get(f"/{GPT2}/layer/1.json?class=strange").status_code == 422
    refused = client.get(f"/{DIFFERENCE}/layer/1.json?class=weakening")
    assert refused.status_code == 404
    page = client.get(f"/{LLAMA}/layer/1?class=conditional+weakening&above=chance")
    assert page.status_code == 200
    assert "conditional weakening" in {
        link.text.strip() for link in parsed(page.text).all("a") if "aria-current" in link.attributes
    }


def test_shares_on_the_models_page(site_data: Path, client: TestClient) -> None:
    index = Index.open(site_data / LLAMA)
    view = client.get(f"/{LLAMA}.json?lens=cosine").json()
    for row in view["rows"]:
        for kind in index.stored.kinds:
            z = z_of(index, row["layer"], kind, "cosine")[:, 0].tolist()
            assert row["above"][kind] == pytest.approx(sum(x > line99(index, kind, "cosine") for x in z) / len(z))
        assert sum(row["classes"].values()) == pytest.approx(1)
        cosines = index.part("stats", row["layer"]).array("ff.cosines").tolist()
        weakening = sum(up < -0.5 < 0.5 < abs(key) for key, up, _ in cosines) / len(cosines)
        assert row["classes"]["weakening"] == pytest.approx(weakening)
    charts = [
        chart.attributes["aria-label"]
        for chart in parsed(client.get(f"/{LLAMA}").text).all("svg")
        if chart.attributes.get("class") == "chart"
    ]
    assert [label.partition(",")[0] for label in charts] == [
        "Neurons above chance", "Subheads above chance", "Directions above chance", "Neurons by class",
    ]  # fmt: skip
    assert "above the line of chance" in client.get(f"/{LLAMA}.md").text
    unbuilt = client.get(f"/{GPT2}.json").json()["rows"][-1]
    assert (unbuilt["above"], unbuilt["classes"]) == (None, None)


def test_a_layer_whose_z_is_not_there_yet(site_data: Path, tmp_path: Path) -> None:
    """It is neither sorted by z nor said to have nothing above chance."""
    shutil.copytree(site_data / LLAMA, tmp_path / LLAMA)
    (tmp_path / LLAMA / "stats-1.v2.safetensors").unlink()
    with visit(tmp_path) as visitor:
        for asked in ("sort=z", "sort=-z", "above=chance"):
            assert visitor.get(f"/{LLAMA}/layer/0.json?{asked}").status_code == 200
            refused = visitor.get(f"/{LLAMA}/layer/1.json?{asked}")
            assert refused.status_code == 404
            assert f"lexiscope precompute {LLAMA}" in refused.text
        assert visitor.get(f"/{LLAMA}/layer/1").status_code == 200
        assert visitor.get(f"/{LLAMA}/vectors.json").json()["missing"] == []
        assert visitor.get(f"/{LLAMA}/vectors.json?above=chance").json()["missing"] == [1]
