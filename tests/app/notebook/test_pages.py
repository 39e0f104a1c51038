"""What a notebook is given is what the site's pages have: from an index in this process, and from a server."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

import lexiscope
from lexiscope.app.lists.find_tokens import token_named
from lexiscope.app.notebook.pages import Page
from lexiscope.precompute.index.index import Index
from tests.support.site import DIFFERENCE, GPT2, LLAMA, SCRIPT
from tests.support.synthetic import add_layer, make_manifest, write_index

if TYPE_CHECKING:
    from starlette.testclient import TestClient

Ask = Callable[[lexiscope.Model], Page[Any]]

# By the address of a page: what a notebook asks for.
ASKS: dict[str, Ask] = {
    f"/{GPT2}/ff/1/3.json": lambda m: m.neuron(1, 3),
    f"/{LLAMA}/ff/1/3.json?lens=cosine&k=8&hubs=hide": lambda m: m.neuron(1, 3, lens="cosine", k=8, hide_hubs=True),
    f"/{DIFFERENCE}/ff/1/0.json": lambda m: m.neuron(1, 0),
    f"/{LLAMA}/head/1/2.json": lambda m: m.head(1, 2),
    f"/{LLAMA}/head/1/2.json?lens=cosine&preset=words": lambda m: m.head(1, 2, lens="cosine", preset="words"),
    f"/{DIFFERENCE}/head/1/3.json": lambda m: m.head(1, 3),
    f"/{LLAMA}/head/1/2/vo.json?lens=cosine&preset=words&k=10": lambda m: m.head(1, 2, lens="cosine").vo(
        preset="words", k=10
    ),
    f"/{DIFFERENCE}/head/1/2/qk.json?preset=distinct": lambda m: m.head(1, 2).qk(preset="distinct"),
    f"/{LLAMA}/head/1/2/qk.json?preset=words&k=10": lambda m: m.head(1, 2, preset="words").qk(k=10),  # the head's
    f"/{LLAMA}/head/1/2/vo.json?k=1": lambda m: m.head(1, 2).vo(k=1),  # a frame of two rows
    f"/{LLAMA}/head/1/2/sub/0.json": lambda m: m.subhead(1, 2, 0),
    f"/{GPT2}/head/1/0/sub/1.json?lens=cosine": lambda m: m.head(1, 0, lens="cosine").subhead(1),
    f"/{LLAMA}/head/1/2/svd/0.json": lambda m: m.direction(1, 2, 0),
    f"/{DIFFERENCE}/head/1/3/svd/0.json?k=5": lambda m: m.head(1, 3).direction(0, k=5),
    f"/{LLAMA}/token/{SCRIPT}.json": lambda m: m.token(SCRIPT).places(),
    f"/{LLAMA}/token/{SCRIPT}.json?kind=ff_key&page=1": lambda m: m.token(SCRIPT).places(kind="ff_key"),
    f"/{LLAMA}/search.json?q=e": lambda m: m.search("e"),
    f"/{LLAMA}/search.json?q=greyhounds": lambda m: m.search("greyhounds"),
    f"/{GPT2}/search.json?q=dog+lion&lens=cosine": lambda m: m.search("dog", "lion", lens="cosine"),
}


def model_of(address: str) -> str:
    return address.split("/")[1]


@pytest.mark.parametrize("address", ASKS)
def test_numbers_are_those_of_the_page(site_data: Path, client: "TestClient", address: str) -> None:
    model = lexiscope.open(model_of(address), data=site_data)
    assert ASKS[address](model).json() == client.get(address).json()


@pytest.mark.parametrize("address", ASKS)
def test_a_server_gives_the_same(site_data: Path, site_url: str, address: str) -> None:
    here = ASKS[address](lexiscope.open(model_of(address), data=site_data))
    there = ASKS[address](lexiscope.open(f"{site_url}/{model_of(address)}"))
    assert there.json() == here.json()
    assert there._notes() == here._notes()
    assert [(t.title, t.audience) for t in there._tables()] == [(t.title, t.audience) for t in here._tables()]
    pd.testing.assert_frame_equal(there.to_pandas(), here.to_pandas())


@pytest.mark.parametrize("address", ASKS)
def test_a_frame_has_what_the_csv_has(site_data: Path, client: "TestClient", address: str) -> None:
    page = ASKS[address](lexiscope.open(model_of(address), data=site_data))
    frame, path = page.to_pandas(), address.replace(".json", ".csv")
    if "token/" in address or "search" in address:  # a CSV has all pages
        path = ""
    header = client.get(path).text.partition("\r\n")[0].split(",") if path else frame.columns.tolist()
    assert frame.columns.tolist() == header
    polars = page.to_polars()
    assert polars.columns == frame.columns.tolist()
    for name in frame:
        assert polars[name].to_list() == [None if pd.isna(value) else value for value in frame[name]], name


@pytest.mark.parametrize("name", [GPT2, LLAMA])
def test_tokens_by_their_exact_text(site_data: Path, site_url: str, name: str) -> None:
    """Of several with the same text, the first; a server says of which it cannot be asked."""
    texts = Index.open(site_data / name).tokens.texts
    here, there = lexiscope.open(name, data=site_data), lexiscope.open(f"{site_url}/{name}")
    unsaid = {}
    signs = {token for token, text in enumerate(texts) if text and not text.strip().isalnum()}
    for token in sorted(signs | {*range(0, len(texts), 40)})[::3]:
        expected = texts.index(texts[token]), texts[token]
        if texts[token]:
            found = here.token(texts[token], exact=True)
            assert (found.id, found.text) == expected
            try:
                found = there.token(texts[token], exact=True)
            except lexiscope.NotFound as error:
                unsaid[texts[token].strip()] = str(error)
            assert (found.id, found.text) == expected
    assert unsaid.keys() <= {"\0", '","', '":"'}
    assert all("Give the token's id" in said for said in unsaid.values())


@pytest.mark.parametrize("which", [
    " dog", "dog", "Dog ", "DOGS", "<script>", SCRIPT, f"#{SCRIPT}", f"{SCRIPT}",
    '"', ">", "->", ",", "#", " ", "<", "=>",
])  # fmt: skip
def test_tokens_as_people_type_them(llama: lexiscope.Model, site_data: Path, site_url: str, which: str | int) -> None:
    index = Index.open(site_data / LLAMA)
    try:
        expected = token_named(index, str(which))  # as on the site
    except lexiscope.NotFound:
        expected = -1
    for model in (llama, lexiscope.open(f"{site_url}/{LLAMA}")):
        if expected < 0:
            with pytest.raises(lexiscope.NotFound):
                model.token(which)
        else:
            assert (model.token(which).id, model.token(which).text) == (expected, index.tokens.text(expected))


def test_a_bare_word_is_the_one_after_a_space(tmp_path: Path) -> None:
    """As on the site; the very text is told by a space, or by exact=True."""
    write_index(tmp_path / "tiny", make_manifest())
    model, texts = lexiscope.open("tiny", data=tmp_path), Index.open(tmp_path / "tiny").tokens.texts
    word = next(text for text in texts if text.isalpha() and f" {text}" in texts)
    assert model.token(word).text == model.token(f" {word}").text == f" {word}"
    assert model.token(word, exact=True).text == word


def test_a_name_a_path_and_an_address(site_data: Path, site_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site_data.parent)
    asked = (GPT2, site_data / GPT2, f"{site_url}/{GPT2}", f"{site_url}/{GPT2}/", f"data/{GPT2}")
    views = [lexiscope.open(where).neuron(1, 3).json() for where in asked]
    assert all(view == views[0] for view in views)
    assert lexiscope.models().names == lexiscope.models(site_url).names == lexiscope.models(site_data).names
    assert [*lexiscope.models(site_url)] == [*lexiscope.models(site_data)]


def test_a_path_is_that_path(site_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the data folder has an index of the same name: other/tiny-gpt2 looks like a Hub id."""
    write_index(tmp_path / "other" / GPT2, make_manifest(model=GPT2))
    monkeypatch.chdir(tmp_path)
    theirs, ours = lexiscope.open(f"other/{GPT2}", data=site_data), lexiscope.open(f"hub/{GPT2}", data=site_data)
    assert theirs.source.where == str(tmp_path / "other" / GPT2)
    assert ours.source.where == str(site_data / GPT2)
    assert theirs.neuron(1, 3).view.build != ours.neuron(1, 3).view.build


