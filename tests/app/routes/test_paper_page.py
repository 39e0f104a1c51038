"""The page of the paper's lists: in all formats, of models with and without lists, with ranks from a worker."""

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support import planted
from tests.support.site import DIFFERENCE, GPT2, visit

pytestmark = pytest.mark.slow
PAGE = f"/{planted.PLANTED}/paper"


@pytest.fixture(scope="module")
def paper(paper_data: Path) -> Iterator[TestClient]:
    with visit(paper_data) as visitor:
        yield visitor


def test_the_page_tells_first_how_much_is_found(paper: TestClient) -> None:
    page = paper.get(PAGE).text
    data: dict[str, Any] = paper.get(f"{PAGE}.json").json()
    assert data["summary"] in page
    assert page.index(data["summary"]) < page.index("<h2")
    assert "printed pairs of heads are among our first 50" in data["summary"]
    assert (data["lists"], data["by_name"], data["source"]["licence"]) == ("gpt2-medium", True, "CC BY 4.0")
    assert 'href="https://arxiv.org/abs/2209.02535"' in page
    assert page.count("layer 21 is not built") == 2 + 2  # heads 7 and 12, neurons 86 and 400
    assert f'href="{PAGE}?list=vo/16/2"' in page.replace("%2F", "/")


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ("vo/16/6", "turned around, which is more than as printed"),
        ("vo/16/2", "as printed; as a baseline"),
        ("ff/16/41", "printed"),
        ("vo/21/7", "not built"),
    ],
)
def test_one_list_entry_by_entry(paper: TestClient, chosen: str, shown: str) -> None:
    answer = paper.get(PAGE, params={"list": chosen})
    assert answer.status_code == 200
    assert shown in answer.text
    assert (answer.text.count('<tr class="m">') >= 6) is (chosen in ("vo/16/2", "ff/16/41"))
    assert paper.get(PAGE, params={"list": "vo/1/1"}).status_code == 404


def test_csv_and_markdown(paper: TestClient) -> None:
    rows = [*csv.DictReader(io.StringIO(paper.get(f"{PAGE}.csv").text))]
    counts = [row for row in rows if row["what"] == "counts" and row["address"] == "vo/16/2"]
    assert {(row["preset"], row["direction"], row["first"]) for row in counts} == {
        (preset, direction, first)
        for preset in ("all", "distinct") for direction in ("as printed", "turned") for first in ("50", "500")
    }  # fmt: skip
    pairs = [row for row in rows if row["what"] == "pair" and row["address"] == "vo/16/2"]
    assert (pairs[0]["first_token"], pairs[0]["second_token"], pairs[0]["rank"]) == (" Australians", "Austral", "1")
    assert {row["address"] for row in rows if row["what"] == "missing"} >= {"vo/21/7", "ff/15/4057"}
    markdown = paper.get(f"{PAGE}.md").text
    assert "| vo/16/6 | Geography |" in markdown
    assert "Analyzing Transformers in Embedding Space" in markdown
    assert paper.get(f"{PAGE}.tex").status_code == 200


@pytest.mark.parametrize(("model", "also"), [(GPT2, 0), (DIFFERENCE, 1)])
def test_a_model_without_printed_lists(client: TestClient, model: str, also: int) -> None:
    page = client.get(f"/{model}/paper").text
    assert f"{model} is neither by its name" in page
    assert page.count(f'href="/{model}/paper?as=gpt2">as a model fine-tuned') == also
    compared = client.get(f"/{model}/paper?as=gpt2-medium")
    assert compared.status_code == 200
    assert "None of the 39 printed lists can be compared with ours" in compared.text
    assert client.get(f"/{model}/paper?as=gpt3").status_code == 422


def test_hostile_tokens_are_text(paper: TestClient) -> None:
    page = paper.get(f"{PAGE}?list=ff/16/41").text
    assert "&lt;script" in page
    assert "<script" not in page.replace('<script src="/static/', "")


def test_fine_tuned_vectors_lead_to_the_best_one(paper: TestClient) -> None:
    page = paper.get(f"/{planted.TUNED}/paper").text
    assert f'href="/{planted.TUNED}/ff/11/{planted.CHANGED}"' in page
    assert "chance would give" in page


def test_the_model_page_leads_there_where_lists_are_printed(paper: TestClient) -> None:
    assert f'href="{PAGE}">see them beside ours' in paper.get(f"/{planted.PLANTED}").text
    assert "see them beside ours" not in paper.get(f"/{planted.RANDOM}").text


def test_ranks_of_looked_up_neurons(paper: TestClient) -> None:
    assert "Compute the ranks" in paper.get(PAGE).text
    for _ in range(240):
        answer = paper.get(f"{PAGE}.json?ranks=1")
        if answer.status_code == 200:
            break
        assert answer.status_code == 503, answer.text
        time.sleep(0.25)
    found = {each["address"]: each["ranks"] for each in answer.json()["lookups"]}
    assert [(spelt["spelling"], spelt["rank"]) for spelt in found["ff/14/1215"]] == [("spaced", 3), ("bare", 1)]
    spaced = [token["token"] for tokens in found["ff/14/1215"][0]["tokens"] for token in tokens]
    assert spaced == [" python", " java", " javascript"]
    assert found["ff/20/2917"] is None  # the model has no such neuron
    assert "rank 3 or 1 (printed: 3)" in paper.get(f"{PAGE}?ranks=1").text


def test_ranks_without_a_worker(paper_data: Path) -> None:
    with visit(paper_data, worker="off") as visitor:
        assert f"lexiscope reproduce {planted.PLANTED}" in visitor.get(PAGE).text
        assert visitor.get(f"{PAGE}?ranks=1").status_code == 404
