"""What people said of parameters, on the pages of a model."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, copied, visit
from tests.support.site_labels import HOSTILE, write_labels
from tests.support.tables import rows as csv_rows


def test_all_labels_of_a_model(client: TestClient) -> None:
    view = client.get(f"/{LLAMA}/labels.json").json()
    assert view["total"] == 6
    assert [label["address"].removeprefix(LLAMA) for label in view["labels"]] == [
        "/qk/1/0", "/w_k/1/1/0", "/vo/1/2", "/head/1/2", "/vo_out/1/2/0", "/ff/1/3",
    ]  # fmt: skip
    assert view["labels"][-1]["tokens"][0] == " dog"
    assert view["faults"] == []
    page = client.get(f"/{LLAMA}/labels").text
    assert f'href="/{LLAMA}/ff/1/3?lens=' in page or f'href="/{LLAMA}/ff/1/3"' in page
    assert "Kennels &amp; stables" in page


def test_hostile_text_is_text(client: TestClient) -> None:
    answer = client.get(f"/{LLAMA}/labels")
    assert HOSTILE not in answer.text
    assert "<img src=x" not in answer.text
    page = parsed(answer.text)
    assert HOSTILE in [element.text.strip() for element in page.all("bdi")]
    rows = csv_rows(client, f"/{LLAMA}/labels.csv")
    assert HOSTILE in [row["title"] for row in rows]
    assert "<script>" not in client.get(f"/{LLAMA}/labels.md").text.replace("\\<", "")


def test_bad_files_are_named_and_the_rest_serves(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    with visit(data, refresh=0) as visitor:
        before = visitor.get(f"/{LLAMA}/ff/1/3")
        write_labels(data, "<b>bad.json", b"[")
        write_labels(data, "far.json", [{"address": f"{LLAMA}/vo/99/0", "title": "x"}])
        view = visitor.get(f"/{LLAMA}/labels.json").json()
        assert view["total"] == 6
        assert [fault.partition(":")[0] for fault in view["faults"]] == [
            "labels/<b>bad.json", "labels/far.json, entry 1, address",
        ]  # fmt: skip
        assert visitor.get("/-/health").json()["labels"] == view["faults"][:1]
        for address in ("/", f"/{LLAMA}/labels"):
            assert "labels/&lt;b&gt;bad.json: it is not JSON" in visitor.get(address).text
        after = visitor.get(f"/{LLAMA}/ff/1/3", headers={"if-none-match": before.headers["etag"]})
        assert after.status_code == 200  # its labels may be others


def test_long_lists_have_pages(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    write_labels(data, entries=[{"address": f"{LLAMA}/ff/1/{at % 8}", "title": f"number {at}"} for at in range(150)])
    with visit(data) as visitor:
        first, second = (visitor.get(f"/{LLAMA}/labels.json?page={page}").json() for page in (1, 2))
        assert (len(first["labels"]), len(second["labels"]), first["pages"]) == (100, 50, 2)
        assert visitor.get(f"/{LLAMA}/labels?page=3").status_code == 404
        assert len(visitor.get(f"/{LLAMA}/labels.csv").text.splitlines()) == 151
        assert "page 1 of 2" in visitor.get(f"/{LLAMA}/labels").text


# On pages of parameters


@pytest.mark.parametrize(("path", "titles"), [
    (f"/{LLAMA}/ff/1/3", ["Kennels & stables"]),
    (f"/{LLAMA}/head/1/2/vo", ["Carries greyhounds", HOSTILE]),
    (f"/{LLAMA}/head/1/2/qk", ["Carries greyhounds"]),
    (f"/{LLAMA}/head/1/2", ["Carries greyhounds", HOSTILE]),
    (f"/{LLAMA}/head/1/0/sub/0", ["שלום, from right to left"]),  # heads 0 and 1 share it
    (f"/{LLAMA}/head/1/1/sub/0", ["שלום, from right to left"]),
    (f"/{GPT2}/ff/1/3", ["Writes lions"]),
    (f"/{LLAMA}/head/1/2/svd/0", ["The strongest step"]),
])  # fmt: skip
def test_parameters_show_theirs(client: TestClient, path: str, titles: list[str]) -> None:
    assert [label["title"] for label in client.get(f"{path}.json").json()["labels"]] == titles
    page = parsed(client.get(path).text)
    assert [text for element in page.all("bdi") if (text := element.text.strip()) in titles][: len(titles)] == titles
    assert "javascript:" not in " ".join(page.links())


@pytest.mark.parametrize("path", [f"/{LLAMA}/ff/1/4", f"/{LLAMA}/head/0/2/vo", f"/{LLAMA}/head/0/2"])
def test_parameters_without_any_say_nothing(client: TestClient, path: str) -> None:
    assert "labels" not in client.get(f"{path}.json").json()
    assert not parsed(client.get(path).text).all("section", **{"class": "labels"})


def test_a_parameter_shows_the_first_of_very_many(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    write_labels(data, entries=[{"address": f"{LLAMA}/ff/1/3", "title": f"number {at}"} for at in range(60)])
    with visit(data) as visitor:
        assert len(visitor.get(f"/{LLAMA}/ff/1/3.json").json()["labels"]) == 20
        assert "the first 20" in visitor.get(f"/{LLAMA}/ff/1/3").text


@pytest.mark.parametrize(("path", "title"), [
    (f"/{LLAMA}/layer/1", "Kennels & stables"),
    (f"/{LLAMA}/head/1/2", "The strongest step"),
    (f"/{LLAMA}/head/1/1", "שלום, from right to left"),
])  # fmt: skip
def test_tables_have_marks(client: TestClient, path: str, title: str) -> None:
    marks = parsed(client.get(path).text).all("mark", **{"class": "label"})
    assert [mark.attributes["title"] for mark in marks] == [f"Label: {title}"]


def test_maps_have_marks(client: TestClient) -> None:
    page = parsed(client.get(f"/{LLAMA}").text)
    marked = {link.attributes["href"]: link.attributes["title"] for link in page.all("a", **{"class": "labelled"})}
    assert sum("/head/1/2" in address for address in marked) == 1
    assert any("Label: Looks for lions" in title for title in marked.values())
    assert not any("/head/0/" in address for address in marked)


@pytest.mark.parametrize("path", ["token", "search"])
def test_lists_of_parameters_have_marks(client: TestClient, path: str) -> None:
    value = client.get(f"/{LLAMA}/ff/1/3.json").json()["value"]
    token = value["top"][0]
    address = f"/{LLAMA}/token/{token['id']}" if path == "token" else f"/{LLAMA}/search?q=%23{token['id']}"
    marks = parsed(client.get(address).text).all("mark", **{"class": "label"})
    assert "Label: Kennels & stables" in [mark.attributes["title"] for mark in marks]


@pytest.mark.parametrize(("words", "titles"), [
    ("greyhounds", ["Carries greyhounds", "Kennels & stables"]),
    ("KENNELS grey", ["Kennels & stables"]),
    ("שלום", ["שלום, from right to left"]),
    ("zebra", []),
])  # fmt: skip
def test_search_finds_their_words(client: TestClient, words: str, titles: list[str]) -> None:
    view = client.get(f"/{LLAMA}/search.json", params={"q": words}).json()
    assert ([label["title"] for label in view["labels"]], view["labels_total"]) == (titles, len(titles))
    page = client.get(f"/{LLAMA}/search", params={"q": words})
    assert ("said-list" in page.text) == bool(titles)


# To be copied


@pytest.mark.parametrize(
    "path", ["ff/1/4", "head/1/1/vo?lens=cosine&preset=words", "head/1/1", "head/1/1/sub/1", "head/1/1/svd/1"]
)
def test_what_is_copied_from_a_page_is_a_label_of_it(site_data: Path, tmp_path: Path, path: str) -> None:
    data = copied(site_data, tmp_path)
    with visit(data, refresh=0) as visitor:
        page = parsed(visitor.get(f"/{LLAMA}/{path}").text)
        (pre,) = page.all("pre", id="label-json")
        write_labels(data, "copied.json", pre.text.encode())
        assert visitor.get("/-/health").json()["labels"] == []
        shown = visitor.get(f"/{LLAMA}/{path.replace('?', '.json?') if '?' in path else path + '.json'}").json()
        for label in shown["labels"]:
            best = max(of["exactly"] for of in label["in_ours"])
            assert best == len(label.get("pairs") or label["tokens"])
