"""The home page's data."""

from pathlib import Path

from starlette.testclient import TestClient

from lexiscope.app import addresses
from tests.support.pages import parsed
from tests.support.site import GPT2 as TINY
from tests.support.site import visit
from tests.support.synthetic import GPT2, make_manifest, write_index


def test_models_are_also_called_by_the_name_others_know(tmp_path: Path) -> None:
    hub = make_manifest(GPT2, "tiny").with_changes(source="owner/Tiny", revision="607a30d783df")
    local = make_manifest(GPT2, "mine").with_changes(source="/somewhere/mine", revision="")
    write_index(tmp_path / "tiny", hub, (3,))
    write_index(tmp_path / "mine", local, (3,))
    with visit(tmp_path) as visitor:
        assert [(card["model"], card["name"]) for card in visitor.get("/index.json").json()["models"]] == [
            ("mine", ""), ("tiny", "owner/Tiny"),
        ]  # fmt: skip
        names = [small.text.strip() for small in parsed(visitor.get("/").text).all("small")]
        assert names == ["owner/Tiny"]
        assert "<small>owner/Tiny</small>" in visitor.get("/tiny").text
        assert "<h1>mine</h1>" in visitor.get("/mine").text


def test_where_to_start(client: TestClient) -> None:
    """In the first model, by what its own page calls worth reading."""
    start = client.get("/index.json").json()["start"]
    view = client.get(f"/{TINY}.json?lens=cosine").json()
    assert (start["model"], start["lens"]) == (TINY, "cosine")  # the lens that reads best
    assert start["neuron"] == (view["agreeing"][0] if view["agreeing"] else None)
    assert start["head"] in (view["heads"] or [None])
    shown = parsed(client.get("/").text).links()
    assert addresses.link("model", TINY, lens="cosine") in shown
    sentence = addresses.link("prompt", TINY, text="The capital of France is", lens="cosine")
    assert sentence in shown
    assert all(client.get(link).status_code == 200 for link in shown if link.startswith("/") and link != sentence)


def test_no_sentence_to_run_where_no_worker_is(site_data: Path) -> None:
    with visit(site_data, worker="off") as visitor:
        links = parsed(visitor.get("/").text).links()
    assert addresses.link("model", TINY, lens="cosine") in links
    assert not [link for link in links if "/prompt" in link]
