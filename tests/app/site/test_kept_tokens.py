"""Lists that are kept to words or to a vocabulary, on every page and in every format; what pages say of it."""

import csv
import io
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import format_address
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import whole_words
from tests.app.site.test_hubs_on_pages import ids, lists_in
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, visit

TEXT = "dog lion horse the and in"
NEURON = f"/{GPT2}/ff/1/3"
LISTS = {
    "neuron": f"{NEURON}?k=12",
    "subhead": f"/{GPT2}/head/1/1/sub/2?k=12",
    "direction": f"/{GPT2}/head/1/1/svd/2?k=12",
    "pairs": f"/{GPT2}/head/1/2/vo?k=10",
    "head": f"/{GPT2}/head/1/2",
}
TABLES = {
    "layer": f"/{GPT2}/layer/1",
    "token": f"/{GPT2}/token/473",
    "search": f"/{GPT2}/search?q=e",
    "model": f"/{GPT2}",
}
KEPT = {"words": "preset=words", "vocabulary": "vocabulary=pets", "both": "preset=words&vocabulary=pets"}


@pytest.fixture(scope="module")
def data(site_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    for model in (GPT2, LLAMA):
        (folder / model).symlink_to(site_data / model)
    (folder / "vocabularies").mkdir()
    (folder / "vocabularies" / "pets.txt").write_text("\n".join([*TEXT.split(), TEXT, "a e i o u x y"]))
    return folder


@pytest.fixture(scope="module")
def client(data: Path) -> Iterator[TestClient]:
    with visit(data) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def kept(data: Path) -> dict[str, set[int]]:
    """The tokens of each of KEPT, found without the code that pages use."""
    from tokenizers import Tokenizer

    tokens = Index.open(data / GPT2).tokens
    words = set(np.flatnonzero(whole_words([*tokens])).tolist())
    tokenizer = Tokenizer.from_file(str(data / GPT2 / "tokenizer.json"))
    texts = [*TEXT.split(), *(f" {word}" for word in TEXT.split()), TEXT, "a e i o u x y"]
    pets = {token for text in texts for token in tokenizer.encode(text, add_special_tokens=False).ids}
    return {"words": words, "vocabulary": pets, "both": words & pets}


def asked(path: str, which: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{KEPT[which]}"


def entry_lists(client: TestClient, path: str) -> dict[str, list[dict[str, Any]]]:
    answer = client.get(format_address(path, "json"))
    assert answer.status_code == 200, answer.text
    return dict(lists_in(answer.json()))


@pytest.mark.parametrize("which", KEPT)
@pytest.mark.parametrize("path", LISTS.values(), ids=LISTS)
def test_stored_lists_are_filled_up_and_keep_their_ranks(
    client: TestClient, kept: dict[str, set[int]], path: str, which: str
) -> None:
    """As many as are asked for, of all that is stored."""
    whole_path = re.sub(r"k=\d+", "k=60" if "/vo" in path else "k=30", path)
    if "/vo" in path and which != "vocabulary":
        whole_path += "&preset=words"  # pairs have lists of words of their own
    whole, shown = entry_lists(client, whole_path), entry_lists(client, asked(path, which))
    k = int(path.partition("k=")[2] or 0)
    for where, entries in shown.items():
        assert all(ids(entry) <= kept[which] for entry in entries)
        if k:
            left = [(rank, ids(entry)) for rank, entry in enumerate(whole[where], 1) if ids(entry) <= kept[which]]
            assert [(entry.get("rank", at), ids(entry)) for at, entry in enumerate(entries, 1)] == left[: len(entries)]
            assert len(entries) == len(left[:k])
    assert client.get(format_address(asked(path, which), "json")).json()["only"] == {
        "words": which != "vocabulary", "vocabulary": None if which == "words" else "pets",
    }  # fmt: skip


@pytest.mark.parametrize("which", KEPT)
@pytest.mark.parametrize("path", (LISTS | TABLES).values(), ids=LISTS | TABLES)
def test_no_format_has_others(client: TestClient, kept: dict[str, set[int]], path: str, which: str) -> None:
    for format in ("csv", "md", "tex", "html"):
        answer = client.get(format_address(asked(path, which), format))
        assert answer.status_code == 200, answer.text
        if format == "csv" and "search" not in path:
            rows = list(csv.DictReader(io.StringIO(answer.text)))
            listed = {
                int(row[name]) for row in rows for name in row
                if row[name] and re.search(r"^(?!token_id).*(token|from|to|_\d)_id$", name)
            }  # fmt: skip
            assert listed <= kept[which] | {473}


@pytest.mark.parametrize("path", [LISTS["neuron"], TABLES["layer"], LISTS["direction"]])
def test_switches_and_links(client: TestClient, path: str) -> None:
    page = client.get(path).text
    assert {asked(path, "words"), asked(path, "vocabulary")} <= {*parsed(page).links()}
    shown = client.get(asked(path, "both"))
    links = [link for link in parsed(shown.text).links() if re.match(rf"/{GPT2}(/|\?|$)", link)]
    assert {link for link in links if "preset=words" not in link} == {asked(path, "vocabulary")}
    assert {link for link in links if "vocabulary=pets" not in link} == {asked(path, "words")}
    assert f"<{asked(path, 'both')}>" in shown.headers["link"]
    assert 'name="vocabulary"' in shown.text  # forms take it along
    moved = client.get(f"/{GPT2}/search?q=L1N3&{KEPT['both']}")
    assert moved.headers["location"].endswith(KEPT["both"])


@pytest.mark.parametrize("path", [LISTS["pairs"], LISTS["head"]])
def test_a_choice_of_pairs_is_of_its_page(client: TestClient, path: str) -> None:
    """Links to lists of tokens, and the search box, do not take it along."""
    page = parsed(shown := client.get(asked(path, "words")).text)
    away = [link for link in page.links() if re.match(rf"/{GPT2}/(token|ff|head/\d+/\d+/s)", link)]
    assert away
    assert not [link for link in away if "preset" in link]
    assert 'name="preset"' not in shown


@pytest.mark.parametrize(("which", "said"), [("words", ", words only"), ("vocabulary", ", only tokens of pets")])
def test_captions_say_what_lists_are_kept_to(client: TestClient, which: str, said: str) -> None:
    for format in ("md", "tex"):
        assert f"(dot){said}" in client.get(format_address(asked(NEURON, which), format)).text
    row = next(csv.DictReader(io.StringIO(client.get(format_address(asked(NEURON, which), "csv")).text)))
    assert row[{"words": "only"}.get(which, which)] == KEPT[which].partition("=")[2]


def test_a_page_says_how_many_remain(client: TestClient) -> None:
    assert "<b>0 of 25</b> in the shortest list: the stored lists have 30 entries" in _plain(
        client.get(asked(NEURON, "both")).text
    )
    assert "in the shortest list" not in client.get(NEURON).text
    assert "in the shortest list" not in client.get(f"{NEURON}?preset=words&k=1").text


def _plain(page: str) -> str:
    return re.sub(r"\s+", " ", page)


def test_etags_know_the_file(data: Path, client: TestClient, tmp_path: Path) -> None:
    (tmp_path / GPT2).symlink_to(data / GPT2)
    shutil.copytree(data / "vocabularies", tmp_path / "vocabularies")
    with visit(tmp_path) as visitor:
        address = f"{NEURON}.json?vocabulary=pets"
        first = visitor.get(address)
        assert visitor.get(address, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
        bare = visitor.get(NEURON).headers["etag"]
        (tmp_path / "vocabularies" / "pets.txt").write_text("e\n")
        second = visitor.get(address, headers={"If-None-Match": first.headers["etag"]})
        assert second.status_code == 200
        assert second.json() != first.json()
        assert visitor.get(NEURON).headers["etag"] == bare
        (tmp_path / "vocabularies" / "more.txt").write_text("e\n")
        assert visitor.get(NEURON).headers["etag"] != bare  # the page offers one more
    assert "vocabulary" not in client.get(NEURON).headers["etag"]


def test_without_vocabularies_nothing_is_offered(site_data: Path) -> None:
    with visit(site_data) as visitor:
        assert 'aria-label="Vocabulary"' not in visitor.get(NEURON).text
        unknown = visitor.get(f"{NEURON}?vocabulary=nope")
        assert unknown.status_code == 404
        assert "lexiscope vocabulary add" in unknown.text


@pytest.mark.parametrize("name", ["nope", "../../etc/passwd", "%2e%2e%2fx", "<script>", "A", "x" * 200])
def test_an_unknown_name_names_what_there_is(client: TestClient, name: str) -> None:
    answer = client.get(f"{NEURON}.json?vocabulary={name}")
    assert answer.status_code == 404
    assert "there are pets" in answer.json()["error"]["detail"]
    assert "<script>" not in client.get(f"{NEURON}?vocabulary={name}").text


@pytest.mark.parametrize(("path", "status"), [
    (f"{NEURON}.json?preset=distinct", 200), (f"{NEURON}.json?preset=", 200), (f"{NEURON}.json?preset=nope", 422),
    (f"/{GPT2}/head/1/2/vo.json?preset=distinct", 200), (f"{NEURON}.json?vocabulary=", 200),
    (f"{NEURON}.json?vocabulary={'x' * 300}", 422), (f"/{LLAMA}/ff/1/3.json?vocabulary=pets&hubs=hide", 200),
])  # fmt: skip
def test_other_values(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    if status == 200 and "pets" not in path:
        assert "only" not in answer.json()


def test_a_full_list_and_a_run_come_from_the_worker(live: TestClient, kept: dict[str, set[int]]) -> None:
    """Exactly, and as long as asked for."""
    answer = live.get(f"{NEURON}.json?preset=words&reading=full&k=30").json()
    full = answer["reading"]["vectors"]["value"]
    assert [token["id"] for token in answer["value"]["top"]] == [token["id"] for token in full["top"]][
        : len(answer["value"]["top"])
    ]
    assert len(full["top"]) == min(30, len(kept["words"])) > len(answer["value"]["top"])
    assert {token["id"] for token in full["top"]} <= kept["words"]
    page = live.get(f"{NEURON}?preset=words").text
    assert f"{NEURON}?preset=words&reading=full#readings" in {*parsed(page).links()}
    run = live.get(f"/{GPT2}/prompt.json?text=the+dog&panel=patterns,evolution,neurons&preset=words&k=6").json()
    lists = [head[name] for head in run["patterns"] for name in ("pattern", "found_by", "message")]
    lists += [cell for row in run["evolution"][:-1] for cell in row["cells"]]
    assert all(len(tokens) == 6 and {token["id"] for token in tokens} <= kept["words"] for tokens in lists)
    assert len(run["prediction"]) == 6
    shown = live.get(f"/{GPT2}/prompt?text=the+dog&panel=evolution&preset=words")
    assert 'aria-label="Tokens"' in shown.text


def test_a_vocabulary_without_tokens(data: Path, workers: str, tmp_path: Path) -> None:
    """A vocabulary of numbers keeps no token with `preset=words`: it empties lists and breaks no page."""
    (tmp_path / GPT2).symlink_to(data / GPT2)
    (tmp_path / "vocabularies").mkdir()
    (tmp_path / "vocabularies" / "none.txt").touch()
    live_pages = ("prompt?text=the+dog&panel=patterns,evolution,neurons", "seeds?words=dog&rank=fit&heads=1",
                  "heads?words=dog", "transition?pairs=dog%3Elion", "ff/1/3?reading=full",
                  "head/1/2/vo?reading=full")  # fmt: skip
    with visit(tmp_path, worker_url=workers) as visitor:
        for path in (*live_pages, "vectors?kind=ff_key", "sample?n=5", "layer/1?sort=norm"):
            assert visitor.get(f"/{GPT2}/{path}&vocabulary=none").status_code == 200, path


@pytest.mark.parametrize("preset", ["distinct", "words"])
def test_pairs_say_how_many_of_the_best_a_preset_leaves_out(client: TestClient, preset: str) -> None:
    """None of these is among the pairs that the page lists."""
    path = f"/{GPT2}/head/1/2/vo"
    best, shown = (client.get(f"{path}.json?preset={which}&k=50").json()["top"] for which in ("all", preset))
    best, kept = ([(pair["from"]["id"], pair["to"]["id"]) for pair in pairs] for pairs in (best, shown))
    left_out = {*best[: len(kept)]} - {*kept}
    page = re.sub(r"<[^>]+>|\s+", " ", client.get(f"{path}?preset={preset}&k=50").text)
    assert re.search(rf"{preset} +leaves out {len(left_out)} of the {len(kept)} best pairs", page)
