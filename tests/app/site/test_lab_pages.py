"""The page of the paper's measurements: charts with their numbers, formats, and what it says where there is
nothing to show."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexiscope.precompute.index.lab_record import LAB, LabRecord
from lexiscope.precompute.index.manifest import Manifest
from tests.support.labs import HOSTILE_TEXTS, plausible_lab
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, copied, visit
from tests.support.tables import rows as csv_rows

LAB_OF_LLAMA = f"/{LLAMA}/lab"
COVERING = ("FF keys", "FF values", "w_v", "w_o")


@pytest.fixture
def record(site_data: Path) -> LabRecord:
    found = LabRecord.load(site_data / LLAMA)
    assert found
    return found


def test_json_has_what_was_measured_as_it_is_stored(client: TestClient, record: LabRecord) -> None:
    answer = client.get(f"{LAB_OF_LLAMA}.json").json()
    stored = record.model_dump(mode="json")
    assert {name: answer[name] for name in ("similarity", "inverse", "coverage")} == {
        name: stored[name] for name in ("similarity", "inverse", "coverage")
    }
    assert (answer["model"], answer["figure"], answer["fault"]) == (LLAMA, None, "")
    assert {"matched", "shuffled", "share_15"} <= answer["similarity"]["ff"].keys()
    assert {"k", "transpose", "pseudo"} <= answer["inverse"]["hidden"].keys()
    assert {"own", "own_random", "last", "last_random"} <= answer["coverage"]["w_o"].keys()


@pytest.mark.parametrize("figure", ["similarity", "inverse", "coverage"])
def test_one_measurement_alone(client: TestClient, figure: str) -> None:
    answer = client.get(f"{LAB_OF_LLAMA}.json", params={"figure": figure}).json()
    assert [name for name in ("similarity", "inverse", "coverage") if answer[name]] == [figure]
    page = parsed(client.get(LAB_OF_LLAMA, params={"figure": figure}).text)
    assert {"similarity", "inverse", "coverage"} & {*page.ids()} == {figure}
    rows = csv.DictReader(io.StringIO(client.get(f"{LAB_OF_LLAMA}.csv", params={"figure": figure}).text))
    assert {row["figure"] for row in rows} == {figure}


def test_the_page_has_a_chart_for_each_subject_with_its_numbers(client: TestClient, record: LabRecord) -> None:
    text = " ".join(client.get(LAB_OF_LLAMA).text.split())
    page = parsed(text)
    charts = page.all("svg", role="img")
    assert [chart.attributes["aria-label"].partition(", by")[0] for chart in charts] == [
        "Mean Sim_100, FF keys and values", "Mean Sim_100, w_v and w_o", "Mean Sim_100, w_q and w_k",
        "Neurons with 15% of the 100 in common",
        "keep-k cosine, normal vectors", "keep-k cosine, FF values", "keep-k cosine, hidden states",
        *(f"R_100 of {name}, own layer’s state" for name in COVERING),
        *(f"R_100 of {name}, last state" for name in COVERING),
    ]  # fmt: skip
    assert record.similarity
    assert record.similarity.ff
    assert f'<td class="n">{record.similarity.ff.matched[1]:.4f}' in text
    assert f"/{LLAMA}/layer/1?sort=similarity" in page.links()
    assert HOSTILE_TEXTS not in text
    assert "<script>" not in text
    assert "section 4.1" in " ".join(text.split())  # of the paper
    assert text.count("as the paper counts, random state") >= len(COVERING)
    assert "measure again" not in text


def test_numbers_stand_beside_the_charts(site_data: Path, tmp_path: Path) -> None:
    """Means over the layers that were measured, and of an inverse the value at the paper's k."""
    data = copied(site_data, tmp_path)
    changed = json.loads(plausible_lab(Manifest.load(data / LLAMA)).model_dump_json())
    of_ff = changed["similarity"]["ff"]
    rest = [None] * (len(of_ff["matched"]) - 2)
    of_ff |= {"matched": [0.03, 0.05, *rest], "shuffled": [0.004, 0.004, *rest]}
    changed["inverse"]["normal"] |= {"k": [10, 1000, 2000], "transpose": [0.5, 0.83, 0.9], "pseudo": [0.1, 0.12, 0.95]}
    changed["inverse"]["normal"] |= {"transpose_same": None, "pseudo_same": None}
    changed["coverage"]["texts"] |= {"count": 19}
    for lens in (changed["coverage"], changed["coverage"]["lenses"]["cosine"]):
        for kind in ("ff_key", "ff_value", "w_v", "w_o"):
            lens[kind] = {name: values for name, values in lens[kind].items() if "paper" not in name}
    LabRecord.model_validate(changed).save(data / LLAMA)
    with visit(data, worker="off") as visitor:
        text = "".join(visitor.get(LAB_OF_LLAMA).text.split("\n"))
    assert '<th scope="row">Mean Sim_100, FF keys and values<td class="n">4.0%<td class="n">0.4%' in text
    assert "<caption>At k = 1,000</caption>" in text
    assert '<th scope="row">keep-k cosine, normal vectors<td class="n">0.83<td class="n">0.12<td class="n">–' in text
    assert "too few texts to rely on" in text
    assert "normal vectors at k = 1,000 <b>0.83</b>" in text
    assert "measure again" in text  # the lines as the paper counts, which an older record lacks
    assert "as the paper counts, random state" not in text


