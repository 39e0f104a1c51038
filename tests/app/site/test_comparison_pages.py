"""Two models in one space: the page, its data and its figure; matches on the pages of neurons, subheads and directions;
what is damaged, removed or of other weights."""

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from starlette.testclient import TestClient
from torch import Tensor

from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.shape import DIRECTION_KINDS
from tests.support.comparisons import change_weights, quick_compare
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, copied, visit
from tests.support.tables import rows as csv_rows

VS = f"/{GPT2}/vs/{LLAMA}"
SVG = "{http://www.w3.org/2000/svg}"


def double_embedding(tensors: dict[str, Tensor]) -> None:
    tensors["transformer.wte.weight"] *= 2


@pytest.fixture(scope="session")
def compared(site_data: Path) -> Comparison:
    return Comparison.open(site_data / "vs" / GPT2 / LLAMA)


@pytest.fixture(scope="session")
def content(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"{VS}.json").json()
    return found


def test_json_holds_what_is_stored(content: dict[str, Any], compared: Comparison) -> None:
    assert (content["a"], content["b"], content["tokens"]) == (GPT2, LLAMA, compared.tokens)
    kinds = ["ff_key", "ff_value", "w_q", "w_k", "w_v", "w_o", "vo_in", "vo_out", "qk_query", "qk_key"]
    assert list(content["kinds"]) == kinds  # ff_up has only one of them
    for kind, of in content["kinds"].items():
        np.testing.assert_allclose(of["similarity"], compared.similarity(kind))
        np.testing.assert_allclose(of["feature_space"], compared.feature_space(kind))  # type: ignore[arg-type]
        assert [tuple(pair) for pair in of["assignment"]] == compared.assignment(kind)
        assert [tuple(pair) for pair in of["feature_assignment"]] == compared.feature_assignment(kind)
        count = compared.a.kinds[kind]
        best = [[compared.matches("a", kind, layer, index)[0][0] for index in range(count)] for layer in range(3)]
        most = [[layer, int(np.argmax(of["best"][layer]))] for layer, _ in of["assignment"]]
        assert of["best_layers"] == most
        np.testing.assert_allclose(of["best"], [[row.count(layer) / count for layer in range(2)] for row in best])


def test_the_strongest_are_the_strongest(content: dict[str, Any], compared: Comparison) -> None:
    """The lists of random weights do not read as words, so they are the strongest as they come, each vector once."""
    for kind in content["kinds"]:
        pairs = [pair for pair in content["strongest"] if pair["kind"] == kind]
        ours = [(pair["a"]["layer"], pair["a"]["index"]) for pair in pairs]
        theirs = [(pair["b"]["layer"], pair["b"]["index"]) for pair in pairs]
        assert len(pairs) == len({*ours}) == len({*theirs}) == 6
        strengths = [abs(pair["r"]) for pair in pairs]
        assert strengths == sorted(strengths, reverse=True)
        assert strengths[0] == abs(compared.strongest(kind, 1)[0].r)


def test_words_are_those_of_the_indexes(client: TestClient, content: dict[str, Any], site_data: Path) -> None:
    """Of layers that are built; where r is negative, also the other's bottom."""
    lenses = {card["model"]: card["best_lens"] for card in client.get("/index.json").json()["models"]}
    checked = set()
    for pair in client.get(f"{VS}.json?kind=w_k").json()["strongest"] + content["strongest"]:
        for side, model in (("a", GPT2), ("b", LLAMA)):
            vector, index = pair[side], Index.open(site_data / model)
            if vector["layer"] not in index.layers:
                assert vector["top"] is None
                continue
            lists = index.shard(vector["layer"]).vector(pair["kind"], vector["index"], lenses[model])
            assert [token["id"] for token in vector["top"]] == lists.ids[0][:6].tolist()
            negative = side == "b" and pair["r"] < 0
            bottom = [token["id"] for token in vector["bottom"]] if negative else None
            assert bottom == (lists.ids[1][:6].tolist() if negative else None)
            checked.add((side, negative))
    assert checked == {("a", False), ("b", False), ("b", True)}


