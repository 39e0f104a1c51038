"""Two parameters side by side: the lists of their own pages, and the tokens that stand in both."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, SCRIPT, copied, visit
from tests.support.synthetic import make_manifest, write_index

ENDS = ("top", "bottom")


def ids(entries: list[dict[str, Any]]) -> set[int]:
    return {of["id"] for entry in entries for of in ([entry] if "id" in entry else [entry["from"], entry["to"]])}


@pytest.mark.parametrize(
    ("a", "b", "query"),
    [
        ("L1N3", "L0N5", "&k=30"),
        ("L1H2", "0.3", "&lens=cosine&preset=words"),
        ("L1H2.1", "L1N3", "&k=10&hubs=hide"),
        ("1.0.svd2", f"{DIFFERENCE}/L1N5", ""),
        ("L0N7", "L0N7", "&k=5&preset=words"),
    ],
)
def test_shared_tokens(client: TestClient, a: str, b: str, query: str) -> None:
    """Exactly those of both, for every list and end of one and every one of the other; and marked on the page."""
    address = f"/{LLAMA}/beside.json?a={a}&b={b}{query}"
    data = client.get(address).json()
    expected = [
        (of["name"], end, other["name"], other_end, ids(of[end]) & ids(other[other_end]))
        for of in data["a"]["lists"]
        for end in ENDS
        for other in data["b"]["lists"]
        for other_end in ENDS
    ]
    found = [(s["a"], s["a_end"], s["b"], s["b_end"], {token["id"] for token in s["tokens"]}) for s in data["shared"]]
    assert found == [shared for shared in expected if shared[4]]
    assert found
    page = client.get(address.replace(".json", "")).text
    both = set().union(*(shared[4] for shared in found))
    rows = sum(
        not both.isdisjoint(ids([entry]))
        for side in "ab"
        for of in data[side]["lists"]
        for end in ENDS
        for entry in of[end]
    )
    assert len(parsed(page).all("tr", **{"class": "m"})) == rows
    for side in "ab":
        assert f'<a href="{data[side]["path"]}' in page
        assert client.get(data[side]["path"]).status_code == 200


def test_lists_are_those_of_the_pages(client: TestClient) -> None:
    data = client.get(f"/{LLAMA}/beside.json?a=L1N3&b=L1H2.svd0&k=7").json()
    neuron, direction = (client.get(f"{data[side]['path']}.json?k=7").json() for side in "ab")
    assert [of["name"] for of in data["a"]["lists"]] == ["key", "up", "value"]
    for of in data["a"]["lists"]:
        assert (of["top"], of["bottom"]) == (neuron[of["name"]]["top"], neuron[of["name"]]["bottom"])
    sides = {**direction["vo"], **direction["qk"]}
    assert [of["top"] for of in data["b"]["lists"]] == [sides[name]["top"] for name in ("in", "out", "query", "key")]
    rows = list(csv.DictReader(io.StringIO(client.get(f"/{LLAMA}/beside.csv?a=L1N3&b=L1H2.svd0&k=7").text)))
    assert [row["token"] for row in rows if (row["side"], row["vector"], row["end"]) == ("a", "key", "top")] == [
        entry["token"] for entry in neuron["key"]["top"]
    ]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("a=L99N1", 404, "layers 0 to 1"),
        ("a=L1N3&b=dog", 422, "names no parameter of tiny-llama: write such as L1N"),
        ("a=L1", 422, "names no parameter"),
        ("a=nothing/L1N3", 422, "names no parameter"),
        ("a=L1N3&k=31", 422, "k goes from 1 to 30"),
        ("a=%3Cscript%3E", 422, "<script>"),
    ],
)
def test_what_cannot_be_compared(client: TestClient, query: str, status: int, said: str) -> None:
    answer = client.get(f"/{LLAMA}/beside.json?{query}")
    assert (answer.status_code, answer.json()["error"]["status"]) == (status, status)
    assert said in answer.json()["error"]["detail"]
    assert "<script>" not in client.get(f"/{LLAMA}/beside?{query}").text


def test_models_of_other_vocabularies(site_data: Path, tmp_path: Path) -> None:
    """The error names those that would work."""
    data = copied(site_data, tmp_path)
    write_index(data / "tiny", make_manifest())
    with visit(data) as client:
        answer = client.get(f"/{LLAMA}/beside.json?a=L1N3&b=tiny/L1N3")
    assert answer.status_code == 422
    said = f"so that no token is the same: {LLAMA} has that of {GPT2}, {DIFFERENCE}"
    assert answer.json()["error"]["detail"] == f"tiny and {LLAMA} have different vocabularies, {said}"


def test_hostile_tokens_are_text(client: TestClient) -> None:
    """The token <script> stands in lists of these neurons."""
    places = client.get(f"/{LLAMA}/token/{SCRIPT}.json?kind=ff_key").json()["roles"][0]["places"][:2]
    names = "&".join(f"{side}=L{at['layer']}N{at['index']}" for side, at in zip("ab", places, strict=True))
    page = client.get(f"/{LLAMA}/beside?{names}&k=30").text
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_a_parameter_leads_there(client: TestClient) -> None:
    for path, name in (("ff/1/3", "L1N3"), ("head/1/2/qk", "L1H2"), ("head/1/2/svd/0", "L1H2.svd0")):
        assert f"/{LLAMA}/beside?a={name}" in parsed(client.get(f"/{LLAMA}/{path}").text).links()
    assert 'value="L1N3"' in client.get(f"/{LLAMA}/beside?a=L1N3").text
