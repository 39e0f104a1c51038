"""An index that was built without some kinds, a lens or pairs: pages say so, and offer nothing that is not there."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from lexiscope.app.urls import FORMATS, format_address
from lexiscope.precompute.shape import LENSES
from tests.support.site import AWAY, copied, visit
from tests.support.site import LLAMA as LLAMA_MODEL
from tests.support.synthetic import LLAMA, WORDS, make_manifest, raw_tokens, write_index

DOG = raw_tokens().index(WORDS[0])
ADDRESSES = {
    "neuron": "/{m}/ff/1/2", "layer": "/{m}/layer/1", "similar": "/{m}/layer/1?sort=similarity",
    "norms": "/{m}/layer/1?sort=-norm", "layer_token": f"/{{m}}/layer/1?token={DOG}", "head": "/{m}/head/1/2",
    "vo": "/{m}/head/1/2/vo", "qk": "/{m}/head/1/2/qk", "subhead": "/{m}/head/1/2/sub/1",
    "direction": "/{m}/head/1/2/svd/1", "directions_of_token": f"/{{m}}/token/{DOG}?kind=qk_key",
    "token": f"/{{m}}/token/{DOG}",
    "keys_of_token": f"/{{m}}/token/{DOG}?kind=ff_key", "pairs_of_token": f"/{{m}}/token/{DOG}?kind=vo",
    "search": "/{m}/search?q=dog", "search_values": "/{m}/search?q=dog&kind=ff_value",
    "search_pairs": "/{m}/search?q=dog&kind=qk", "model": "/{m}", "dot": "/{m}/token/40?lens=dot",
    "cosine": "/{m}/token/40?lens=cosine",
}  # fmt: skip
EVERYWHERE = {"token", "search", "model"}
# What is stored, and which addresses there are besides.
STORED: dict[str, tuple[dict[str, Any], set[str]]] = {
    "whole": ({}, set(ADDRESSES)),
    "values": (
        {"kinds": ("ff_value",), "pairs": 0},
        {"neuron", "layer", "norms", "layer_token", "search_values", "dot", "cosine"},
    ),
    "keys": (
        {"kinds": ("ff_key",), "lenses": ("dot",), "pairs": 0},
        {"neuron", "layer", "layer_token", "keys_of_token", "dot"},
    ),
    "ups": ({"kinds": ("ff_up",), "pairs": 0}, {"neuron", "dot", "cosine"}),
    "subheads": ({"kinds": ("w_q", "w_o"), "lenses": ("cosine",), "pairs": 0}, {"head", "subhead", "cosine"}),
    "pairs": (
        {"kinds": ("w_k",), "lenses": ("cosine",)},
        {"head", "subhead", "vo", "qk", "pairs_of_token", "search_pairs", "cosine"},
    ),
    "ins": ({"kinds": ("vo_in",), "lenses": ("dot",), "pairs": 0}, {"head", "direction", "dot"}),
    "dot": ({"lenses": ("dot",)}, set(ADDRESSES) - {"cosine"}),
    "no-pairs": ({"pairs": 0}, set(ADDRESSES) - {"vo", "qk", "pairs_of_token", "search_pairs"}),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    for name, (parts, _) in STORED.items():
        write_index(folder / name, make_manifest(LLAMA, name, **parts), layers=(1, 2))
    return folder


@pytest.fixture(scope="module")
def visitor(data: Path) -> Iterator[TestClient]:
    with visit(data, worker="off") as client:
        yield client


@pytest.mark.parametrize("model", STORED)
@pytest.mark.parametrize("name", ADDRESSES)
def test_what_is_not_stored_is_not_found_and_says_why(visitor: TestClient, model: str, name: str) -> None:
    there = name in STORED[model][1] | EVERYWHERE
    for format in FORMATS if model == "values" else ("html", "json"):
        answer = visitor.get(format_address(ADDRESSES[name].format(m=model), format))
        assert answer.status_code == (200 if there else 404), answer.text
        if not there:
            said = unescape(re.sub(r"</?code>", "`", answer.text))
            assert f"of {model}: not stored in this index, which was built with --" in said
            assert re.search(rf"`lexiscope precompute someone/{model} --(kinds|lenses|pairs) \S+.* --force`", said)


@pytest.mark.parametrize("model", ["values", "subheads", "pairs", "ins"])
def test_every_link_leads_somewhere(visitor: TestClient, model: str) -> None:
    """From the model's page on: what is offered is there."""
    seen: dict[str, int] = {}
    waiting = ["/", f"/{model}", f"/{model}?lens={STORED[model][0].get('lenses', LENSES)[0]}", f"/{model}/token/{DOG}"]
    while waiting and len(seen) < 60:
        address = waiting.pop(0)
        if address in seen:
            continue
        answer = visitor.get(address)
        seen[address] = answer.status_code
        links = [unescape(link).partition("#")[0] for link in re.findall(r'(?:href|action)="([^"]+)"', answer.text)]
        waiting += [link for link in links if re.match(rf"/{model}(?![\w-])", link) and "layer/0" not in link]
    assert {address: status for address, status in seen.items() if status not in (200, 303)} == {}
    assert len(seen) > 10


def test_a_page_without_a_lens_has_the_one_there_is(visitor: TestClient) -> None:
    assert visitor.get("/pairs.json").json()["lens"] == "cosine"
    assert visitor.get("/whole.json").json()["lens"] == "dot"
    page = visitor.get("/subheads/head/1/2/sub/1")
    assert '<link rel="canonical" href="http://testserver/subheads/head/1/2/sub/1?lens=cosine">' in page.text
    assert 'aria-label="Lens"' in page.text
    assert "lens=dot" not in page.text