def test_the_page_names_what_it_shows(client: TestClient) -> None:
    page = client.get(VS).text
    assert f"{GPT2} vs {LLAMA}" in parsed(page).all("h1")[0].text
    assert page.count('class="assigned"') == 10 * 3 * 2  # kinds, maps, layers of the shorter model
    assert {"ff_key", "w_o", "strongest", "verdicts"} <= {*parsed(page).ids()}
    assert f"{VS}.svg" in client.get(VS).headers["link"]
    assert '<span class="at">L0N' in page  # of a layer that is not built
    assert page.count('<span class="at">') == page.count("no list here")
    alone = client.get(f"{VS}?kind=w_q").text
    assert alone.count('class="assigned"') == 3 * 2


@pytest.mark.parametrize(("query", "kinds"), [("", 10), ("?kind=w_v", 1)])
def test_the_figure_is_an_svg_by_itself(client: TestClient, query: str, kinds: int) -> None:
    answer = client.get(f"{VS}.svg{query}")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    figure = ElementTree.fromstring(answer.content)
    cells = [rect for rect in figure.iter(f"{SVG}rect") if rect.find(f"{SVG}title") is not None]
    assert len(cells) == kinds * 3 * 6  # maps, layers by layers
    assert {element.tag.removeprefix(SVG) for element in figure.iter()} == {
        "svg", "title", "desc", "rect", "text", "tspan", "g",
    }  # fmt: skip
    assert not [element for element in figure.iter() if "style" in element.attrib]


def test_csv_has_every_cell_and_the_matches(client: TestClient, content: dict[str, Any]) -> None:
    rows = csv_rows(client, f"{VS}.csv")
    cells = [row for row in rows if row["similarity"]]
    assert len(cells) == 10 * 3 * 2
    for row in cells:
        of, a, b = content["kinds"][row["kind"]], int(row["layer_a"]), int(row["layer_b"])
        assert float(row["similarity"]) == of["similarity"][a][b]
        assert float(row["feature_space"]) == of["feature_space"][a][b]
        assert (row["assigned"] == "1") == ([a, b] in of["assignment"])
        assert (row["a"], row["b"], row["build"]) == (GPT2, LLAMA, content["build"])
    matches = [row for row in rows if row["r"]]
    assert [float(row["r"]) for row in matches] == [pair["r"] for pair in content["strongest"]]


@pytest.mark.parametrize("format", ["", ".json", ".csv", ".svg"])
def test_the_other_way_round_leads_there(client: TestClient, format: str) -> None:
    answer = client.get(f"/{LLAMA}/vs/{GPT2}{format}?kind=w_q")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{VS}{format}?kind=w_q")


@pytest.mark.parametrize(("path", "status", "says"), [
    (f"/{GPT2}/vs/nothing", 404, f"compared: {GPT2} with {LLAMA}"),
    (f"/nothing/vs/{GPT2}", 404, f"lexiscope compare nothing {GPT2}"),
    (f"{VS}?kind=ff_up", 404, "both have ff_key, ff_value"),
    (f"{VS}?kind=w_x", 422, "w_x"),
    (f"{VS}?kinds=w_q", 422, "did you mean kind?"),
    (f"/{GPT2}.svg", 404, ".json"),
])  # fmt: skip
def test_what_is_not_there(client: TestClient, path: str, status: int, says: str) -> None:
    answer = client.get(path, headers={"accept": "application/json"})
    assert answer.status_code == status
    assert says in answer.json()["error"]["detail"]


VECTORS = [
    (f"/{GPT2}/ff/1/3", "a", LLAMA, {"ff_key": 3, "ff_value": 3}),
    (f"/{LLAMA}/ff/1/3", "b", GPT2, {"ff_key": 3, "ff_value": 3}),
    (f"/{LLAMA}/head/1/3/sub/2", "b", GPT2, {"w_q": 26, "w_k": 10, "w_v": 10, "w_o": 26}),  # heads 2 and 3 share
    (f"/{LLAMA}/head/1/3/svd/2", "b", GPT2, dict.fromkeys(DIRECTION_KINDS, 26)),
]


