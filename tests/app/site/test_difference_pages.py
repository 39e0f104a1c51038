"""Pages of a difference, in all formats: each says of what from what, and leads to the two models that can run."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from lexiscope.precompute.index.manifest import Manifest
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, PAGES, visit
from tests.support.tables import rows as csv_rows

STORED = {
    "model": f"/{DIFFERENCE}",
    "layer": f"/{DIFFERENCE}/layer/1?sort=change",
    "neuron": f"/{DIFFERENCE}/ff/1/5",
    "head": f"/{DIFFERENCE}/head/1/2",
    "pairs": f"/{DIFFERENCE}/head/1/2/vo",
    "subhead": f"/{DIFFERENCE}/head/1/2/sub/0",
    "direction": f"/{DIFFERENCE}/head/1/2/svd/0",
    "token": f"/{DIFFERENCE}/token/300",
    "search": f"/{DIFFERENCE}/search?q=e",
}
NO_RUN = f"a difference of two models, tiny-tuned − {LLAMA}. It cannot run"


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("difference")])
def test_every_page_says_of_what_from_what(client: TestClient, name: str) -> None:
    page = client.get(PAGES[name]).text
    (line,) = re.findall('<p class="difference">.*</p>', page)
    assert re.sub("<[^>]*>", "", line).startswith(f"Difference: tiny-tuned − {LLAMA}")
    (link,) = [link for link in parsed(line).links() if f"/{LLAMA}" in link]  # to the same page of the base
    assert link.partition("?")[0] == PAGES[name].partition("?")[0].replace(DIFFERENCE, LLAMA)
    assert "change" not in link
    assert client.get(link).status_code in (200, 503), link  # 503 while a worker loads


@pytest.mark.parametrize("name", STORED)
def test_data_carry_it(client: TestClient, name: str) -> None:
    content = client.get(format_address(STORED[name], "json")).json()
    assert (content["minus"]["tuned"], content["minus"]["model"]) == ("tiny-tuned", LLAMA)
    assert set(content["minus"]) == {"tuned", "model", "source", "revision", "weights_sha256"}
    rows = csv_rows(client, format_address(STORED[name], "csv"))
    assert rows
    assert {row["minus"] for row in rows} == {LLAMA}
    for format in ("md", "tex"):
        assert LLAMA in client.get(format_address(STORED[name], format)).text.rpartition("weights")[2], format
    of_model = client.get(format_address(STORED[name].replace(DIFFERENCE, LLAMA).replace("sort=change", ""), "json"))
    assert "minus" not in of_model.json()
    assert '"change"' not in of_model.text


@pytest.mark.parametrize("name", ["layer", "neuron", "head", "pairs", "subhead", "model"])
def test_csv_has_changes(client: TestClient, name: str) -> None:
    rows = csv_rows(client, format_address(STORED[name], "csv"))
    changes = [float(row["change"]) for row in rows if row["change"]]
    assert max(changes) > 0


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ff/1/0", "this vector is the same in both models"),
        ("head/1/3/vo", "this head’s matrix is the same in both models"),
        ("head/1/3", "this matrix of the head is the same in both models"),
        ("head/1/3/sub/1", "this vector is the same in both models"),
        ("layer/0", "all neurons and heads of this layer are the same in both models"),
    ],
)
def test_what_did_not_change_says_so(client: TestClient, path: str, said: str) -> None:
    page = client.get(f"/{DIFFERENCE}/{path}").text
    assert f"{said}, so there is nothing to list" in page
    assert 'class="list' not in page
    for format in ("md", "tex"):
        assert "unchanged" in client.get(f"/{DIFFERENCE}/{path}.{format}").text or path in ("head/1/3", "layer/0")
    assert re.search(r'"(unchanged":true|change":0\.0)', client.get(f"/{DIFFERENCE}/{path}.json").text)


def test_a_matrix_that_did_not_change_has_no_directions(client: TestClient) -> None:
    path = f"/{DIFFERENCE}/head/1/3/svd/0"
    page = " ".join(client.get(path).text.split())
    assert page.count("this matrix of the head is the same in both models, so there is nothing to list") == 2
    assert 'class="list' not in page
    for of in (client.get(f"{path}.json").json()[matrix] for matrix in ("vo", "qk")):
        assert (of["singular"], of["share"]) == (0, None)
    for format in ("md", "tex"):
        assert "no direction" in client.get(f"{path}.{format}").text
    assert "<td" not in client.get(f"/{DIFFERENCE}/head/1/3").text.partition('id="directions"')[2].partition("<h2")[0]


def test_the_map_of_changes(client: TestClient) -> None:
    page = client.get(f"/{DIFFERENCE}?map=change").text
    assert "unchanged, heads and all" in page
    assert f'href="/{DIFFERENCE}/layer/1?sort=change"' in page
    refused = client.get(f"/{LLAMA}.json?map=change")
    assert (refused.status_code, "only differences" in refused.text) == (422, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"W_E": 0.0}, "W_E itself did not change: lists are read through the base’s, which is the tuned model’s"),
        (
            {"W_E": 0.0034, "W_U": 0.25},
            "W_E itself changed by 0.34% (|ΔW_E| / |W_E|), W_U itself changed by 25% (|ΔW_U| / |W_U|): lists are read "
            "through the base’s, so what the move of a token itself adds to its scores is not in them.",
        ),
        (None, ""),
    ],
)
def test_how_far_the_embedding_itself_moved(
    site_data: Path, tmp_path: Path, change: dict[str, float] | None, said: str
) -> None:
    folder = Path(shutil.copytree(site_data / DIFFERENCE, tmp_path / DIFFERENCE))
    made = Manifest.load(folder)
    assert made.embedding_change == {"W_E": 0.0}  # as it was built
    made.with_changes(embedding_change=change).save(folder)
    with visit(tmp_path, worker="off") as visitor:
        page = re.sub("<[^>]*>", "", visitor.get(f"/{DIFFERENCE}").text)
        assert said in page
        assert ("itself" in page.partition("Layers and heads")[2]) == bool(change)
        assert visitor.get(f"/{DIFFERENCE}.json").json().get("embedding_change") == change
        rows = csv_rows(visitor, f"/{DIFFERENCE}.csv")
        told = {row["matrix"]: float(row["change"]) for row in rows if row["matrix"].startswith("W_")}
        assert told == (change or {})


def test_a_prompt_leads_to_the_two_models(client: TestClient) -> None:
    address = f"/{DIFFERENCE}/prompt?text=the+dog&panel=neurons&layer=1"
    page = client.get(address)
    assert page.status_code == 200
    assert NO_RUN in page.text
    (link,) = {link for link in parsed(page.text).links() if link.startswith(f"/{LLAMA}/prompt")}
    assert dict(parse_qsl(link.partition("?")[2])) == {"text": "the dog", "panel": "neurons", "layer": "1"}
    assert "no index of it here" in page.text  # of the tuned one
    for format in ("json", "csv"):
        refused = client.get(format_address(address, format))
        assert (refused.status_code, NO_RUN in refused.json()["error"]["detail"]) == (404, True)


@pytest.mark.parametrize(
    "path", ["ff/1/5.json?reading=norm", "head/1/2/sub/1.json?reading=mlp", "head/1/2/vo.json?reading=norm",
             "prompt.events?text=dog", "head/1/2/vo.events?reading=norm"]
)  # fmt: skip
def test_what_needs_a_run_is_refused(client: TestClient, path: str) -> None:
    refused = client.get(f"/{DIFFERENCE}/{path}", headers={"accept": "application/json"})
    assert (refused.status_code, NO_RUN in refused.json()["error"]["detail"]) == (404, True)


@pytest.mark.parametrize("name", STORED)
def test_no_link_leads_to_a_run_of_a_difference(client: TestClient, name: str) -> None:
    """But for the one in the bar, which leads to the page that names the two."""
    links = parsed(client.get(STORED[name]).text).links()
    of_difference = [link for link in links if unquote(link).startswith(f"/{DIFFERENCE}/prompt")]
    assert len(of_difference) == 1
    assert not any("reading=" in link for link in links)


def test_the_two_may_have_no_index(site_data: Path, tmp_path: Path) -> None:
    shutil.copytree(site_data / DIFFERENCE, tmp_path / DIFFERENCE)
    with visit(tmp_path) as visitor:
        home = visitor.get("/")
        assert home.status_code == 200
        assert f"difference</a>: tiny-tuned − {LLAMA}" in home.text
        assert "Run a sentence" not in home.text
        assert visitor.get("/index.json").json()["start"]["minus"]["model"] == LLAMA
        for address in STORED.values():
            page = visitor.get(address)
            assert page.status_code == 200
            assert "There is no index of it here" in page.text
            assert f'href="/{LLAMA}' not in page.text


def test_an_index_of_other_weights_is_not_linked(site_data: Path, tmp_path: Path) -> None:
    """The base's name alone is not enough."""
    for name in (DIFFERENCE, GPT2):
        shutil.copytree(site_data / name, tmp_path / name)
    manifest = (tmp_path / GPT2).rename(tmp_path / LLAMA) / "manifest.json"
    manifest.write_text(manifest.read_text().replace(GPT2, LLAMA))
    with visit(tmp_path) as visitor:
        assert "There is no index of it here" in visitor.get(STORED["neuron"]).text


