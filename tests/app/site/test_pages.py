"""The explorer over HTTP: every page in every format, cold, by HEAD, again with its ETag, and in parts."""

import csv
import io
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lexiscope.app import urls
from lexiscope.app.lists.view import visible
from lexiscope.app.pages.page import find_pages
from lexiscope.app.site.security import HEADERS
from lexiscope.app.urls import FORMATS, content_type, format_address
from lexiscope.precompute.index.manifest import TOKENIZER
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, GPT2, LLAMA, PAIRS, SCRIPT, K, copied, visit
from tests.support.synthetic import add_layer, make_manifest, write_index

PATHS = {
    "home": ("/",),
    "model": (f"/{GPT2}",),
    "neuron": (f"/{GPT2}/ff/1/5", f"/{LLAMA}/ff/0/47"),
    "pairs": (f"/{LLAMA}/head/1/2/qk",),
    "beside": (f"/{LLAMA}/beside?a=L1N3&b=L1H2", f"/{GPT2}/beside?a=L1H2.1&b=L2H0.svd1"),
    "subhead": (f"/{LLAMA}/head/0/3/sub/0",),
    "direction": (f"/{GPT2}/head/2/0/svd/7",),
    "token": (f"/{GPT2}/token/{SCRIPT}",),
    "search": (f"/{GPT2}/search?q=dog", f"/{GPT2}/search"),
    "head": (f"/{LLAMA}/head/1/2",),
    "layer": (f"/{GPT2}/layer/1", f"/{GPT2}/layer/1?min_similarity=0.1&max_similarity=0.15"),
    "classifier": (f"/{DIFFERENCE}/classifier",),
    "classifier_vector": (f"/{DIFFERENCE}/classifier/classifier/2",),
    "lab": (f"/{LLAMA}/lab", f"/{DIFFERENCE}/lab?figure=similarity"),
    "labels": (f"/{LLAMA}/labels",),
    "paper": (f"/{GPT2}/paper?as=gpt2-medium",),
    "comparison": (f"/{GPT2}/vs/{LLAMA}?kind=w_k",),
    "vectors": (f"/{GPT2}/vectors", f"/{LLAMA}/vectors?kind=w_v&sort=similarity"),
    "sample": (f"/{LLAMA}/sample", f"/{GPT2}/sample?kind=ff_key&layers=1-2&n=4&good=1,3"),
}
SYSTEM = ("/-/help", "/-/help/neuron", "/-/settings", "/docs")
DATA = ("/-/health", "/-/settings.json", "/-/metrics", "/openapi.json", "/robots.txt", "/favicon.ico", "/favicon.svg")
ALL_PATHS = [path for paths in PATHS.values() for path in paths]


