"""The OpenAPI document is complete, and true for the answers of the small indexes and for random requests."""

import copy
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from lexiscope.app.settings import Settings as SiteSettings
from lexiscope.app.site.server import create_app
from lexiscope.app.urls import DATA_FORMATS, MEDIA_TYPES
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, visit

pytestmark = pytest.mark.slow

REQUESTS_EACH = 2
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="session")
def document(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def validator(document: dict[str, Any], operation: dict[str, Any]) -> Any:
    """Of an answer that has the declared fields and no others."""
    schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
    schemas = {
        name: {**shape, "additionalProperties": False} if "properties" in shape else shape
        for name, shape in document["components"]["schemas"].items()
    }
    return jsonschema_rs.validator_for({**schema, "components": {"schemas": schemas}})


def test_every_page_is_there_with_its_data(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(set(ids)) == len(ids)
    pages = {name.removesuffix("_data") for name in ids if name.endswith("_data")}
    assert pages >= {"home", "model", "layer", "neuron", "head", "pairs", "token", "search", "comparison", "prompt"}
    assert {*pages, *(f"{name}_data" for name in pages), "health", "settings", "metrics", "random"} == set(ids)
    for path, item in document["paths"].items():
        content = item["get"]["responses"]["200"]["content"] if not path.endswith("/random") else {}
        if path.endswith(".{format}"):
            format = next(parameter for parameter in item["get"]["parameters"] if parameter["name"] == "format")
            assert set(content) == {MEDIA_TYPES[name] for name in format["schema"]["enum"]}


def test_everything_is_described(document: dict[str, Any]) -> None:
    assert document["info"]["description"]
    for path, item in document["paths"].items():
        for operation in item.values():
            assert operation["summary"], path
            assert operation["description"], path
            named = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
            for parameter in operation.get("parameters", ()):
                assert parameter["description"], (path, parameter)
                assert parameter["in"] == "query" or parameter["schema"]["examples"], (path, parameter)
                if parameter["schema"].get("type") == "integer":
                    assert parameter["schema"]["minimum"] in (0, 1), (path, parameter)


def test_whether_heads_are_asked_for_is_a_number(document: dict[str, Any]) -> None:
    asked = {parameter["name"]: parameter for parameter in document["paths"]["/{model}/seeds"]["get"]["parameters"]}
    schema = asked["heads"]["schema"]
    assert (schema["type"], schema["minimum"], schema["maximum"], schema["default"]) == ("integer", 0, 1, 0)


def test_every_page_has_links_to_try(client: TestClient, document: dict[str, Any], tmp_path: Path) -> None:
    page = client.get("/docs").text
    links = [link for link in parsed(page).links() if link.startswith(f"/{GPT2}")]
    pages = {link for link in links if ".json" not in link}
    asked = [path for path in document["paths"] if path.startswith("/{model}") and "." not in path]
    assert len(pages) == len([path for path in asked if "/classifier" not in path])  # which no model of the site has
    data = [link.replace(".json", "") for link in links if ".json" in link]
    assert sorted(data) == sorted(pages - {f"/{GPT2}/random"})
    live = tuple(f"/{GPT2}/{name}" for name in ("seeds", "relation", "transition", "heads", "prompt"))
    assert all("?" in link for link in links if link.startswith(live))
    for link in links:
        assert link.startswith(live) or client.get(link).status_code in (200, 303), link
    with visit(tmp_path) as visitor:
        assert "{model}" in visitor.get("/docs").text
        assert not [link for link in parsed(visitor.get("/docs").text).links() if "model}" in link]


@pytest.mark.parametrize("model", [GPT2, LLAMA])
def test_answers_have_the_declared_shapes(client: TestClient, document: dict[str, Any], model: str) -> None:
    numbers = {"layer": 1, "neuron": 3, "head": 2, "subhead": 1, "direction": 1, "token": 300, "matrix": "qk"}
    numbers["model"] = model
    numbers["other"] = LLAMA if model == GPT2 else GPT2
    for path, item in document["paths"].items():
        if path.endswith((".{format}", ".json", "/-/health")) and "/classifier" not in path:
            taken = {parameter["name"] for parameter in item["get"].get("parameters", ())}
            wanted = {"lens": "cosine", "preset": "words", "q": "dog", "kind": "w_q"}
            for query in ({}, {name: value for name, value in wanted.items() if name in taken}):
                answer = client.get(path.format(**numbers, format="json"), params=query)
                if answer.status_code == 303:  # compared the other way round
                    answer = client.get(answer.headers["location"])
                assert answer.status_code == 200, (path, answer.text)
                validator(document, item["get"]).validate(answer.json())


# Random requests: schemathesis makes them from the document, some that should work and some that should not.


def narrowed(document: dict[str, Any]) -> dict[str, Any]:
    """The document of a site whose models and numbers are those of the small index, and a few that are not.

    Live pages and readings need a worker: they are for test_live_pages.py."""
    document = copy.deepcopy(document)
    document["paths"] = {
        path.replace("{format}", format): copy.deepcopy(item)
        for path, item in document["paths"].items()
        for format in (DATA_FORMATS if "{format}" in path else DATA_FORMATS[:1])
        if "live pages" not in item["get"]["tags"]
    }
    for item in document["paths"].values():
        asked = item["get"].get("parameters", [])
        asked[:] = [parameter for parameter in asked if parameter["name"] not in ("reading", "beforehand", "format")]
        for parameter in asked:
            if parameter["name"] == "model":
                parameter["schema"] = {"enum": [GPT2, LLAMA, LLAMA, "gpt3"]}
            elif parameter["name"] == "other":
                parameter["schema"] = {"enum": [LLAMA, GPT2, "gpt3"]}
            elif parameter["name"] == "build":  # nearly all others are refused
                parameter["schema"] = {"enum": ["", "0123456789abcdef"]}
            elif parameter["in"] == "path" and parameter["schema"].get("type") == "integer":
                parameter["schema"]["maximum"] = 4
    return document


@pytest.fixture(scope="session")
def operations(site_data: Path, document: dict[str, Any]) -> dict[str, Any]:
    schema: Any = schemathesis.openapi.from_dict(narrowed(document))
    schema.app = create_app(SiteSettings(data=site_data, worker="off"))  # each request starts and ends it
    return {result.ok().path: result.ok() for result in schema.get_all_operations()}


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
@pytest.mark.parametrize("format", ["", *DATA_FORMATS])
def test_random_requests_are_answered_as_promised(operations: dict[str, Any], format: str, mode: Any) -> None:
    seen: set[int] = set()
    for path, operation in operations.items():
        if path.rpartition(".")[2] == format if format else "." not in path:
            _try(operation, mode, seen)
    assert (200 in seen) if mode.is_positive else seen & {404, 422}


def _try(operation: Any, mode: Any, seen: set[int]) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=REQUESTS_EACH, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )
    def check(case: Any) -> None:
        response = case.call(allow_redirects=False)
        seen.add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    with suppress(Unsatisfiable):  # an address without arguments cannot be wrong
        check()
