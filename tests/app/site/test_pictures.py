"""The pictures that chats show with a link: their addresses, versions, and how many are drawn at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from lexiscope.app.formats.png import Picture
from lexiscope.app.site import pictures
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA

PAGES = (f"/{GPT2}/ff/1/5", f"/{LLAMA}/ff/1/5?lens=cosine", f"/{LLAMA}/head/1/2", f"/{GPT2}/head/1/2?preset=words",
         f"/{LLAMA}/head/1/2/qk?preset=words&k=7", f"/{GPT2}/head/1/1/vo?hubs=hide")  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_a_page_names_its_picture(client: TestClient, path: str) -> None:
    page = parsed(client.get(path).text)
    (address,) = [each.attributes["content"] for each in page.all("meta", property="og:image")]
    assert address.startswith("http://testserver/")
    assert page.all("meta", name="twitter:card")[0].attributes["content"] == "summary_large_image"
    answer = client.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert answer.content.startswith(b"\x89PNG")
    again = client.get(address, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", [f"/{GPT2}", f"/{GPT2}/layer/1", f"/{GPT2}/token/300", f"/{LLAMA}/head/1/2/sub/3"])
def test_other_pages_have_none(client: TestClient, path: str) -> None:
    page = parsed(client.get(path).text)
    assert not page.all("meta", property="og:image")
    assert page.all("meta", name="twitter:card")[0].attributes["content"] == "summary"
    assert client.get(f"{path}.png").status_code == 404


def test_a_picture_has_the_lens_and_the_preset_of_its_address(client: TestClient) -> None:
    queries = ("", "lens=cosine", "preset=words", "k=3")
    pictures_of = {client.get(f"/{LLAMA}/head/1/2/vo.png?{query}").content for query in queries}
    assert len(pictures_of) == len(queries)


def test_few_are_drawn_at_once_and_none_twice(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, drawing, drawn = threading.Event(), threading.Semaphore(0), []

    def slowly(picture: Picture) -> bytes:
        drawing.release()
        assert go_on.wait(20)
        drawn.append(picture.title)
        return b"PNG"

    monkeypatch.setattr(pictures, "as_png", slowly)
    addresses = [f"/{GPT2}/ff/2/{neuron}.png" for neuron in range(pictures.PICTURES_AT_ONCE)]
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(client.get, address) for address in addresses]
        for _ in addresses:
            assert drawing.acquire(timeout=20)
        full = client.get(f"/{GPT2}/ff/2/9.png")
        go_on.set()
        assert [answer.result().content for answer in answers] == [b"PNG"] * len(addresses)
    assert (full.status_code, full.headers["retry-after"]) == (503, "5")
    assert "drawn" in full.text
    assert client.get(addresses[0]).content == b"PNG"
    assert len(drawn) == len(addresses)