@pytest.mark.parametrize(("path", "side", "other", "rows"), VECTORS)
def test_matches_of_a_parameter(
    client: TestClient, compared: Comparison, site_data: Path, path: str, side: Any, other: str, rows: dict[str, int]
) -> None:
    lens, index = "cosine", Index.open(site_data / other)
    matches = client.get(f"{path}.json?lens={lens}").json()["matches"]
    assert [*matches] == [other]
    for kind, row in rows.items():
        of_kind = [match for match in matches[other] if match["kind"] == kind]
        stored = compared.matches(side, kind, 1, row)
        assert [(match["layer"], match["index"], match["r"]) for match in of_kind] == stored
        for match in of_kind:
            if match["layer"] in index.layers:
                lists = index.shard(match["layer"]).vector(kind, match["index"], lens)
                assert [token["id"] for token in match["top"]] == lists.ids[0][:6].tolist()
            else:
                assert match["top"] is None
    page = client.get(f"{path}?lens={lens}")
    assert VS in parsed(page.text).links()
    assert page.text.count("The ten best of each in") == 1


# What changes while it is served


def test_a_model_with_itself(site_data: Path, tmp_path: Path) -> None:
    """Every vector is its own best match, which says nothing: shown are two that are alike."""
    data = copied(site_data, tmp_path)
    shutil.rmtree(data / "vs")
    source = Path(Manifest.load(data / LLAMA).source)
    quick_compare(source, source, data)
    with visit(data, worker="off") as visitor:
        content = visitor.get(f"/{LLAMA}/vs/{LLAMA}.json").json()
        for kind, of in content["kinds"].items():
            if kind in (
                "ff_key",
                "ff_up",
                "ff_value",
                "w_q",
                "w_k",
                "w_v",
                "w_o",
            ):  # directions of a head share nothing
                assert of["assignment"] == [[0, 0], [1, 1]], kind
            assert (of["best"], of["same_index"]) == ([[1, 0], [0, 1]], 1)
        for pair in content["strongest"]:
            assert [pair["a"][name] for name in ("layer", "index")] != [pair["b"][name] for name in ("layer", "index")]
            assert abs(pair["r"]) < 1
        assert "same weights" in visitor.get(f"/{LLAMA}/vs/{LLAMA}").text
        matches = visitor.get(f"/{LLAMA}/ff/1/3.json").json()["matches"][LLAMA]
        assert [1, 3] not in [[match["layer"], match["index"]] for match in matches]
        for page in ("/", f"/{LLAMA}", f"/{LLAMA}/layer/1"):  # there for who asks, and offered to nobody
            assert f"/{LLAMA}/vs/{LLAMA}" not in parsed(visitor.get(page).text).links(), page
        assert visitor.get(f"/{LLAMA}/ff/1/3").status_code == 200


