"""The page of the paper's lists: in all formats, of models with and without lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support import planted
from tests.support.site import DIFFERENCE, GPT2, visit
from tests.support.tables import rows as csv_rows

pytestmark = pytest.mark.slow
PAGE = f"/{planted.PLANTED}/paper"


@pytest.fixture(scope="module")
def paper(paper_data: Path) -> Iterator[TestClient]:
    with visit(paper_data) as visitor:
        yield visitor


def test_the_page_is_one_table(paper: TestClient) -> None:
    page = paper.get(PAGE).text
    data: dict[str, Any] = paper.get(f"{PAGE}.json").json()
    assert (data["lists"], data["by_name"], data["source"]["licence"]) == ("gpt2-medium", True, "CC BY 4.0")
    assert 'href="https://arxiv.org/abs/2209.02535"' in page
    assert page.count("<table") == 1
    assert page.count('<tr><th scope="row">') == len(data["printed"])
    assert page.count("layer 21 is not built") == sum(
        row["why_not"] == "layer 21 is not built" for row in data["printed"]
    )
    assert f'href="{PAGE}?list=vo/16/2"' in page.replace("%2F", "/")
    compared = [row for row in data["printed"] if not row["why_not"]]
    assert compared
    for row in compared:
        assert f'href="{row["ours"]}"' in page
        assert paper.get(row["ours"]).status_code == 200


@pytest.mark.parametrize("chosen", ["vo/16/6", "vo/16/2", "ff/16/41", "vo/21/7"])
def test_one_list_entry_by_entry(paper: TestClient, chosen: str) -> None:
    answer = paper.get(PAGE, params={"list": chosen})
    entries = paper.get(f"{PAGE}.json", params={"list": chosen}).json()["entries"]
    assert answer.text.count('<td class="n"><b>') == sum(entry["rank"] is not None for entry in entries)
    assert answer.text.count("may be misread") == sum(entry["doubtful"] for entry in entries)
    assert ("not built" in answer.text) is (chosen == "vo/21/7")


def test_a_list_that_is_not_printed(paper: TestClient) -> None:
    assert paper.get(PAGE, params={"list": "vo/1/1"}).status_code == 404


def test_csv_and_markdown(paper: TestClient) -> None:
    data = paper.get(f"{PAGE}.json").json()
    rows = csv_rows(paper, f"{PAGE}.csv")
    assert [(row["what"], row["address"], row["found"]) for row in rows] == [
        ("list", row["address"], "" if row["found"] is None else str(row["found"])) for row in data["printed"]
    ]
    entries = csv_rows(paper, f"{PAGE}.csv?list=vo/16/2")[1:]
    first = entries[0]
    assert (first["what"], first["first_token"], first["second_token"]) == ("entry", " Australians", "Austral")
    assert first["rank"] == "1"
    assert "| vo/16/6 | vo |" in paper.get(f"{PAGE}.md").text
    assert paper.get(f"{PAGE}.tex").status_code == 200


@pytest.mark.parametrize(("model", "also"), [(GPT2, 0), (DIFFERENCE, 1)])
def test_a_model_without_printed_lists(client: TestClient, model: str, also: int) -> None:
    page = client.get(f"/{model}/paper").text
    assert f"If {model} is one of these" in page
    assert page.count(f'href="/{model}/paper?as=gpt2">as a model fine-tuned') == also
    compared = client.get(f"/{model}/paper?as=gpt2-medium")
    assert compared.status_code == 200
    assert ">ours<" not in compared.text
    assert client.get(f"/{model}/paper?as=gpt3").status_code == 422
    assert client.get(f"/{model}/paper?ranks=1").status_code == 422


def test_gpt2_itself_leads_to_its_differences(paper: TestClient) -> None:
    page = paper.get(f"/{planted.RANDOM}/paper?as=gpt2").text
    assert f'href="/{planted.TUNED}/paper">{planted.TUNED}</a>' in page


def test_fine_tuned_vectors_lead_to_the_best_one(paper: TestClient) -> None:
    page = paper.get(f"/{planted.TUNED}/paper").text
    assert f'href="/{planted.TUNED}/ff/11/{planted.CHANGED}"' in page
    assert "by chance" in page