@pytest.mark.parametrize(("where", "said"), [
    ("127.0.0.1:8000/gpt2", "write http://127.0.0.1:8000/gpt2"),
    ("localhost:8000", "write http://localhost:8000"),
    ("http://[::1/gpt2", "such as http://127.0.0.1:8000/gpt2"),
    (None, "None: give a model's name"),
    (7, "7: give a model's name"),
    ("", "give a model's name"),
])  # fmt: skip
def test_what_is_no_place_of_a_model(where: Any, said: str) -> None:
    with pytest.raises(lexiscope.BadRequest, match=said):
        lexiscope.open(where)


def test_the_data_folder_of_the_environment(site_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEXISCOPE_DATA", str(site_data))
    assert lexiscope.open(LLAMA).name == LLAMA
    assert LLAMA in lexiscope.models().names


@pytest.mark.parametrize(("ask", "error", "said"), [
    (lambda m: m.neuron(1, 999_999), lexiscope.NotFound, "neuron 999999"),
    (lambda m: m.neuron(0, 1), lexiscope.NotBuilt, "layer 0 of tiny-gpt2 is not built yet"),
    (lambda m: m.neuron(1, 1, k=10_000), lexiscope.BadRequest, "k = 10000"),
    (lambda m: m.head(1, 77), lexiscope.NotFound, "head 77"),
    (lambda m: m.token("zxqj"), lexiscope.NotFound, "'zxqj' is none of tiny-gpt2"),
    (lambda m: m.token(" zxqj"), lexiscope.NotFound, "no token of tiny-gpt2 is exactly ' zxqj'"),
    (lambda m: m.token(""), lexiscope.BadRequest, "token = ''"),
    (lambda m: m.token(10**8), lexiscope.NotFound, "token 100000000"),
    (lambda m: m.search("x" * 300), lexiscope.BadRequest, "a search of 300 characters"),
    (lambda m: m.search("dog", kind="w_x"), lexiscope.BadRequest, "kind = 'w_x'"),
    (lambda m: m.search(), lexiscope.BadRequest, "there are no words"),
    (lambda m: m.search("dog", page=0), lexiscope.BadRequest, "page = 0"),
    (lambda m: m.search("\ud800"), lexiscope.BadRequest, "not valid Unicode"),
    (lambda m: m.seeds("dog", kind="w_x"), lexiscope.BadRequest, "kind = 'w_x'"),
    (lambda m: m.seeds("dog", kind=[]), lexiscope.BadRequest, "kind is empty: there are ff_key"),
    (lambda m: m.seeds("dog", k=0), lexiscope.BadRequest, "k = 0"),
    (lambda m: m.seeds(" , "), lexiscope.BadRequest, "there are no words"),
    (lambda m: m.seeds("dog", 7), lexiscope.BadRequest, "words = 7: give a text"),
    (lambda m: m.neuron(1, 1, lens="euclid"), lexiscope.BadRequest, "lens = 'euclid': there are dot, cosine"),
    (lambda m: m.neuron(1, 1, k=2.5), lexiscope.BadRequest, r"k = 2\.5: give a whole number from 1 on"),
    (lambda m: m.subhead(1, 1, 1, k="5"), lexiscope.BadRequest, "k = '5': give a whole number from 1 on"),
    (lambda m: m.head(1, 1).qk(preset="nouns"), lexiscope.BadRequest, "preset = 'nouns': there are all, distinct"),
    (lambda m: m.head(1, 1).direction(0, k=True), lexiscope.BadRequest, "k = True"),
    (lambda m: m.neuron("1", 1), lexiscope.BadRequest, "layer = '1': give a whole number from 0 on"),
    (lambda m: m.neuron(1, -1), lexiscope.BadRequest, "neuron = -1: give a whole number from 0 on"),
    (lambda m: m.neuron(1, 10**5000), lexiscope.BadRequest, "neuron is too large"),
    (lambda m: m.token(-1), lexiscope.BadRequest, "token = -1"),
    (lambda m: m.token("dog").places(kind="w_x"), lexiscope.BadRequest, "kind = 'w_x'"),
    (lambda m: m.run("dog", position=-1), lexiscope.BadRequest, "position = -1"),
    (lambda m: m.run("dog", lens="euclid"), lexiscope.BadRequest, "lens = 'euclid'"),
    (lambda m: m.run("dog", token=2.5), lexiscope.BadRequest, "token = 2.5"),
    (lambda m: m.run("dog", panels=7), lexiscope.BadRequest, "panels = 7: give a text, or a list"),
    (lambda m: m.run(7), lexiscope.BadRequest, "text = 7: give a text"),
])  # fmt: skip
@pytest.mark.parametrize("where", ["here", "server"])
def test_what_is_not_there(
    gpt2: lexiscope.Model, site_url: str, ask: Ask, error: type[Exception], said: str, where: str
) -> None:
    model = gpt2 if where == "here" else lexiscope.open(f"{site_url}/{GPT2}")
    with pytest.raises(error, match=said):
        ask(model)


@pytest.mark.parametrize(("words", "seeds"), [
    (("dog", "lion"), ["dog", "lion"]),
    ((["dog", "lion"],), ["dog", "lion"]),
    (("New York", "dog"), ["New York", "dog"]),  # as in a search
    (("New York",), ["New", "York"]),  # as people type it
    (("dog - lion", "2*horse"), ["dog", "lion", "horse"]),
    (("well-known dog", "lion"), ["well-known dog", "lion"]),
])  # fmt: skip
def test_words_of_seeds(gpt2: lexiscope.Model, words: tuple[Any, ...], seeds: list[str]) -> None:
    assert [seed["word"] for seed in gpt2.seeds(*words, exact=False).view.seeds] == seeds


@pytest.mark.parametrize(("q", "said"), [
    ("L1N3", "This is neuron L1N3: model.neuron(1, 3)"),
    ("L1H2", "This is head L1H2: model.head(1, 2)"),
    ("L1H2.0", "This is subhead L1H2.0: model.subhead(1, 2, 0)"),
    ("L1H2.svd0", "This is direction L1H2.svd0: model.direction(1, 2, 0)"),
    ("L1", "This is layer 1: model.neurons(1) has its lists"),
    (f"/{LLAMA}/head/1/2/qk", "These are pairs of head L1H2: model.head(1, 2).qk()"),
    (f"/{LLAMA}/token/7", "This is token 7: model.token(7)"),
    (f"/{LLAMA}/lab", f"This is a page of the site: /{LLAMA}/lab"),
    ("doglion", "No token of tiny-llama: doglion; the pieces are "),
    ("dog", ""),
])  # fmt: skip
def test_a_search_says_what_it_names(llama: lexiscope.Model, site_url: str, q: str, said: str) -> None:
    here, there = llama.search(q), lexiscope.open(f"{site_url}/{LLAMA}").search(q)
    for found in (here, there):
        assert [note[: len(said)] for note in found._notes()] == ([said] if said else [])
        assert said in str(found)


def test_numbers_of_numpy(llama: lexiscope.Model, site_url: str) -> None:
    """As frames have them."""
    frame = llama.neurons(1, k=1).to_pandas()
    layer, neuron = frame.loc[9, ["layer", "index"]]
    expected = llama.neuron(int(layer), int(neuron)).json()
    for model in (llama, lexiscope.open(f"{site_url}/{LLAMA}")):
        assert model.neuron(layer, neuron).json() == expected
        assert model.token(frame["token_id"][3]).id == int(frame["token_id"][3])


def test_models_that_are_not_there(site_data: Path, site_url: str) -> None:
    with pytest.raises(lexiscope.NotFound, match=rf"no index of 'gpt3' .*built: .*{GPT2}"):
        lexiscope.open("gpt3", data=site_data)
    with pytest.raises(lexiscope.NotFound, match=rf"no model 'gpt3' at .*: there are .*/{GPT2}"):
        lexiscope.open(f"{site_url}/gpt3")
    with pytest.raises(lexiscope.NotFound, match=rf"names no model: there are .*/{GPT2}"):
        lexiscope.open(site_url)
    with pytest.raises(lexiscope.BadRequest, match=r"such as http://127.0.0.1:8000/gpt2"):
        lexiscope.open(f"{site_url}/{GPT2}/ff/1/3")


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(lexiscope.Unreachable, match=r"no server answers at http://127.0.0.1:9 .*lexiscope serve"):
        lexiscope.open("http://127.0.0.1:9/gpt2")


def test_a_hostile_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it answers, it is an error of ours, in bounded memory and without a sign that a terminal obeys."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, RedirectResponse, Response
    from starlette.routing import Route

    from tests.support.workers import listening

    monkeypatch.setattr("lexiscope.app.notebook.site.MOST_ANSWER_BYTES", 100_000)
    packed = {"content-encoding": "gzip"}
    deep, json = b"[" * 90_000, "application/json"
    obeyed = {"error": {"detail": "no\x1b[2J\u202e such neuron"}}
    wait = {"retry-after": "9" * 5000}
    answers = [
        (Response(b" " * 200_000, media_type=json), lexiscope.Unreachable, "answers with more than 100 kB"),
        (Response(b"", media_type=json, headers=packed), lexiscope.Unreachable, "packs its answer"),
        (Response(deep, media_type=json), lexiscope.Unreachable, "something else than this version"),
        (Response(deep, 500, media_type=json), lexiscope.Unreachable, "not as Lexiscope does"),
        (RedirectResponse("http://a..b/"), lexiscope.Unreachable, "no server answers"),
        (RedirectResponse("5.json"), lexiscope.Unreachable, "redirects more than 5 times"),
        (JSONResponse(obeyed, 404), lexiscope.NotFound, r"no\\x1b\[2J\\u202e such neuron"),
        (JSONResponse(obeyed, 503, headers=wait), lexiscope.IndexFault, "such neuron"),
        (JSONResponse({"\x1b[2J": 1}), lexiscope.Unreachable, "something else than this version"),
    ]
    routes = [Route("/index.json", lambda _: JSONResponse({"models": [{"model": "gpt2", "faults": []}]}))]
    routes += [
        Route(f"/gpt2/ff/0/{at}.json", lambda _, answer=answer: answer) for at, (answer, *_) in enumerate(answers)
    ]
    with listening(Starlette(routes=routes)) as url:
        model = lexiscope.open(f"{url}/gpt2")
        for at, (_, error, said) in enumerate(answers):
            with pytest.raises(error, match=said) as raised:
                model.neuron(0, at)
            assert str(raised.value).isprintable()


def test_what_only_the_index_can_tell(site_url: str) -> None:
    model = lexiscope.open(f"{site_url}/{GPT2}")
    with pytest.raises(lexiscope.NeedsIndex, match=r"take the index itself, and this model is read from http"):
        model.neurons()
    with pytest.raises(lexiscope.NeedsIndex, match="take the index itself"):
        model.pairs("vo")
    with pytest.raises(lexiscope.NeedsIndex, match="leave out exact=False"):
        model.seeds("dog", exact=False)


def test_a_server_without_a_worker(site_url: str) -> None:
    model = lexiscope.open(f"{site_url}/{GPT2}")
    with pytest.raises(lexiscope.NotFound, match="live pages are off"):
        model.run("the dog")


def test_an_index_without_pairs_and_with_one_lens(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest(pairs=0, lenses=("cosine",), kinds=("ff_key", "ff_value")))
    model = lexiscope.open("tiny", data=tmp_path)
    assert model.neuron(0, 1).view.lens == "cosine"
    with pytest.raises(lexiscope.NotStored, match="lens dot of tiny: not stored in this index"):
        model.neuron(0, 1, lens="dot")
    with pytest.raises(lexiscope.NotStored, match="lens dot of tiny: not stored in this index"):
        model.neurons(lens="dot")
    with pytest.raises(lexiscope.NotStored, match="pairs of heads"):
        model.pairs("vo")
    with pytest.raises(lexiscope.NotStored, match="pairs of heads"):
        model.head(0, 0)
    with pytest.raises(lexiscope.NotStored, match="w_o"):
        model.subheads(kinds=["w_o"])
    with pytest.raises(lexiscope.NotStored, match="w_q"):
        model.subheads()


def test_layers_appear_while_a_build_goes_on(tmp_path: Path) -> None:
    manifest = write_index(tmp_path / "tiny", make_manifest(), layers=(3,))
    model = lexiscope.open("tiny", data=tmp_path)
    with pytest.raises(lexiscope.NotBuilt, match="layer 1 of tiny is not built yet"):
        model.neuron(1, 0)
    add_layer(tmp_path / "tiny", manifest, 1).save(tmp_path / "tiny")
    deadline = time.monotonic() + 240
    while model.neurons().layers != (1, 3):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert model.neuron(1, 0).view.layer == 1
