"""What a person types or pastes to get to a parameter."""

from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from lexiscope.app.pages.find import page_of_text, pasted_model, possible_pages
from lexiscope.app.pages.page import find_pages
from lexiscope.precompute.index.parameter_names import example_names, out_of_range
from lexiscope.precompute.shape import Shape
from tests.support.synthetic import D_VOCAB, GPT2, LLAMA

find_pages()  # their patterns are what addresses are read with

# GPT2 of the tests: 4 layers, 2 heads of 4, 6 neurons.


@pytest.mark.parametrize(("text", "path"), [
    ("L3", "/tiny/layer/3"), ("layer 3", "/tiny/layer/3"), ("Layer3", "/tiny/layer/3"), ("L4", None),
    ("layers 3", None), ("L3N5", "/tiny/ff/3/5"), (" l3n5 ", "/tiny/ff/3/5"), ("L3N6", None), ("L4N0", None),
    ("3.5", "/tiny/ff/3/5"), ("3.1", "/tiny/head/3/1"), ("3.6", None), ("L3H1", "/tiny/head/3/1"), ("L3H2", None),
    ("L3H1.3", "/tiny/head/3/1/sub/3"), ("3.1.3", "/tiny/head/3/1/sub/3"), ("3.1.4", None), ("3.2.0", None),
    ("L3H1.svd3", "/tiny/head/3/1/svd/3"), ("3.1.svd0", "/tiny/head/3/1/svd/0"), ("l3h1 SVD 2", "/tiny/head/3/1/svd/2"),
    ("3/1/svd/2", "/tiny/head/3/1/svd/2"), ("L3H1.svd4", None), ("L3H2.svd0", None), ("L3.svd0", None),
    ("٣.١", None), ("3", None), ("3.1.3.1", None), ("9999999999.1", None), ("/tiny", "/tiny"), ("/tiny/", "/tiny"),
    ("tiny", None), ("/other/ff/3/5", None), ("/tiny/layer/2", "/tiny/layer/2"),
    ("/tiny/layer/2?sort=-norm&page=3&x=1", "/tiny/layer/2?sort=-norm&page=3"),
    ("/tiny/layer/2?sort=neuron&page=1&lens=dot", "/tiny/layer/2"),
    ("/tiny/ff/3/5", "/tiny/ff/3/5"), ("tiny/ff/3/5", "/tiny/ff/3/5"), ("/tiny/ff/3/5.json?k=7", "/tiny/ff/3/5?k=7"),
    ("/tiny/token/5?token=7&name=x&kind=ff_key", "/tiny/token/5?kind=ff_key"),
    ("/tiny/layer/2?token=7&layer=1&k=3", "/tiny/layer/2?token=7"),
    ("/tiny/head/1/1/vo?matrix=qk&head=0&group=from", "/tiny/head/1/1/vo?group=from"),
    ("/tiny?name=x&q=7&lens=cosine", "/tiny?lens=cosine"),
    ("/tiny/ff/3/6", None), ("/tiny/ff/3/x", None), ("/tiny/ff/3/-1", None), ("/tiny/head/1/1", "/tiny/head/1/1"),
    ("/tiny/head/1/1/vo?preset=words", "/tiny/head/1/1/vo?preset=words"),
    ("/tiny/head/1/1/ov", None),
    ("/tiny/head/1/1/sub/2.csv", "/tiny/head/1/1/sub/2"),
    ("/tiny/head/1/1/sub/4", None),
    ("/tiny/head/1/1/svd/2.json?k=7&preset=all", "/tiny/head/1/1/svd/2?k=7"),
    ("/tiny/head/1/1/svd/4", None),
    (f"/tiny/token/{D_VOCAB - 1}", f"/tiny/token/{D_VOCAB - 1}"),
    (f"/tiny/token/{D_VOCAB}", None),
    ("/tiny/search?q=a+b%26", "/tiny/search?q=a+b%26"), ("/tiny/lab.svg?figure=inverse", "/tiny/lab?figure=inverse"),
    ("/tiny/lab/x", None), ("/tiny/labels.csv?page=2", "/tiny/labels?page=2"), ("/tiny/labels/x", None),
    ("tiny/vo/1/1", "/tiny/head/1/1/vo"), ("tiny/ff_value/1/5", "/tiny/ff/1/5"),
    ("tiny/w_q/1/1/3", "/tiny/head/1/1/sub/3"), ("tiny/svd/1/1/3", "/tiny/head/1/1/svd/3"),
    ("tiny/vo/99/1", None), ("tiny/vo/01/2", None),
    ("/tiny/search?q=7", "/tiny/search?q=7"),
    ("http://127.0.0.1:8000/tiny/ff/3/5?lens=cosine#key", "/tiny/ff/3/5?lens=cosine"),
    ("https://example.org/tiny/head/1/0/qk.tex", "/tiny/head/1/0/qk"),
    ("//evil.example/tiny/ff/3/5", "/tiny/ff/3/5"), ("http://[/tiny/ff/3/5", None), ("/tiny/../tiny/ff/3/5", None),
    ("/tiny//evil.example", None), ("/%74iny/ff/3/5", "/tiny/ff/3/5"), ("/", None), ("", None), ("dog", None),
])  # fmt: skip
def test_what_people_type(text: str, path: str | None) -> None:
    assert page_of_text("tiny", GPT2, text) == path


