"""The OpenAPI document as people read it."""

from typing import TYPE_CHECKING

from lexiscope.app.html.openapi_text import endpoints
from tests.support.pages import parsed

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def test_every_address_of_the_document_is_on_the_page(client: "TestClient") -> None:
    document = client.get("/openapi.json").json()
    pages = endpoints(document)
    assert len({page["path"] for page in pages}) == len(pages)
    are_pages = [bool(page["formats"]) for page in pages]
    assert are_pages == sorted(are_pages, reverse=True)  # what a reader looks for comes first
    home = next(page for page in pages if page["path"] == "/")
    assert set(home["formats"]) == {"json", "csv", "md", "tex"}
    html = client.get("/docs").text
    assert all(page["path"] in html for page in pages)
    ids = parsed(html).ids()
    assert all(f"schema-{name}" in ids for name in document["components"]["schemas"])
    assert all(link[1:] in ids for link in parsed(html).links() if link.startswith("#"))