def test_csv_has_a_row_for_each_layer_and_each_k(client: TestClient, record: LabRecord) -> None:
    rows = csv_rows(client, f"{LAB_OF_LLAMA}.csv")
    assert record.similarity
    assert record.similarity.vo
    vo = [row for row in rows if (row["figure"], row["lens"], row["kind"]) == ("similarity", "dot", "vo")]
    assert [float(row["matched"]) for row in vo] == pytest.approx([*record.similarity.vo.matched])
    assert record.inverse
    assert record.inverse.hidden
    hidden = [row for row in rows if (row["figure"], row["kind"]) == ("inverse", "hidden")]
    assert [int(row["k"]) for row in hidden] == [*record.inverse.hidden.k]
    assert {row["model"] for row in rows} == {LLAMA}


@pytest.mark.parametrize(("query", "charts"), [("", 15), ("?figure=similarity", 4), ("?figure=coverage", 8)])
def test_a_figure_by_itself(client: TestClient, query: str, charts: int) -> None:
    answer = client.get(f"{LAB_OF_LLAMA}.svg{query}")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    root = ElementTree.fromstring(answer.text)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    places = [
        tuple(map(float, group.attrib["transform"].removeprefix("translate(").removesuffix(")").split()))
        for group in root.iter("{http://www.w3.org/2000/svg}g")
        if "transform" in group.attrib
    ]
    assert all(0 <= x < width and 0 <= y < height for x, y in places)
    names = [text for text in root.iter("{http://www.w3.org/2000/svg}text") if text.attrib.get("class") == "name"]
    assert len(names) == charts


@pytest.mark.parametrize(("figure", "options"), [
    ("similarity", ""), ("inverse", " --texts FILE"), ("coverage", " --texts FILE"),
])  # fmt: skip
def test_nothing_measured(client: TestClient, figure: str, options: str) -> None:
    """The page says what it would show, and what measures it."""
    page = client.get(f"/{GPT2}/lab")
    assert page.status_code == 200
    assert f"<code>lexiscope lab {GPT2} --only {figure}{options}</code>" in page.text
    assert client.get(f"/{GPT2}/lab.json").json()[figure] is None
    assert "Not measured" in client.get(f"/{GPT2}/lab.svg").text
    assert client.get(f"/{GPT2}/lab.md").status_code == 200


def test_a_difference_has_similarities_and_runs_on_nothing(client: TestClient) -> None:
    page = client.get(f"/{DIFFERENCE}/lab").text
    assert "Mean Sim_100, FF keys and values" in page or "Mean Sim_30, FF keys and values" in page
    assert "runs on nothing" in page


@pytest.mark.parametrize(("content", "said"), [
    (b"[{", "lab.json is damaged"), (b"", "lab.json is damaged"),
    ("other weights", "measured of other weights (111111111111)"),
])  # fmt: skip
def test_what_cannot_be_shown_is_said(site_data: Path, tmp_path: Path, content: bytes | str, said: str) -> None:
    data = copied(site_data, tmp_path)
    other = plausible_lab(Manifest.load(data / LLAMA), weights_sha256="1" * 64).model_dump_json().encode()
    (data / LLAMA / LAB).write_bytes(content if isinstance(content, bytes) else other)
    with visit(data, worker="off") as visitor:
        page = visitor.get(LAB_OF_LLAMA)
        assert page.status_code == 200
        assert said in page.text
        assert str(data) not in page.text
        answer = visitor.get(f"{LAB_OF_LLAMA}.json").json()
        assert said in answer["fault"]
        assert answer["similarity"] is None


def test_a_visitor_who_has_it_gets_304_until_something_else_is_measured(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    with visit(data, worker="off") as visitor:
        first = visitor.get(LAB_OF_LLAMA)
        asked = {"if-none-match": first.headers["etag"]}
        assert visitor.get(LAB_OF_LLAMA, headers=asked).status_code == 304
        plausible_lab(Manifest.load(data / LLAMA), coverage=None).save(data / LLAMA)
        again = visitor.get(LAB_OF_LLAMA, headers=asked)
        assert again.status_code == 200
        assert "--only coverage" in again.text