def test_json_keeps_its_fields(visitor: TestClient) -> None:
    whole, values = (visitor.get(f"/{model}/ff/1/2.json").json() for model in ("whole", "values"))
    assert whole.keys() - values.keys() == {"up"}
    assert (values["key"], values["similarity"]) == (None, None)
    assert len(values["value"]["top"]) == len(whole["value"]["top"])
    head = visitor.get("/subheads/head/1/2.json").json()
    assert (head["vo"], head["qk"], head["subheads"][0]["k"]) == (None, None, None)
    assert len(head["subheads"][0]["q"]) == 4
    assert visitor.get("/no-pairs/head/1/2/sub/1.json").json().keys() == {
        "model", "build", "layer", "head", "subhead", "lens", "q", "k", "v", "o", "similarity", "matches", "note",
    }  # fmt: skip
    token = visitor.get(f"/values/token/{DOG}.json").json()
    assert (token["pairs"], token["pairs_total"], token["kind"]) == (None, None, None)
    assert token["not_stored"] == [
        "ff_key", "ff_up", "w_q", "w_k", "w_v", "w_o", "vo_in", "vo_out", "qk_query", "qk_key", "vo", "qk",
    ]  # fmt: skip
    assert {role["kind"] for role in token["roles"]} == {"ff_value"}
    search = visitor.get("/no-pairs/search.json?q=dog").json()
    assert (search["pairs"], search["pairs_total"], search["not_stored"]) == (None, None, ["vo", "qk"])
    row = visitor.get("/keys/layer/1.json").json()["rows"][0]
    assert (row["value"], row["norm"], row["coherence"], row["similarity"]) == (None, None, None, None)
    model = visitor.get("/keys.json").json()
    assert (model["neurons"], model["agreeing"], model["heads"]) == (None, None, None)
    assert (model["provenance"]["kinds"], model["provenance"]["lenses"], model["provenance"]["pairs"]) == (
        ["ff_key"], ["dot"], 0,
    )  # fmt: skip
    whole_model = visitor.get("/whole.json").json()
    assert whole_model["provenance"]["kinds"] == list(LLAMA.kinds)
    assert whole_model["heads"] is not None


@pytest.mark.parametrize(("address", "said"), [
    ("/values/ff/1/2", "ff_key, ff_up of values: not stored in this index, which was built with --kinds ff_value --"),
    ("/keys/layer/1", "ff_value of keys: not stored"),
    ("/no-pairs/head/1/2", "the pairs of heads of no-pairs: not stored"),
    ("/subheads/head/1/2/sub/0", "w_k, w_v of subheads: not stored"),
    ("/subheads/head/1/2", "vo_in, vo_out, qk_query, qk_key of subheads: not stored"),
    ("/ins/head/1/2/svd/0", "vo_out, qk_query, qk_key of ins: not stored"),
    ("/values", "the pairs of heads of values: not stored"),
    ("/dot", "was built with --lenses dot"),
    (f"/values/token/{DOG}", "w_o, vo_in, vo_out, qk_query, qk_key, the pairs of heads of values: not stored"),
    ("/no-pairs/search?q=dog", "the pairs of heads of no-pairs: not stored"),
])  # fmt: skip
def test_pages_say_what_is_not_there(visitor: TestClient, address: str, said: str) -> None:
    text = unescape(re.sub(r"<[^>]+>", "", visitor.get(address).text))
    assert said in text


def test_an_index_without_directions_serves_as_before(tmp_path: Path) -> None:
    write_index(tmp_path / "old", make_manifest(LLAMA, "old", kinds=None), layers=(1,))
    with visit(tmp_path, worker="off") as client:
        assert not [link for link in re.findall(r'href="([^"]+)"', client.get("/docs").text) if "/svd/" in link]
        head = client.get("/old/head/1/2")
        assert (head.status_code, client.get("/old/head/1/2.json").json()["directions"]) == (200, None)
        assert "/svd/" not in head.text
        for page in (head, client.get("/old/head/1/2/svd/0"), client.get(f"/old/token/{DOG}")):
            assert "<code>lexiscope precompute someone/old --force</code>" in page.text


@pytest.mark.slow
@pytest.mark.parametrize(("array", "value", "stands"), [
    ("by_distance", np.inf, False), ("by_distance", -np.inf, False), ("by_distance", 3e38, False), ("shares", 2, False),
    ("shares", -1, False), ("shares", np.nan, True), ("by_distance", np.nan, True),
])  # fmt: skip
def test_a_head_without_shares_by_position(
    site_data: Path, tmp_path: Path, array: str, value: float, stands: bool
) -> None:
    """Numbers that are no shares are as if they were not stored: neither chart nor words are made of them."""
    data = copied(site_data, tmp_path)
    path = data / LLAMA_MODEL / "heads-1.v1.safetensors"
    content = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    start, end = json.loads(content[8:begin])[f"positions.{array}"]["data_offsets"]
    content[begin + start : begin + end] = np.full((end - start) // 4, value, "<f4").tobytes()
    path.write_bytes(content)
    with visit(data, worker_url=AWAY) as visitor:
        assert visitor.get(f"/{LLAMA_MODEL}/head/1/2").status_code == 200
        assert bool(visitor.get(f"/{LLAMA_MODEL}/head/1/2.json").json()["positions"]) == stands
