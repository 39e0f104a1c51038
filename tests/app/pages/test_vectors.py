"""Vectors of one kind over all layers, and fair samples of them, against the arrays of small real indexes."""

import csv
import io
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.app.pages.vectors import MOST_SAMPLED, wilson
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import COMPARED, LENSES
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, visit
from tests.support.synthetic import make_manifest, write_index

SORTS = ("z", "norm", "coherence", "similarity")


def all_vectors(data: Path, model: str, kind: str, lens: str) -> list[dict[str, Any]]:
    """Every vector of a kind with its numbers, read array by array."""
    index = Index.open(data / model)
    shape, at = index.shape, LENSES.index(lens)
    compared = next((name for name, kinds in COMPARED.items() if kind in kinds), None)
    found: list[dict[str, Any]] = []
    for layer in index.layers:
        lists, stats = index.part("lists", layer), index.part("stats", layer)
        for row in range(shape.count(kind)):
            similarity = None
            if compared:
                similarities = lists.array(f"{compared}.similarity").reshape(-1, len(LENSES), 2)[:, at].max(axis=1)
                sharing = [pair for pair, of in enumerate(shape.rows(kind)) if of == row]
                similarity = max(similarities[pair].item() for pair in sharing)
            numbers = {
                "z": stats.array(f"{kind}.z")[row, at, 0].item(),
                "norm": lists.array(f"{kind}.norm")[row].item(),
                "coherence": lists.array(f"{kind}.coherence")[row, at, 0].item(),
            }
            finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
            top = lists.array(f"{kind}.ids")[row, at, 0, :8].tolist()
            found.append({"layer": layer, "index": row, "similarity": similarity, "top": top, **finite})
    return found


def by(sort: str) -> Any:
    return lambda row: (-math.inf if row[sort] is None else row[sort]) * -1


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    of_row = ("layer", "index", "similarity", "z", "norm", "coherence")
    return [{**{name: row[name] for name in of_row}, "top": [token["id"] for token in row["top"]]} for row in rows]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("model", "kind", "lens"), [
    (GPT2, "ff_value", "dot"), (LLAMA, "ff_key", "cosine"), (LLAMA, "w_v", "cosine"), (LLAMA, "w_o", "dot"),
    (LLAMA, "ff_up", "dot"),
])  # fmt: skip
def test_every_page_in_order(site_data: Path, client: TestClient, model: str, kind: str, lens: str, sort: str) -> None:
    expected = sorted(all_vectors(site_data, model, kind, lens), key=by(sort))
    address, rows = f"/{model}/vectors.json?kind={kind}&lens={lens}&sort={sort}", []
    pages = client.get(address).json()["pages"]
    for page in range(1, pages + 1):
        view = client.get(f"{address}&page={page}").json()
        assert view["total"] == len(expected)
        rows += view["rows"]
    assert shown(rows) == expected
    assert client.get(f"{address}&page={pages + 1}").status_code == 404


def test_filters(site_data: Path, client: TestClient) -> None:
    address = f"/{LLAMA}/vectors.json?kind=ff_value"
    least = sorted(row["similarity"] for row in all_vectors(site_data, LLAMA, "ff_value", "dot"))[-9]
    line = client.get(address).json()["chance"]["line99"]
    cases: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
        (f"min_similarity={least!r}", lambda row: row["similarity"] >= least),
        ("above=chance", lambda row: row["z"] > line),
        (f"above=chance&min_similarity={least!r}", lambda row: row["z"] > line and row["similarity"] >= least),
    ]
    for query, keep in cases:
        expected = [row for row in all_vectors(site_data, LLAMA, "ff_value", "dot") if keep(row)]
        view = client.get(f"{address}&{query}").json()
        assert view["total"] == len(expected)
        assert shown(view["rows"]) == sorted(expected, key=by("z"))[: len(view["rows"])]


