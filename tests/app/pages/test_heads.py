"""Pages of words through heads, over HTTP with a real worker; tests/precompute/live has the lists."""

import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from tests.support.pages import parsed
from tests.support.site import GPT2, HEADS
from tests.support.tables import rows


def test_as_data(live: TestClient) -> None:
    view = live.get(format_address(HEADS, "json")).json()
    assert {name: view[name] for name in ("model", "words", "layers", "head", "lens", "end")} == {
        "model": GPT2, "words": "dog,lion+horse", "layers": "0-2", "head": None, "lens": "dot", "end": "top",
    }  # fmt: skip
    assert [(group["word"], [part["word"] for part in group["parts"]]) for group in view["groups"]] == [
        ("dog", ["dog"]), ("lion+horse", ["lion", "horse"]),
    ]  # fmt: skip
    assert [(row["layer"], row["head"]) for row in view["heads"]] == [(x, y) for x in range(3) for y in range(4)]
    for row in view["heads"]:
        assert [cell["word"] for cell in row["words"]] == ["dog", "lion+horse"]
        for cell in row["words"]:
            for name in ("seeks", "writes"):
                scores = [token["score"] for token in cell[name]]
                assert scores == sorted(scores, reverse=True)
                assert len(scores) == 4
                own = [token["token"].strip().lower() in cell["word"].split("+") for token in cell[name]]
                assert cell[f"{name}_itself"] == (own.index(True) + 1 if any(own) else None)


def test_csv_has_every_token_with_its_score(live: TestClient) -> None:
    view, found = live.get(format_address(HEADS, "json")).json(), rows(live, format_address(HEADS, "csv"))
    assert len(found) == 12 * 2 * 2 * 4
    assert list(found[0]) == [
        "layer", "head", "word", "list", "rank", "token", "token_id", "score", "itself", "alike", "model",
        "lens", "end", "build",
    ]  # fmt: skip
    expected = [
        (row["layer"], row["head"], cell["word"], name, rank, token["id"], token["score"])
        for row in view["heads"]
        for cell in row["words"]
        for name in ("seeks", "writes")
        for rank, token in enumerate(cell[name], 1)
    ]
    assert [
        (int(row["layer"]), int(row["head"]), row["word"], row["list"], int(row["rank"]), int(row["token_id"]),
         float(row["score"]))
        for row in found
    ] == expected  # fmt: skip


@pytest.mark.parametrize("words", ["dog", "dog,lion"])
def test_one_table_of_all_heads(live: TestClient, words: str) -> None:
    path = f"/{GPT2}/heads?words={words}&layers=0-2"
    page = parsed(live.get(path).text)
    assert {f"L{layer}H{head}" for layer in range(3) for head in range(4)} <= set(page.ids())
    links = page.links()
    assert f"/{GPT2}/head/1/2" in links
    assert f"/{GPT2}/head/0/2" not in links  # which is not built
    assert (f"/{GPT2}/head/1/2/qk" in links) == (words != "dog")
    for format in ("md", "tex"):
        text = live.get(format_address(path, format)).text
        assert [f"{word} through heads (dot)" in text for word in words.split(",")] == [True] * len(words.split(","))


def test_ends_and_lenses_differ(live: TestClient) -> None:
    views = [live.get(f"/{GPT2}/heads.json?words=dog{more}").json() for more in ("", "&end=bottom", "&lens=cosine")]
    lists = [[cell["seeks"] for row in view["heads"] for cell in row["words"]] for view in views]
    assert lists[0] != lists[1] != lists[2] != lists[0]
    assert all(token["score"] <= cell[0]["score"] for cell in lists[0] for token in cell)
    assert all(token["score"] >= cell[0]["score"] for cell in lists[1] for token in cell)


def test_a_token_by_its_id_is_the_word(live: TestClient) -> None:
    word = live.get(f"/{GPT2}/heads.json?words=dog&layers=1").json()
    (token,) = word["groups"][0]["parts"][0]["tokens"]
    named = live.get(f"/{GPT2}/heads.json?words=%23{token['id']}&layers=1&head=2").json()
    (row,) = named["heads"]
    assert {**row["words"][0], "word": "dog"} == word["heads"][2]["words"][0]


def test_the_head_page_has_a_form_for_its_head(live: TestClient) -> None:
    page = parsed(live.get(f"/{GPT2}/head/1/2?lens=cosine").text)
    assert page.all("form", action=f"/{GPT2}/heads")
    hidden = {field.attributes["name"]: field.attributes["value"] for field in page.all("input", type="hidden")}
    assert hidden.items() >= {"layers": "1", "head": "2", "lens": "cosine"}.items()


@pytest.mark.parametrize(("layers", "before", "after"), [
    ("0-1", None, "&layers=2"), ("1", "", "&layers=2"), ("1-2", "", None), ("0,2", None, None),
])  # fmt: skip
def test_neighbouring_layers(live: TestClient, layers: str, before: str | None, after: str | None) -> None:
    page = parsed(live.get(f"/{GPT2}/heads?words=dog&layers={layers}").text)
    for rel, expected in (("prev", before), ("next", after)):
        links = [link.attributes["href"] for link in page.all("a", rel=rel)]
        assert links == ([] if expected is None else [f"/{GPT2}/heads?words=dog{expected}"])
