"""The OpenAPI document as people read it."""

from typing import TYPE_CHECKING, Any

import pytest

from lexiscope.app.html.openapi_text import endpoints, example, type_name
from tests.support.pages import parsed

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.mark.parametrize(("schema", "text"), [
    ({"$ref": "#/components/schemas/FFView"}, "FFView"),
    ({"enum": ["dot", "cosine"], "type": "string"}, "dot | cosine"),
    ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "integer from 1 | null"),
    ({"type": "array", "items": {"type": "string"}}, "list of string"),
    ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "null"}]}, "(number, null)"),
    ({"type": "integer", "minimum": 0, "maximum": 9}, "integer from 0 to 9"),
    ({"const": "from"}, "from"), ({}, "anything"),
])  # fmt: skip
def test_types(schema: dict[str, Any], text: str) -> None:
    assert type_name(schema) == text


@pytest.mark.parametrize(("argument", "expected"), [
    ({"schema": {"examples": ["x"]}}, "x"), ({"schema": {"default": "dot"}}, "dot"), ({}, ""),
])  # fmt: skip
def test_examples(argument: dict[str, Any], expected: object) -> None:
    assert example(argument) == expected


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