def test_a_csv_has_all_rows(site_data: Path, client: TestClient) -> None:
    expected = sorted(all_vectors(site_data, LLAMA, "ff_value", "cosine"), key=by("coherence"))
    text = client.get(f"/{LLAMA}/vectors.csv?sort=coherence&lens=cosine").text
    rows = [*csv.DictReader(io.StringIO(text, newline=""))]
    assert [(int(row["layer"]), int(row["index"]), int(row["top_8_id"])) for row in rows] == [
        (row["layer"], row["index"], row["top"][-1]) for row in expected
    ]
    assert {(row["model"], row["kind"], row["lens"]) for row in rows} == {(LLAMA, "ff_value", "cosine")}


def test_rows_lead_to_their_pages(client: TestClient) -> None:
    for kind, path in (("ff_key", "ff"), ("w_k", "sub"), ("vo_out", "svd")):
        links = parsed(client.get(f"/{LLAMA}/vectors?kind={kind}&lens=cosine").text).links()
        found = [link for link in links if f"/{path}/" in link and link.endswith("lens=cosine")]
        assert found
        assert client.get(found[0]).status_code == 200


def test_layers_that_are_not_built_are_said(client: TestClient) -> None:
    for page in ("vectors", "sample"):
        assert client.get(f"/{GPT2}/{page}.json").json()["missing"] == [0]
        assert "Not built yet: layers 0" in client.get(f"/{GPT2}/{page}").text
        assert client.get(f"/{LLAMA}/{page}.json").json()["missing"] == []


@pytest.mark.parametrize(("query", "status", "said"), [
    ("vectors?min_similarity=0.1&kind=ff_up", 422, "compared with no others"),
    ("vectors?min_similarity=nan", 422, "min_similarity"),
    ("vectors?kind=vo", 422, "kind"),
    ("sample?n=0", 422, "n"),
    (f"sample?n={MOST_SAMPLED + 1}", 422, "n"),
    ("sample?layers=0-9", 422, "layers 0 to"),
    ("sample?n=4&good=5", 422, "good = 5: 4 vectors"),
    ("sample?good=x", 422, "good"),
    ("sample?good=-1", 422, "good"),
    ("sample?seed=-1", 422, "seed"),
])  # fmt: skip
def test_what_cannot_be_asked(client: TestClient, query: str, status: int, said: str) -> None:
    page, _, arguments = query.partition("?")
    answer = client.get(f"/{LLAMA}/{page}.json?{arguments}")
    assert answer.status_code == status, answer.text
    assert said in answer.json()["error"]["detail"]


def drawn(client: TestClient, query: str, model: str = LLAMA) -> list[tuple[int, int]]:
    rows = client.get(f"/{model}/sample.json?{query}").json()["rows"]
    return [(row["layer"], row["index"]) for row in rows]


def test_the_same_seed_is_the_same_draw(site_data: Path, client: TestClient) -> None:
    assert drawn(client, "n=4&seed=7") == drawn(client, "n=9&seed=7")[:4] != drawn(client, "n=4&seed=8")
    with visit(site_data) as stranger:
        assert drawn(stranger, "n=9&seed=7") == drawn(client, "n=9&seed=7&lens=cosine")
    raw = np.random.PCG64(7).random_raw(len(all_vectors(site_data, LLAMA, "ff_value", "dot"))).tolist()
    count = Index.open(site_data / LLAMA).shape.d_mlp
    assert drawn(client, "n=9&seed=7") == [divmod(at, count) for at in sorted(range(len(raw)), key=raw.__getitem__)][:9]


def test_a_draw_is_fair(client: TestClient) -> None:
    """Each of 12 vectors is drawn about equally often, and none twice in a draw."""
    total = client.get(f"/{LLAMA}/sample.json?kind=w_k&layers=1").json()["total"]
    times: Counter[tuple[int, int]] = Counter()
    for seed in range(200):
        found = drawn(client, f"kind=w_k&layers=1&n=3&seed={seed}")
        assert len({*found}) == 3
        assert {layer for layer, _ in found} == {1}
        times.update(found)
    expected = 600 / total
    assert len(times) == total
    assert max(abs(count - expected) for count in times.values()) < 4.5 * math.sqrt(expected)


