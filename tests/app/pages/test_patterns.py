"""The panel of patterns and messages, over HTTP with a real worker: both tables, conventions, lenses, formats."""

import pytest
from starlette.testclient import TestClient

from tests.support.pages import parsed
from tests.support.site import GPT2, PROMPT

PATTERNS = f"{PROMPT}&layer=1&panel=patterns"
DATA = PATTERNS.replace("prompt?", "prompt.json?")


@pytest.mark.parametrize(("asked", "convention", "canonical"), [
    ("", "vocabulary", ""),
    ("&convention=vocabulary&lens=dot&rows=heads", "vocabulary", ""),
    ("&convention=final", "final", "&convention=final"),
    ("&convention=exact&lens=cosine", "exact", "&convention=exact&lens=cosine"),
])  # fmt: skip
def test_the_usual_convention_is_the_vocabularys(live: TestClient, asked: str, convention: str, canonical: str) -> None:
    """An address that names another, as all did that meant the final norm, keeps its meaning."""
    assert live.get(DATA + asked).json()["convention"] == convention
    assert f'<{PATTERNS}{canonical}>; rel="canonical"' in live.get(PATTERNS + asked).headers["link"]


def test_both_sides_of_every_head(live: TestClient) -> None:
    view = live.get(DATA + "&position=1&k=3").json()
    cells = live.get(PATTERNS + "&position=1&k=3").text.split("<dd>")[1:]
    for head in view["patterns"]:
        for side in ("pattern", "found_by", "message"):
            shown = parsed(cells.pop(0).partition("<dt>")[0]).links()
            assert shown == [f"/{GPT2}/token/{token['id']}" for token in head[side]]
        assert head["found_from"]["position"] > 1
        assert f"position={head['found_from']['position']}&" in parsed(cells.pop(0).partition("</dl>")[0]).links()[0]
    last = live.get(DATA).json()["patterns"]
    assert [head["found_from"] for head in last] == [None] * 4  # nobody looks at the last position but itself


def test_all_tokens_at_one_head(live: TestClient) -> None:
    path = f"{PATTERNS}&head=2&rows=tokens"
    view = live.get(path.replace("prompt?", "prompt.json?")).json()
    assert (view["head"], view["rows"], view["patterns"]) == (2, "tokens", None)
    assert [token["position"] for token in view["patterns_by_token"]] == list(range(len(view["tokens"])))
    by_head = live.get(f"{DATA}&position=1").json()["patterns"][2]
    token = view["patterns_by_token"][1]
    for side in ("pattern", "found_by", "message"):
        assert [each["id"] for each in token[side]] == [each["id"] for each in by_head[side]]
    assert token["looks_at"]["position"] == by_head["messages"][0]["position"]
    assert token["found_from"] == by_head["found_from"]
    links = parsed(live.get(path).text).links()
    assert f"{PATTERNS}&head=2&position=1".split("&layer")[0] in {link.split("&layer")[0] for link in links}
    assert {f"/{GPT2}/head/1/2", f"{PROMPT}&layer=1&head=3&panel=patterns&rows=tokens"} <= set(links)
    assert live.get(f"{DATA}&rows=tokens").json()["head"] == 0


@pytest.mark.parametrize("of", ["", "&head=1&rows=tokens"])
def test_tables_for_people(live: TestClient, of: str) -> None:
    """Every list is in Markdown and LaTeX; other panels have no such table."""
    view = live.get(DATA + of).json()
    lists = view["patterns"] or view["patterns_by_token"]
    markdown = live.get(PATTERNS.replace("prompt?", "prompt.md?") + of).text
    table = [line for line in markdown.splitlines() if line.startswith("| ")][1:]
    assert len(table) == len(lists) + 1
    assert "looks for" in markdown
    assert "is found by" in markdown
    assert "(vocabulary, dot)" in markdown
    latex = live.get(PATTERNS.replace("prompt?", "prompt.tex?") + of).text
    assert "is found by" in latex
    other = live.get(PROMPT.replace("prompt?", "prompt.md?"))
    assert (other.status_code, "panel=patterns" in other.text) == (404, True)
    assert "prompt.md" not in live.get(PROMPT).text


def test_what_is_linked_opens_with_the_same_lens(live: TestClient) -> None:
    links = parsed(live.get(f"{PATTERNS}&lens=cosine").text).links()
    assert f"/{GPT2}/head/1/2?lens=cosine" in links
    assert any("/token/" in link and link.endswith("?lens=cosine") for link in links)
    assert PATTERNS in links
    neurons = parsed(live.get(f"{PROMPT}&panel=neurons&lens=cosine").text).links()
    assert any("/ff/" in link and link.endswith("?lens=cosine") for link in neurons)
    first = live.get(f"{PROMPT}&panel=neurons&lens=cosine".replace("prompt?", "prompt.json?")).json()["neurons"]
    built = next(neuron for neuron in first if neuron["layer"] == 1)
    stored = live.get(f"/{GPT2}/ff/1/{built['neuron']}.json?lens=cosine").json()
    assert [token["id"] for token in built["key"]] == [token["id"] for token in stored["key"]["top"][:5]]
