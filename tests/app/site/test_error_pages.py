"""Bad input and bad luck over HTTP: the right 4xx or 503 with a helpful page or JSON, never a 500, never another file.
Random requests are for test_openapi_docs.py, raw bytes on a socket for test_serve.py."""

import json
import os
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexiscope.app.site.security import HEADERS
from lexiscope.precompute.index.manifest import Manifest
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, PAIRS, K, ask, copied, visit
from tests.support.workers import until

BAD = [
    # What does not exist
    ("/gpt3", 404, "no index of 'gpt3' (built: tiny-gpt2, tiny-llama, tuned-minus-base)"),
    (f"/{GPT2}/ff/3/0", 404, "has layers 0 to 2"),
    (f"/{GPT2}/ff/0/0", 404, "not built yet: 2 of 3 layers are ready (1-2)"),
    (f"/{GPT2}/ff/1/128", 404, "has neurons 0 to 127"),
    (f"/{GPT2}/head/1/4/vo", 404, "has heads 0 to 3"),
    (f"/{GPT2}/head/1/0/sub/8", 404, "has subheads 0 to 7"),
    (f"/{GPT2}/head/1/0/svd/8", 404, "has directions 0 to 7"),
    (f"/{GPT2}/token/481", 404, "tokens 0 to 480"),
    (f"/{GPT2}/layer/1?token=481", 404, "481"),
    (f"/{GPT2}/layer/1?page=4", 404, "page 4"),
    (f"/{GPT2}/token/300?kind=ff_key&page=1000000000", 404, "1000000000"),
    (f"/{GPT2}/search?q=dog&page=1000000000", 404, "1000000000"),
    (f"/{GPT2}/ff/1/{'9' * 5000}", 404, "there is no page"),
    (f"/{GPT2}/ff/1/-1", 404, "there is no page"),
    (f"/{GPT2}/ff/1/5.xml", 404, "there is no page"),
    ("/a/b/c/d/e/f", 404, "there is no page"),
    # What cannot be answered
    (f"/{GPT2}/ff/1/5?k=0", 422, "k = '0'"),
    (f"/{GPT2}/ff/1/5?k=1000000", 422, f"k goes from 1 to {K}"),
    (f"/{GPT2}/head/1/0/vo?k=1000000", 422, f"k goes from 1 to {PAIRS}"),
    # Two mistakes at once: the length of lists is looked at first, on every page that has lists
    (f"/{GPT2}/ff/1/999?k=1000000", 422, f"k goes from 1 to {K}"),
    (f"/{GPT2}/ff/99/1?k=1000000", 422, f"k goes from 1 to {K}"),
    (f"/{GPT2}/ff/0/1?k=1000000", 422, f"k goes from 1 to {K}"),  # layer 0 is not built
    (f"/{GPT2}/head/1/0/sub/8?k=1000000", 422, f"k goes from 1 to {K}"),
    (f"/{GPT2}/head/1/0/svd/8?k=1000000", 422, f"k goes from 1 to {K}"),
    (f"/{GPT2}/head/1/4/vo?k=1000000", 422, f"k goes from 1 to {PAIRS}"),
    (f"/{GPT2}/head/1/4/vo?k=1000000&reading=norm", 422, f"k goes from 1 to {PAIRS}"),
    (f"/{GPT2}/ff/1/5?k={'9' * 5000}", 422, "k = '999"),
    (f"/{GPT2}/ff/1/5?lens=round", 422, "'dot' or 'cosine'"),
    (f"/{GPT2}/head/1/0/vo?preset=best", 422, "'all', 'distinct' or 'words'"),
    (f"/{GPT2}/layer/1?sort=colour", 422, "sort = 'colour'"),
    (f"/{GPT2}/layer/1?page=0", 422, "page = '0'"),
    (f"/{GPT2}/layer/1?token=-1", 404, "'-1' is none of"),
    (f"/{GPT2}/layer/1?token={'a' * 500}", 404, "is none of"),
    (f"/{GPT2}/search?q={'x' * 201}", 422, "200"),
    (f"/{GPT2}/token/300?kind=w_z", 422, "kind = 'w_z'"),
    # What is no address
    (f"/{GPT2}/search?q={'x' * 100_000}", 414, "up to 8192"),
    (f"/{'x' * 100_000}", 414, "up to 8192"),
    (f"/{GPT2}/search?q=%00", 400, "control characters"),
    (f"/{GPT2}%00/ff/1/5", 400, "control characters"),
    (f"/{GPT2}/ff/1/5%0A", 400, "control characters"),
    (f"/{GPT2}/search?q=%ff%fe", 400, "not UTF-8"),
    ("/%ed%a0%80", 400, "not UTF-8"),
    # Path tricks
    ("/static/../app/server.py", 404, ""),
    ("/static/..%2fapp%2fserver.py", 404, ""),
    ("/static/%2e%2e/%2e%2e/etc/passwd", 404, ""),
    ("/static/__init__.py", 404, ""),
    ("/..%2f..%2fetc%2fpasswd", 404, ""),
    ("/../../etc/passwd", 404, ""),
    (f"/{GPT2}/../../../etc/passwd", 404, ""),
    (f"/{GPT2}%2fmanifest.json", 404, ""),
    (f"/{GPT2}/manifest.json", 404, ""),
    ("/.cache", 404, ""),
    ("/-/nothing", 404, ""),
]


