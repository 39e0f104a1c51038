"""Small tables: one list of a page, or two beside each other, at the length that was asked for."""

import pytest
from starlette.testclient import TestClient

from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA


@pytest.mark.parametrize(("path", "heads"), [
    (f"/{LLAMA}/ff/1/3.md?side=both&k=4", "| \\# | key | score | value | score |"),
    (f"/{LLAMA}/ff/1/3.md?side=up&k=4", "| \\# | token | score |"),
    (f"/{GPT2}/ff/1/3.md?side=value&k=4&lens=cosine", "| \\# | token | score |"),
    (f"/{GPT2}/head/1/2/sub/1.md?side=vo&k=4", "| \\# | v | score | o | score |"),
    (f"/{GPT2}/head/1/2/sub/1.md?side=q&k=4", "| \\# | token | score |"),
    (f"/{GPT2}/head/1/2/vo.md?side=bottom&k=4", "| \\# | reads | writes | score |"),
])  # fmt: skip
def test_one_table_of_the_asked_length(client: TestClient, path: str, heads: str) -> None:
    title, _, head, _, *rows, _, source = client.get(path).text.splitlines()
    assert head == heads
    assert len(rows) == 4
    assert [row.split("|")[1].strip() for row in rows] == ["1", "2", "3", "4"]
    side = path.partition("side=")[2].partition("&")[0]
    assert any(name in title for name in (side, "key and value", "v and o"))
    assert "side" not in source  # the permalink is that of the page
    tex = client.get(path.replace(".md", ".tex")).text
    assert tex.count(r"\begin{tabular}") == tex.count(r"\caption{") == 1


def test_the_numbers_are_those_of_the_page(client: TestClient) -> None:
    view = client.get(f"/{LLAMA}/ff/1/3.json?k=1").json()
    row = client.get(f"/{LLAMA}/ff/1/3.md?side=both&k=1").text.splitlines()[4]
    scores = [view[vector]["top"][0]["score"] for vector in ("key", "value")]
    assert [cell.strip() for cell in row.split("|")[3:6:2]] == [f"{score:.3f}" for score in scores]


@pytest.mark.parametrize(("path", "status", "said"), [
    (f"/{GPT2}/ff/1/3.md?side=up", 404, "this page has key, value"),
    (f"/{GPT2}/ff/1/3.md?side=q", 422, "'key', 'up', 'value' or 'both'"),
    (f"/{GPT2}/ff/1/3.json?side=key", 422, "add .md or .tex"),
    (f"/{GPT2}/ff/1/3?side=key", 422, "add .md or .tex"),
    (f"/{GPT2}/layer/1.md?side=key", 422, "no argument 'side'"),
])  # fmt: skip
def test_what_there_is_none_of(client: TestClient, path: str, status: int, said: str) -> None:
    answer = client.get(path, headers={"Accept": "application/json"})
    assert (answer.status_code, said in answer.json()["error"]["detail"]) == (status, True), answer.text


@pytest.mark.parametrize("path", [f"/{LLAMA}/ff/1/3", f"/{GPT2}/head/1/2/sub/1", f"/{GPT2}/head/1/2/qk"])
def test_the_page_offers_what_there_is(client: TestClient, path: str) -> None:
    """By a form that works without script, and keeps the lens."""
    page = parsed(client.get(f"{path}?lens=cosine").text)
    offered = [option.attributes["value"] for option in page.all("option")]
    (form,) = [form for form in page.all("form") if "data-copy" in form.attributes]
    assert page.all("input", name="lens", value="cosine")
    for side in offered:
        for action in (form.attributes["action"], f"{path}.md"):
            assert client.get(f"{action}?side={side}&k=3&lens=cosine").status_code == 200
    assert len(offered) == (4 if "/ff/" in path else 6 if "/sub/" in path else 2)