def test_every_stored_page_is_tried(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    pages = {item["get"]["operationId"] for item in paths.values() if "pages" in item["get"]["tags"]}
    assert pages == {*PATHS, *(f"{name}_data" for name in PATHS)}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("path", ALL_PATHS)
def test_every_page_in_every_format(client: TestClient, path: str, format: str) -> None:
    answer = client.get(format_address(path, format))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == content_type(format)
    assert HEADERS.items() <= answer.headers.items()
    assert answer.headers["cache-control"] == "no-cache"
    links = answer.headers["link"]
    assert f'<{path}>; rel="canonical"' in links
    assert all(f'<{format_address(path, format)}>; rel="alternate"' in links for format in FORMATS if format != "html")
    assert format == "csv" or int(answer.headers["content-length"]) == len(answer.content)

    head = client.head(format_address(path, format))
    assert (head.status_code, head.content, head.headers) == (200, b"", answer.headers)

    again = client.get(format_address(path, format), headers={"If-None-Match": f'"other", {answer.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == answer.headers["etag"]
    assert HEADERS.items() <= again.headers.items()


@pytest.mark.parametrize("path", ALL_PATHS)
def test_csv_is_a_table(client: TestClient, path: str) -> None:
    rows = list(csv.reader(io.StringIO(client.get(format_address(path, "csv")).text, newline="")))
    assert len({len(row) for row in rows}) <= 1
    assert len(rows) > 1 or path.endswith("/search")


@pytest.mark.parametrize("path", [*ALL_PATHS, *SYSTEM])
def test_html_is_a_page_or_a_part_of_it(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.headers["content-type"] == content_type("html")
    assert page.text.startswith("<!doctype html>")
    assert page.text.rstrip().endswith("</html>")
    part = client.get(path, headers={"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#page"})
    assert part.status_code == 200
    assert "<html" not in part.text
    title, _, inside = part.text.strip().partition("\n")
    assert title in page.text
    assert inside in page.text
    for answer in (page, part):
        assert {"HX-Request", "HX-Request-Type"} <= set(answer.headers["vary"].split(", "))
    if "etag" in page.headers:
        assert part.headers["etag"] != page.headers["etag"]
    full = client.get(path, headers={"HX-Request": "true", "HX-Request-Type": "full"})
    assert full.content == page.content


@pytest.mark.slow
def test_a_permalink_opens_cold(site_data: Path, client: TestClient) -> None:
    for path in ALL_PATHS[1::8]:  # a site for each takes a while
        with visit(site_data) as stranger:
            assert stranger.get(path).content == client.get(path).content


@pytest.mark.parametrize(("path", "canonical"), [
    (f"/{GPT2}/ff/1/5?lens=dot&k=25", f"/{GPT2}/ff/1/5"),
    (f"/{GPT2}/ff/01/005", f"/{GPT2}/ff/1/5"),
    (f"/{GPT2}/ff/1/5?lens=&k=&reading=", f"/{GPT2}/ff/1/5"),
    (f"/{GPT2}/ff/1/5?lens=dot&lens=cosine", f"/{GPT2}/ff/1/5?lens=cosine"),
    (f"/{GPT2}/head/1/3/vo?preset=&group=", f"/{GPT2}/head/1/3/vo"),
    (f"/{GPT2}/search?q=&kind=", f"/{GPT2}/search"),
    (f"/{GPT2}/ff/1/5?k=7&lens=cosine", f"/{GPT2}/ff/1/5?lens=cosine&k=7"),
    (f"/{GPT2}/head/1/3/vo?k=50&preset=words", f"/{GPT2}/head/1/3/vo?preset=words"),
    (f"/{GPT2}/head/1/3/vo?k=25", f"/{GPT2}/head/1/3/vo?k=25"),
    (f"/{GPT2}/layer/1?sort=-norm&page=1&token=", f"/{GPT2}/layer/1?sort=-norm"),
    (f"/{GPT2}/layer/1?sort=&page=", f"/{GPT2}/layer/1"),
    (f"/{GPT2}/search?q=d%C3%B6g%20%26", f"/{GPT2}/search?q=d%C3%B6g+%26"),
])  # fmt: skip
def test_one_view_has_one_address(client: TestClient, path: str, canonical: str) -> None:
    answer, direct = client.get(path), client.get(canonical)
    assert answer.status_code == 200
    assert f'<{canonical}>; rel="canonical"' in answer.headers["link"]
    assert answer.headers["etag"] == direct.headers["etag"]
    assert f'rel="canonical" href="http://testserver{canonical.replace("&", "&amp;")}"' in direct.text


@pytest.mark.parametrize(("path", "said", "unsaid"), [
    (f"/{GPT2}/head/1/2", "Lens of directions and subheads", 'aria-label="Preset"'),
    (f"/{GPT2}/search?q=e", ">neuron keys</a>", ">ff_key"),
])  # fmt: skip
def test_switches_say_what_they_change(client: TestClient, path: str, said: str, unsaid: str) -> None:
    page = client.get(path).text
    assert said in page
    assert unsaid not in page


def test_arguments_are_heard(client: TestClient) -> None:
    def get(path: str, **query: Any) -> Any:
        return client.get(f"/{GPT2}/{path}.json", params=query).json()

    assert len(get("ff/1/5")["key"]["top"]) == 25
    assert len(get("ff/1/5", k=K)["key"]["bottom"]) == K
    assert get("ff/1/5", lens="cosine")["key"] != get("ff/1/5")["key"]
    assert len(get("head/1/3/qk")["top"]) == 50
    assert len(get("head/1/3/qk", k=PAIRS)["top"]) == PAIRS
    assert get("head/1/3/qk", preset="distinct")["preset"] == "distinct"
    assert get("layer/1", page=2)["rows"][0]["neuron"] == 50
    assert get("token/300", kind="ff_key")["kind"] == "ff_key"


def test_pages_are_as_long_as_the_settings_say(site_data: Path) -> None:
    with visit(site_data, layer_rows=3, search_rows=3) as visitor:
        for path, rows in ((f"/{GPT2}/layer/1.json", "rows"), (f"/{GPT2}/search.json?q=dog", "matches")):
            view = visitor.get(path).json()
            assert len(view[rows]) == min(3, view["total"])
            assert view["pages"] == max(1, -(-view["total"] // 3))


@pytest.mark.parametrize("format", ["html", "csv"])
def test_a_search_without_the_tokenizer_is_not_unchanged_once_it_is_there(
    site_data: Path, tmp_path: Path, format: str
) -> None:
    """Without it, nobody knows the pieces of a word."""
    data = copied(site_data, tmp_path)
    file = data / GPT2 / TOKENIZER
    kept = file.rename(file.with_suffix(".kept"))
    path = format_address(f"/{GPT2}/search?q=horsing", format)
    with visit(data) as visitor:
        without = visitor.get(path)
        again = visitor.get(path, headers={"If-None-Match": without.headers["etag"]})
        assert (without.status_code, again.status_code) == (200, 304)
        kept.rename(file)
        answer = visitor.get(path, headers={"If-None-Match": without.headers["etag"]})
        assert answer.status_code == 200
        assert (answer.content != without.content) == (format in ("html", "json"))  # which show the pieces
        assert visitor.get(path, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_an_etag_is_of_one_format_one_host_one_program(client: TestClient, site_data: Path) -> None:
    path = f"/{GPT2}/ff/1/5"
    tags = [client.get(format_address(path, format)).headers["etag"] for format in FORMATS]
    tags.append(client.get(path, headers={"Host": "elsewhere.example"}).headers["etag"])
    with visit(site_data, layer_rows=7) as other:
        tags.append(other.get(path).headers["etag"])
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize("url", ["http://[::1]:8000", "https://lexiscope.example.org/"])
def test_links_that_leave_the_site_carry_its_public_address(site_data: Path, url: str) -> None:
    path = f"/{LLAMA}/ff/1/5"
    with visit(site_data, url=url) as visitor:
        answers = [
            visitor.get(address) for address in (path, f"{path}.tex", f"{path}.md", f"/{LLAMA}/ff/9/9", "/-/help")
        ]
    for answer in answers:
        assert "testserver" not in answer.text
        assert f"{url.rstrip('/')}/" in answer.text
    assert f"{url.rstrip('/')}{path}" in parsed(answers[0].text).links()  # which a click copies


@pytest.mark.parametrize(("query", "lens"), [("", "dot"), ("?lens=cosine", "cosine")])
def test_a_neuron_by_chance(client: TestClient, query: str, lens: str) -> None:
    """Under the lens of the page that leads there."""
    assert f'href="/{GPT2}/random?lens={lens}"' in client.get(f"/{GPT2}/ff/1/5{query}").text
    answer = client.get(f"/{GPT2}/random?lens={lens}")
    assert (answer.status_code, answer.headers["cache-control"]) == (303, "no-store")
    assert answer.headers["location"].partition("?")[2] == query.removeprefix("?")
    assert client.get(answer.headers["location"]).status_code == 200
    assert client.get(f"/{GPT2}/random?lens=round").status_code == 422


def test_who_has_no_lens_in_hand_gets_the_one_that_reads_best(client: TestClient) -> None:
    """From the home page, by chance, from a search box there and from errors; an address without a lens means dot."""
    lenses = {card["model"]: card["best_lens"] for card in client.get("/index.json").json()["models"]}
    assert lenses[GPT2] == "cosine"
    assert client.get(f"/{GPT2}.json").json()["lens"] == "dot"
    assert client.get(f"/{GPT2}/random").headers["location"].endswith("?lens=cosine")
    home = parsed(client.get("/").text)
    models = [urls.link("model", name, lens=lens) for name, lens in lenses.items()]
    assert {*models} <= {*home.links()}
    assert all("lens=cosine" in link for link in home.links() if link.startswith(f"/{GPT2}/") and "/vs/" not in link)
    searches = [button.attributes for button in home.all("button") if "formaction" in button.attributes]
    buttons = {search["formaction"]: search.get("value", "dot") for search in searches}
    assert buttons == {urls.link("search", name): lens for name, lens in lenses.items()}
    error = parsed(client.get(f"/{GPT2}/ff/1/999999").text)
    assert {f"/{GPT2}?lens=cosine", f"/{GPT2}/random?lens=cosine"} <= {*error.links()}
    neuron = parsed(client.get(f"/{GPT2}/ff/1/5").text)  # whoever is there has one in hand
    assert f"/{GPT2}" in neuron.links()
    assert [button.attributes.get("name") for button in neuron.all("button", formaction=f"/{GPT2}/search")] == [None]


@pytest.mark.parametrize("lens", ["dot", "cosine"])
def test_a_name_that_is_searched_for_opens_under_the_lens_of_the_search(client: TestClient, lens: str) -> None:
    for name, path in (("L1N5", "ff/1/5"), ("L1H2.3", "head/1/2/sub/3"), ("L1", "layer/1")):
        there = urls.link("search", GPT2, q=name, lens=lens)
        assert client.get(there).headers["location"] == f"/{GPT2}/{path}" + ("?lens=cosine" if lens == "cosine" else "")
    pasted = urls.link("search", GPT2, q=f"/{GPT2}/ff/1/5", lens=lens)
    assert client.get(pasted).headers["location"] == f"/{GPT2}/ff/1/5"


def test_titles_tell_tokens_with_and_without_a_space_apart(client: TestClient) -> None:
    views = (client.get(f"/{GPT2}/token/{token}.json").json()["token"] for token in range(256, 470))
    token = next(view for view in views if view["token"].startswith(" ") and view["token"].strip().isalpha())
    title = f"<title>Token “␣{token['token'].strip()}” in {GPT2}"
    assert title in client.get(f"/{GPT2}/token/{token['id']}").text


def test_a_search_that_names_a_parameter_goes_there(client: TestClient) -> None:
    path = f"/{GPT2}/search?q=L1N5"
    answer = client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/{GPT2}/ff/1/5")
    assert client.get(format_address(path, "json")).json()["jump"] == f"/{GPT2}/ff/1/5"
    partial = {"HX-Request": "true", "HX-Request-Type": "partial"}
    typed = client.get(path, headers={**partial, "HX-Target": "div#suggestions"})
    assert typed.status_code == 200
    assert f'href="/{GPT2}/ff/1/5"><b>Neuron 5 of layer 1</b>' in typed.text
    assert "<html" not in typed.text
    assert "HX-Target" in typed.headers["vary"]


@pytest.mark.parametrize(("model", "lens"), [(GPT2, "dot"), (LLAMA, "cosine")])
def test_a_suggestion_says_in_how_many_lists_it_is(client: TestClient, model: str, lens: str) -> None:
    partial = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#suggestions"}
    typed = client.get(f"/{model}/search?q=do&lens={lens}", headers=partial).text
    suggested = re.findall(r'href="([^"]+/token/[0-9]+)[^"]*">.*?\n<small>in ([0-9,]+) list', typed)
    assert len(suggested) > 2
    for path, lists in suggested:
        roles = client.get(f"{path}.json?lens={lens}").json()["roles"]
        assert sum(role["total"] for role in roles) == int(lists.replace(",", ""))


def test_a_pasted_address_of_another_model_says_where_it_is(client: TestClient) -> None:
    absent = client.get(f"/{GPT2}/search", params={"q": "http://127.0.0.1:8000/gpt3/ff/1/5"}).text
    assert f"<b>gpt3</b> is not built here; there is {GPT2}, {LLAMA}, {DIFFERENCE}." in absent
    assert "the tokenizer splits it" not in absent
    there = client.get(f"/{GPT2}/search", params={"q": f"/{LLAMA}/ff/1/5"}).text
    href = re.search(r'<a href="([^"]+)">open it there', there)
    assert href
    assert client.get(unescape(href[1])).headers["location"] == f"/{LLAMA}/ff/1/5"


@pytest.mark.parametrize("format", ["", ".json", ".csv"])
@pytest.mark.parametrize("word", ["%23300", "300"])
def test_a_layer_filtered_by_a_word_goes_to_the_id(client: TestClient, format: str, word: str) -> None:
    answer = client.get(f"/{GPT2}/layer/1{format}?token={word}&lens=cosine&page=1")
    where = f"/{GPT2}/layer/1{format}?lens=cosine&token=300"
    if word == "300":
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.headers["location"]) == (303, where)
    assert client.get(f"/{GPT2}/layer/1{format}?token=xyzzyqq").status_code == 404


@pytest.mark.parametrize("path", [*SYSTEM, *DATA])
def test_the_system_answers(client: TestClient, path: str) -> None:
    answer, head = client.get(path), client.head(path)
    assert (answer.status_code, head.status_code, head.content) == (200, 200, b"")
    assert answer.content
    assert HEADERS.items() <= answer.headers.items()


def test_help_is_found_where_people_look(client: TestClient) -> None:
    assert client.get("/help").headers["location"] == "/-/help"


@pytest.mark.parametrize(("path", "said"), [
    ("/help.json", "it is text for people, at /-/help"), ("/-/help.json", "it is text for people, at /-/help"),
    ("/-/help/nothing", "there are index, lists"),
])  # fmt: skip
def test_where_help_is_not_says_where_it_is(client: TestClient, path: str, said: str) -> None:
    answer = client.get(path, headers={"accept": "application/json"})
    assert answer.status_code == 404
    assert said in answer.json()["error"]["detail"]


def test_llms_txt_has_every_page_and_its_data_in_fifty_lines(client: TestClient) -> None:
    answer = client.get("/llms.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(answer.text.splitlines()) <= 50
    patterns = [re.sub(r":\w+}", "}", page.at.pattern) for page in find_pages().values() if page.of != "site"]
    assert all(re.search(rf"^- /{{model}}/?{re.escape(pattern)}( \(|: )", answer.text, re.M) for pattern in patterns)
    assert f"\n- /{GPT2}: 2 of 3 layers are ready\n" in answer.text
    assert "/{model}/ff/{layer}/{neuron}.json" in answer.text


def test_static_files_never_change_under_their_address(client: TestClient) -> None:
    page = client.get("/").text
    address = next(part for part in page.split('"') if part.startswith("/static/lexiscope.css?v="))
    answer = client.get(address)
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    stale = client.get("/static/lexiscope.css?v=old")
    assert (stale.content, stale.headers["cache-control"]) == (answer.content, "no-cache")
    held = client.get("/static/lexiscope.css", headers={"If-None-Match": answer.headers["etag"]})
    assert held.status_code == 304


def test_an_empty_data_folder_says_what_to_run(tmp_path: Path) -> None:
    for data in (tmp_path, tmp_path / "not-yet"):
        with visit(data) as visitor:
            home = visitor.get("/")
            assert home.status_code == 200
            assert "lexiscope precompute" in home.text
            assert parsed(home.text).all("section", **{"hx-trigger": "every 3s"})  # until a model is there
            assert visitor.get("/index.json").json() == {"models": [], "comparisons": [], "start": None}
            assert visitor.get("/-/health").json() == {"status": "ok", "models": [], "labels": [], "workers": {}}


def test_before_the_first_layer_is_ready(tmp_path: Path) -> None:
    """Whoever waits at the home page gets all of it with the first layer, and only the progress from then on."""
    manifest = write_index(tmp_path / "tiny", make_manifest(), layers=())
    with visit(tmp_path) as visitor:
        home = visitor.get("/").text
        assert "No layer is ready yet" in home
        assert parsed(home).all("section", **{"hx-trigger": "every 3s", "hx-target": "#main"})
        model = visitor.get("/tiny").text
        assert model.count("no layer is ready yet") == 3
        assert "none that reads" not in model
    add_layer(tmp_path / "tiny", manifest, 3).save(tmp_path / "tiny")
    with visit(tmp_path) as visitor:
        home = visitor.get("/").text
        assert "No layer is ready yet" not in home
        assert parsed(home).all("section", **{"hx-trigger": "every 3s", "hx-target": "this"})


def test_health_says_what_is_ready(client: TestClient) -> None:
    health = client.get("/-/health").json()
    assert health["status"] == "ok"
    assert health["models"] == [
        {"model": GPT2, "layers_ready": 2, "n_layers": 3, "faults": []},
        {"model": LLAMA, "layers_ready": 2, "n_layers": 2, "faults": []},
        {"model": DIFFERENCE, "layers_ready": 2, "n_layers": 2, "faults": []},
    ]
    assert set(health["workers"].values()) <= {"unchecked", "down"}


def test_robots_leave_endless_addresses_alone(client: TestClient) -> None:
    lines = client.get("/robots.txt").text.splitlines()
    assert lines[0] == "User-agent: *"
    assert {"Disallow: /*/random", "Disallow: /*/search", "Disallow: /*/beside"} < set(lines)
    # "another draw" leads on for ever, and the worker computes what each token's page links to
    assert {"Disallow: /*/sample", "Disallow: /*beforehand=", "Disallow: /*build="} < set(lines)


@pytest.mark.parametrize("path", [f"/{GPT2}/ff/1/5", "/-/help"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_slash_too_many_leads_to_no_other_host(client: TestClient, path: str, method: str) -> None:
    answer = client.request(method, f"{path}/", headers={"Host": "elsewhere.example"})
    assert answer.status_code in (404, 405)
    assert "location" not in answer.headers


def test_a_star_names_no_version(client: TestClient) -> None:
    assert client.get(f"/{GPT2}/ff/1/5", headers={"If-None-Match": "*"}).status_code == 200
    assert client.get(f"/{GPT2}/ff/99/5", headers={"If-None-Match": "*"}).status_code == 404


@pytest.mark.parametrize("format", ["md", "tex"])
def test_a_title_stays_on_its_line(client: TestClient, format: str) -> None:
    text = client.get(f"/{GPT2}/search.{format}", params={"q": "a\r\n# b\x1b[31m\u2028c"}).text
    title = next(line for line in text.splitlines() if "tokens like" in line)
    assert "b" in title
    assert "c" in title.partition("tokens like")[2]
    assert "\x1b" not in text


def test_cosines_of_nearest_tokens_say_what_they_are(client: TestClient) -> None:
    view = client.get(f"/{LLAMA}/token/300.json").json()
    spans = parsed(client.get(f"/{LLAMA}/token/300").text).all("span", **{"class": "near"})
    assert len(spans) == len(view["nearest"]) > 0
    for span, near in zip(spans, view["nearest"], strict=True):
        named = f"{visible(near['token'])}, its embedding centred, with that of {visible(view['token']['token'])}"
        assert span.attributes["title"] == f"The cosine of {named}: {near['score']:.3f}"


def test_position_alone_is_a_fold_whose_word_is_explained_within(client: TestClient) -> None:
    fold = client.get(f"/{GPT2}/head/1/2").text.partition("<summary>By position alone: ")[2]
    assert "<a " not in fold.partition("</summary>")[0]  # a link in a summary is no control of its own
    assert 'class="term"' in fold.partition("</figcaption>")[0]