def test_a_removed_index_leaves_the_numbers(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    with visit(data, worker="off", refresh=0.0) as visitor:
        before = visitor.get(f"{VS}.json").json()
        shutil.rmtree(data / LLAMA)
        after = visitor.get(f"{VS}.json").json()
        assert after["kinds"] == before["kinds"]
        assert [side["words"] for side in after["models"]] == [True, False]
        assert {pair["b"]["top"] is None for pair in after["strongest"]} == {True}
        assert "there is no index of it" in visitor.get(VS).text
        matches = visitor.get(f"/{GPT2}/ff/1/3.json").json()["matches"][LLAMA]
        assert {match["top"] is None for match in matches} == {True}
        assert visitor.get(f"/{GPT2}/ff/1/3").status_code == 200
        shutil.rmtree(data / GPT2)
        assert visitor.get(VS).status_code == 200
        assert visitor.get(f"{VS}.svg").status_code == 200


def test_other_weights_are_not_mixed_up(site_data: Path, tmp_path: Path) -> None:
    """A comparison of other weights than the served ones gives no matches, and says why."""
    data = copied(site_data, tmp_path)
    ours, theirs = (Path(Manifest.load(data / name).source) for name in (GPT2, LLAMA))
    changed = shutil.copytree(ours, tmp_path / GPT2)
    quick_compare(change_weights(changed, double_embedding), theirs, data, force=True)
    with visit(data, worker="off") as visitor:
        assert visitor.get(f"/{GPT2}/ff/1/3.json").json()["matches"] == {}
        theirs_matches = visitor.get(f"/{LLAMA}/ff/1/3.json").json()["matches"][GPT2]
        assert {match["top"] is None for match in theirs_matches} == {True}
        page = visitor.get(VS)
        assert page.status_code == 200
        assert "its index is of other weights" in page.text


@pytest.mark.parametrize("damage", ["cut", "removed", "record"])
def test_damage_hides_nothing_else(site_data: Path, tmp_path: Path, damage: str) -> None:
    data = copied(site_data, tmp_path)
    folder = data / "vs" / GPT2 / LLAMA
    file = folder / "ff_key.safetensors"
    match damage:
        case "cut":
            file.write_bytes(file.read_bytes()[:-9])
        case "removed":
            file.unlink()
        case "record":
            (folder / "comparison.json").write_text(json.dumps({"format": 1}))
    with visit(data, worker="off") as visitor:
        page = visitor.get(VS)
        neuron = visitor.get(f"/{GPT2}/ff/1/3.json").json()
        if damage == "record":
            assert page.status_code == 503
            assert "comparison.json is damaged" in visitor.get("/").text
            assert neuron["matches"] == {}
        else:
            assert page.status_code == 200
            assert f"vs/{GPT2}/{LLAMA}/ff_key.safetensors" in page.text
            assert str(data) not in page.text
            assert {match["kind"] for match in neuron["matches"][LLAMA]} == {"ff_value"}
        assert visitor.get("/").status_code == visitor.get(f"/{GPT2}").status_code == 200


@pytest.mark.parametrize(("damage", "status"), [("cut", 503), ("removed", 503), ("unfinished", 404)])
def test_data_of_a_kind_that_cannot_be_read(site_data: Path, tmp_path: Path, damage: str, status: int) -> None:
    """A table has no place to say what it lacks; JSON has, and so has the page."""
    data = copied(site_data, tmp_path)
    folder = data / "vs" / GPT2 / LLAMA
    file, record = folder / "ff_key.safetensors", folder / "comparison.json"
    match damage:
        case "cut":
            file.write_bytes(file.read_bytes()[:-9])
        case "removed":
            file.unlink()
        case "unfinished":
            content = json.loads(record.read_text())
            del content["files"]["ff_key"]
            record.write_text(json.dumps(content))
    with visit(data, worker="off") as visitor:
        for format in ("csv", "md", "tex", "svg"):
            answer = visitor.get(f"{VS}.{format}?kind=ff_key")
            assert (answer.status_code, "retry-after" in answer.headers) == (status, True), format
            error = answer.json()["error"]
            assert error["status"] == status
            assert ("goes on with it" if damage == "unfinished" else "ff_key.safetensors") in error["detail"]
            assert str(data) not in error["detail"]
            assert visitor.get(f"{VS}.{format}").status_code == 200  # of the other kinds
            assert visitor.get(f"{VS}.{format}?kind=ff_value").status_code == 200
        assert [*visitor.get(f"{VS}.json?kind=ff_key").json()["missing"]] == ["ff_key"]
        assert visitor.get(f"{VS}?kind=ff_key").status_code == 200


def test_a_finished_kind_is_seen(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    shutil.rmtree(data / "vs")
    with visit(data, worker="off", refresh=0.0) as visitor:
        assert visitor.get(VS).status_code == 404
        tag = visitor.get(f"/{GPT2}/ff/1/3").headers["etag"]
        ours, theirs = (Path(Manifest.load(data / name).source) for name in (GPT2, LLAMA))
        quick_compare(ours, theirs, data, kinds=("w_q",))
        assert [*visitor.get(f"{VS}.json").json()["kinds"]] == ["w_q"]
        quick_compare(ours, theirs, data, kinds=("w_q", "ff_key"))
        assert [*visitor.get(f"{VS}.json").json()["kinds"]] == ["ff_key", "w_q"]
        neuron = visitor.get(f"/{GPT2}/ff/1/3")
        assert neuron.headers["etag"] != tag
        assert "In other models" in neuron.text