@pytest.mark.parametrize(("path", "status", "said"), BAD, ids=[path[:60] for path, _, _ in BAD])
def test_bad_input(client: TestClient, path: str, status: int, said: str) -> None:
    page, data = ask(client, path, accept="text/html"), ask(client, path, accept="application/json")
    assert page.status == data.status == ask(client, path, "HEAD").status == status, page.text
    if page.headers["content-type"] == "text/html; charset=utf-8":
        assert page.text.startswith("<!doctype html>")
        assert f">{status}<" in page.text
    assert data.headers["content-type"] == "application/json"
    document = json.loads(data.body)
    assert list(document) == ["error"]
    assert list(document["error"]) == ["status", "title", "detail"]
    assert document["error"]["status"] == status
    assert said in document["error"]["detail"]
    assert len(document["error"]["detail"]) < 1000
    for answer in (page, data):
        assert "root:" not in answer.text
        assert HEADERS.items() <= answer.headers.items()
        assert "Accept" in answer.headers["vary"]


@pytest.mark.parametrize("format", ["json", "csv", "md", "tex"])
def test_errors_of_data_are_data(client: TestClient, format: str) -> None:
    for path, status in (
        (f"/{GPT2}/ff/9/5.{format}", 404),
        (f"/{GPT2}/ff/1/5.{format}?lens=x", 422),
        (f"/x.{format}", 404),
    ):
        answer = client.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.json()["error"]["status"]) == (status, status)


