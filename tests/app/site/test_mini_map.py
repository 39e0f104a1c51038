"""The small map of where the same words are, beside what the lists of every head and layer say."""

import re
from html import unescape

import pytest
from starlette.testclient import TestClient

from tests.support.site import DIFFERENCE, GPT2, LLAMA

LAYERS, HEADS = {GPT2: (1, 2), LLAMA: (0, 1)}, 4


def cells(page: str) -> dict[str, int]:
    """Return the numbers of the map by the address that each links to."""
    rows = re.search(r'<table class="map mini">(.*?)</table>', page, re.DOTALL)
    assert rows
    assert rows[1].count('class="here"') == 1
    found = re.findall(r'<a href="([^"]*)" title="[^"<>]*" data-heat="\d">(\d+)</a>', rows[1])
    return {unescape(address): int(count) for address, count in found}


def words_of_head(client: TestClient, model: str, layer: int, head: int) -> set[int]:
    pairs = [
        pair
        for matrix in ("vo", "qk")
        for pair in client.get(f"/{model}/head/{layer}/{head}/{matrix}.json?k=10&preset=words&lens=cosine").json()[
            "top"
        ]
    ]
    return {pair[side]["id"] for pair in pairs for side in ("from", "to")}


@pytest.mark.parametrize(
    ("model", "path", "own"),
    [
        (LLAMA, "head/1/2", ()),
        (GPT2, "head/2/0/qk?lens=cosine&preset=distinct", ()),
        (LLAMA, "head/0/3/sub/0?lens=cosine", ("q", "k", "v", "o")),
        (GPT2, "head/1/1/svd/2", ("in", "out", "query", "key")),
    ],
)
def test_heads_that_share_words(client: TestClient, model: str, path: str, own: tuple[str, ...]) -> None:
    """Exactly those, with how many they share: of a part, among the first ten tokens of its lists."""
    here = tuple(map(int, re.findall(r"\d+", path)[:2]))
    data = client.get(f"/{model}/" + path.partition("?")[0] + ".json?" + path.partition("?")[2]).json()
    lists = {**data, **(data.get("vo") or {}), **(data.get("qk") or {})} if own else {}
    words = {entry["id"] for name in own for entry in lists[name]["top"][:10]}
    words = words or words_of_head(client, model, *here)
    lens = "?lens=cosine" if "cosine" in path else ""
    expected = {
        f"/{model}/head/{layer}/{head}{lens}": len(words & words_of_head(client, model, layer, head))
        for layer in LAYERS[model]
        for head in range(HEADS)
        if own or (layer, head) != here
    }
    assert cells(client.get(f"/{model}/{path}").text) == {at: count for at, count in expected.items() if count}
    assert any(expected.values())


@pytest.mark.parametrize("path", [f"/{GPT2}/ff/1/5", f"/{LLAMA}/ff/0/47?lens=cosine", f"/{DIFFERENCE}/ff/1/5"])
def test_layers_whose_neurons_list_the_word(client: TestClient, path: str) -> None:
    """The number is that of the rows of the table which it links to."""
    found = cells(client.get(path).text)
    assert found
    for address, count in found.items():
        page, _, query = address.partition("?")
        assert client.get(f"{page}.json?{query}").json()["total"] == count