def test_a_draw_from_similar_ones(site_data: Path, client: TestClient) -> None:
    rows = all_vectors(site_data, LLAMA, "ff_key", "dot")
    least = sorted(row["similarity"] for row in rows)[-6]
    similar = {(row["layer"], row["index"]) for row in rows if row["similarity"] >= least}
    view = client.get(f"/{LLAMA}/sample.json?kind=ff_key&n=200&min_similarity={least!r}").json()
    assert (view["total"], view["n"]) == (len(similar), len(similar))
    assert {(row["layer"], row["index"]) for row in view["rows"]} == similar
    nothing = client.get(f"/{LLAMA}/sample.json?kind=ff_key&min_similarity=1&good=0").json()
    assert (nothing["rows"], nothing["n"], nothing["share"], nothing["interval"]) == ([], 0, None, None)


def test_of_a_difference_what_changed(client: TestClient) -> None:
    every = client.get(f"/{DIFFERENCE}/vectors.json?kind=ff_value&sort=norm").json()
    assert all(row["norm"] > 0 and row["layer"] > 0 for row in every["rows"])
    sample = client.get(f"/{DIFFERENCE}/sample.json?kind=ff_value&n=200").json()
    assert sample["n"] == sample["total"] == every["total"]
    assert all(row["norm"] > 0 for row in sample["rows"])


@pytest.mark.parametrize(("query", "good", "share"), [
    ("n=4", None, None), ("n=4&good=0", [], 0.0), ("n=4&good=3&good=1", [1, 3], 0.5),
    ("n=4&good=0&good=2,2", [2], 0.25),
])  # fmt: skip
def test_what_reads_well_stands_in_the_address(
    client: TestClient, query: str, good: list[int] | None, share: float | None
) -> None:
    view = client.get(f"/{LLAMA}/sample.json?{query}").json()
    assert (view["good"], view["share"]) == (good, share)
    page = client.get(f"/{LLAMA}/sample?{query}")
    assert "of all layers: 4 drawn from" in page.text
    tree = parsed(page.text)
    ticked = [int(box.attributes["value"]) for box in tree.all("input", type="checkbox") if "checked" in box.attributes]
    assert ticked == (good or [])
    headings = "coherence" in [cell.text for cell in tree.all("th")]
    assert headings == (good is not None)  # numbers come after the judgement
    if good is not None:
        assert f"{len(good)} of 4 read well, {share:.0%}, 95% interval" in page.text
        assert "&#34;address&#34;: &#34;tiny-llama&#34;" in page.text
        written = ",".join(map(str, good)) or "0"
        assert f"good={written}" in page.headers["link"].replace("%2C", ",") or "0," in page.headers["link"]


@pytest.mark.parametrize(("k", "n", "low", "high"), [
    (2, 4, 0.1500, 0.8500), (0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (5, 60, 0.0361, 0.1807), (0, 1, 0, 0.7935),
])  # fmt: skip
def test_the_interval(k: int, n: int, low: float, high: float) -> None:
    """The interval is what statistics programs print as Wilson's."""
    assert wilson(k, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("model", [LLAMA, DIFFERENCE])
def test_what_is_measured_is_not_said_to_be_missing(client: TestClient, model: str) -> None:
    for path in ("", "/layer/1", "/ff/1/3", "/head/1/2/sub/0", "/head/1/2/svd/0", "/vectors", "/sample"):
        assert "Not measured yet" not in client.get(f"/{model}{path}").text


def test_an_index_without_z_answers_and_says_so(tmp_path: Path) -> None:
    write_index(tmp_path / "old", make_manifest(model="old"))
    with visit(tmp_path) as visitor:
        for page in ("vectors", "sample"):
            answer = visitor.get(f"/old/{page}?good=0" if page == "sample" else "/old/vectors")
            assert answer.status_code == 200
            assert "has no z of these vectors" in answer.text
        for path in ("", "/layer/0", "/ff/0/1", "/head/0/1/sub/0", "/head/0/1/svd/0"):
            text = visitor.get(f"/old{path}").text
            assert "Not measured yet" in text, path
            assert "</code> adds it to this index" in text, path
        view = visitor.get("/old/vectors.json").json()
        assert {row["z"] for row in view["rows"]} == {None}
        assert view["chance"] is None
        refused = visitor.get("/old/vectors.json?above=chance")
        assert refused.status_code == 404
        assert "lexiscope precompute" in refused.json()["error"]["detail"]