def test_an_error_can_be_swapped_in(client: TestClient) -> None:
    answer = client.get(f"/{GPT2}/ff/9/5", headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    assert answer.status_code == 404
    assert "<html" not in answer.text
    assert "has layers 0 to 2" in answer.text


def test_a_layer_that_is_not_built_yet_is_waited_for(client: TestClient) -> None:
    """Its page opens by itself once the build has come to it; of what will never be there, none does."""
    for path, waits in ((f"/{GPT2}/layer/0", True), (f"/{GPT2}/ff/0/5", True), (f"/{GPT2}/layer/3", False)):
        answer = client.get(path)
        assert answer.status_code == 404
        assert ('<meta http-equiv="refresh" content="10">' in answer.text) is waits
        assert ("retry-after" in answer.headers) is waits
        assert ("If no build is running" in answer.text) is waits
        assert ("<h1>Not Found yet <small>404" in answer.text) is waits
        assert ('<p class="detail">' in answer.text) is not waits  # the colour of what went wrong


LONG = "x" * 201


@pytest.mark.parametrize(("path", "typed", "wrong", "hidden"), [
    ("relation?pairs=France-Paris&lens=cosine", {"pairs": "France-Paris"}, "pairs", {"lens": "cosine"}),
    ("relation?pairs=France%3E", {"pairs": "France>"}, "pairs", {}),
    ("transition?pairs=%3Cb%3E", {"pairs": "<b>"}, "pairs", {}),
    ("seeds?words=king+-&rank=fit", {"words": "king -"}, "words", {"rank": "fit"}),
    ("seeds?words=dog&k=0&rank=fit", {"words": "dog"}, None, {"rank": "fit"}),
    ("heads?words=dog&layers=x", {"words": "dog", "layers": "x"}, "layers", {}),
    ("heads?words=dog&layers=99", {"words": "dog", "layers": "99"}, "layers", {}),
    ("heads?words=a%2B", {"words": "a+"}, "words", {}),
    ("prompt?text=hi&off=bla", {"text": "hi", "off": "bla", "set": ""}, "off", {}),
    ("prompt?text=hi&off=bla&pin=L1N3&hubs=hide&preset=words", {"text": "hi", "off": "bla", "set": ""}, "off", {}),
    ("prompt?text=hi&set=1&lens=cosine", {"text": "hi", "off": "", "set": "1"}, "set", {"lens": "cosine"}),
    (f"search?q={LONG}", {"q": LONG}, "q", {}),
])  # fmt: skip
def test_a_form_keeps_what_was_typed_and_says_which_field_is_wrong(
    client: TestClient, path: str, typed: dict[str, str], wrong: str | None, hidden: dict[str, str]
) -> None:
    answer = client.get(f"/{GPT2}/{path}", headers={"Accept": "text/html"})
    assert answer.status_code in (404, 422)
    page = parsed(answer.text)
    (form,) = page.all("form", **{"class": "ask again run" if path.startswith("prompt") else "ask again"})
    action = form.attributes["action"]
    assert action.partition("?")[0] == f"/{GPT2}/{path.partition('?')[0]}"
    fields = {
        each.attributes["id"]: each for each in (*page.all("input"), *page.all("textarea")) if "id" in each.attributes
    }
    texts = {name: fields[f"again-{name}"] for name in typed}
    assert {name: each.attributes.get("value", each.text).strip() for name, each in texts.items()} == typed
    assert [name for name, each in texts.items() if "aria-invalid" in each.attributes] == ([wrong] if wrong else [])
    in_search = {"hubs", "preset", "pin"} if "pin" in path else set()
    sent = {each.attributes["name"]: each.attributes["value"] for each in page.all("input", type="hidden")}
    assert {name: text for name, text in sent.items() if name not in in_search} == hidden
    if path.startswith("prompt"):  # what the address says goes along, and the form can be sent
        again = client.post(action, data={"text": "hi", **hidden}, follow_redirects=False)
        assert again.status_code == 303, again.text
        assert ("pin=L1N3" in again.headers["location"]) is ("pin" in path)
    assert answer.text.count('id="wrong"') == bool(wrong)
    assert answer.text.count('class="detail"') == 1


def test_a_form_that_was_posted_is_kept_too(client: TestClient) -> None:
    answer = client.post(
        f"/{GPT2}/prompt", data={"text": "a long\ntext", "off": "bla"}, headers={"Accept": "text/html"}
    )
    assert answer.status_code == 422
    assert "a long\ntext</textarea>" in answer.text.replace("\r", "")
    assert 'value="bla"' in answer.text
    many = "text=x&off=bla" + "".join(f"&k={number}" for number in range(9999))
    assert len(client.post(f"/{GPT2}/prompt", content=many, headers={"Accept": "text/html"}).text) < 20_000


@pytest.mark.parametrize(("path", "status"), [
    (f"/{GPT2}/seeds?words=dog", 503), (f"/{GPT2}/seeds?words=a+-", 422), (f"/{GPT2}/ff/1/999", 404),
    (f"/{GPT2}/ff/0/1", 404),
])  # fmt: skip
def test_an_error_is_not_cited_and_what_waits_shows_progress(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == status
    assert "Cite this page" not in answer.text
    assert bool(parsed(answer.text).all("progress")) is ("retry-after" in answer.headers)


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize("path", ["/", f"/{GPT2}/ff/1/5", f"/{GPT2}/ff/1/5.json", "/-/health", "/static/lexiscope.css"])
def test_wrong_methods(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path, content=b"x" * 100_000 if method in ("POST", "PUT") else None)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"
    assert HEADERS.items() <= answer.headers.items()


def test_a_page_that_takes_a_form_says_so(client: TestClient) -> None:
    answer = client.delete(f"/{GPT2}/prompt")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert "it takes GET, HEAD, POST" in answer.text
    assert client.delete(f"/{GPT2}/prompt.json").headers["allow"] == "GET, HEAD"


@pytest.mark.slow
def test_a_shard_is_lost_while_serving(site_data: Path, tmp_path: Path) -> None:
    """test_library.py has the other ways to lose one."""
    data = copied(site_data, tmp_path)
    with visit(data, refresh=0) as visitor:
        lost = f"/{GPT2}/ff/1/5"
        before = visitor.get(lost)
        file = data / GPT2 / Manifest.load(data / GPT2).shards[1].file
        whole = file.read_bytes()
        os.truncate(file, len(whole) // 2)
        held = {"If-None-Match": before.headers["etag"]}
        for path in (lost, f"/{GPT2}/head/1/0", f"/{GPT2}/head/1/0/vo", f"/{GPT2}/head/1/0/sub/1", f"/{GPT2}/layer/1"):
            answer = visitor.get(path, headers=held)
            assert answer.status_code == 503, path
            assert file.name in answer.text
            assert "precompute" in answer.text
            assert visitor.get(f"{path}.json").json()["error"]["status"] == 503
        for path in (f"/{GPT2}/ff/2/5", "/", f"/{GPT2}", f"/{GPT2}/token/300", f"/{GPT2}/search?q=dog", f"/{LLAMA}"):
            assert visitor.get(path).status_code == 200, path
        file.with_suffix(".whole").write_bytes(whole)
        file.with_suffix(".whole").rename(file)
        until(lambda: visitor.get(lost).status_code == 200)  # the file is hashed first, in a thread
        assert visitor.get(lost).content == before.content


def test_a_broken_manifest_is_one_models_affair(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    (data / GPT2 / "manifest.json").write_text("{")
    with visit(data) as visitor:
        assert visitor.get(f"/{GPT2}/ff/1/5").status_code == 503
        assert visitor.get(f"/{LLAMA}/ff/1/5").status_code == 200
        assert "manifest.json" in visitor.get("/").text
        assert f"/{GPT2}:" not in visitor.get("/llms.txt").text


def test_a_data_folder_that_cannot_be_read() -> None:
    with visit(Path("x" * 300)) as visitor:
        for path in ("/", "/index.json", "/-/health"):
            answer = visitor.get(path)
            assert answer.status_code == 503
            assert "cannot list the data folder" in answer.text
        assert visitor.get(f"/{GPT2}/ff/1/5").status_code in (404, 503)
        assert visitor.get("/-/help").status_code == 200