def test_home_starts_with_a_model(client: TestClient) -> None:
    content = client.get("/index.json").json()
    assert content["start"]["model"] == LLAMA  # of the other, a layer is not built
    cards = {card["model"]: (card["tuned"], card["base"]) for card in content["models"]}
    assert cards == {GPT2: ("", ""), LLAMA: ("", ""), DIFFERENCE: ("tiny-tuned", LLAMA)}


@pytest.mark.slow
def test_live_pages_of_a_difference(live: TestClient) -> None:
    """A worker of its own; what it computes is tested in tests/precompute/live/test_difference.py."""
    content = live.get(f"/{DIFFERENCE}/seeds.json?words=dog,lion&kind=ff_key&k=5").json()
    assert content["minus"]["model"] == LLAMA
    assert [result["layer"] for result in content["results"]] == [1] * 5  # layer 0 did not change
    heads = live.get(f"/{DIFFERENCE}/heads.json?words=dog&layers=1").json()
    assert heads["minus"]["model"] == LLAMA
    assert live.get(f"/{DIFFERENCE}/relation.json?pairs=dog%3Elion").status_code == 200
    for page in ("seeds?words=dog", "heads?words=dog&layers=1", "relation?pairs=dog%3Elion"):
        assert 'class="difference"' in live.get(f"/{DIFFERENCE}/{page}").text