@pytest.mark.parametrize(
    ("text", "path"), [("L2H2–3.1", "/small/head/2/2/sub/1"), ("L2H0-1.2", "/small/head/2/0/sub/2")]
)
def test_the_name_of_what_heads_share(text: str, path: str) -> None:
    assert page_of_text("small", LLAMA, text) == path


@pytest.mark.parametrize(("text", "titles"), [
    ("3.1", ["Head 1 of layer 3", "Neuron 1 of layer 3"]),
    (" 3.5 ", ["Neuron 5 of layer 3"]), ("3.1.3", ["Subhead 3 of head 1 of layer 3"]),
    ("3.1.svd3", ["Direction 3 of head 1 of layer 3"]),
    ("L3H1", ["Head 1 of layer 3"]), ("layer 3", ["Layer 3"]),
    ("/tiny/head/3/1/vo?preset=words", ["VO of head 1 of layer 3"]),
    ("/tiny/token/5", ["Token #5"]), ("/tiny/search?q=dog", ["Search"]), ("/tiny/lab", ["Lab"]),
    ("/tiny/labels", ["Labels"]), ("tiny/qk/1/1", ["QK of head 1 of layer 1"]),
    ("/tiny", ["Layers and heads"]), ("9.1", []),
    ("dog", []),
])  # fmt: skip
def test_pages_that_a_text_may_mean(text: str, titles: list[str]) -> None:
    made = possible_pages("tiny", GPT2, text)
    assert [title for _, title in made] == titles
    assert [path for path, _ in made[:1]] == ([page_of_text("tiny", GPT2, text)] if titles else [])


@pytest.mark.parametrize(("text", "model"), [
    ("http://127.0.0.1:8000/gpt2/ff/3/5?lens=cosine", "gpt2"), ("https://example.org/gpt2", "gpt2"),
    ("/gpt2/search?q=dog", "gpt2"), ("gpt2/layer/3.json", "gpt2"), ("him/head", None), ("and/or", None),
    ("/gpt2", None), ("https://example.org/", None), ("http://[/gpt2/ff/3/5", None), ("/<b>/ff/3/5", None),
    ("dog", None), ("", None),
    ("/other/labels", "other"), ("other/vo/1/2", "other"),
])  # fmt: skip
def test_the_model_of_a_pasted_address(text: str, model: str | None) -> None:
    assert pasted_model(text) == model


@pytest.mark.parametrize("text", ["L99", "L99N0", "L0N999", "L0H99", "0.1.99", " 99.1 ", "L0H1.svd99"])
def test_what_is_out_of_range(text: str) -> None:
    said = out_of_range("tiny", GPT2, text)
    assert said == "tiny has layers 0 to 3, neurons 0 to 5, heads 0 to 1, subheads 0 to 3, directions 0 to 3"


@pytest.mark.parametrize("text", ["L0N0", "0.1", "dog", "", "/tiny/ff/99/0"])
def test_what_is_not(text: str) -> None:
    assert out_of_range("tiny", GPT2, text) is None


@pytest.mark.parametrize("shape", [GPT2, LLAMA])
def test_examples_exist(shape: Shape) -> None:
    assert all(page_of_text("tiny", shape, name) for name in example_names(shape).values())


def test_a_pasted_address_keeps_all_that_its_page_takes(client: TestClient) -> None:
    said = {
        "lens": "cosine", "preset": "words", "k": "7", "page": "2", "sort": "norm", "token": "300", "kind": "vo",
        "group": "from", "reading": "first", "side": "source", "q": "dog", "hubs": "hide", "vocabulary": "pets",
        "map": "coherence", "text": "a dog", "layer": "1", "figure": "inverse", "as": "gpt2-medium",
        "list": "vo/21/7", "above": "chance", "class": "weakening", "min_similarity": "0.5", "layers": "1", "n": "3",
        "max_similarity": "0.6", "seed": "9", "good": "1,2", "build": "0123456789abcdef", "beforehand": "live",
        "pin": "L1N2", "a": "L1N2", "b": "L1N3",
    }  # fmt: skip
    numbers = {
        "model": "tiny",
        "layer": 1,
        "neuron": 5,
        "head": 1,
        "subhead": 0,
        "direction": 2,
        "token": 3,
        "matrix": "vo",
        "other": "b",
        "index_of_kind": 1,
        "kind": "classifier",
    }
    for path, item in client.get("/openapi.json").json()["paths"].items():
        if "pages" in item["get"]["tags"] and path != "/" and not path.endswith("{format}"):
            asked = [p for p in item["get"]["parameters"] if p["in"] == "query"]
            of_page = [p["name"] for p in asked if not p["description"].startswith("In `.")]  # and not of its data
            taken = {name: said[name] for name in of_page}
            address = page_of_text("tiny", GPT2, f"http://elsewhere{path.format(**numbers)}?{urlencode(taken)}&utm=1")
            assert address, path
            assert dict(parse_qsl(urlsplit(address).query)) == taken, path
