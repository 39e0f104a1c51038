"""The OpenAPI document: complete, with examples that have the declared shapes, and true for random requests."""

import copy
import itertools
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

from app.addresses import DATA_FORMATS, MEDIA_TYPES
from app.html import openapi_text
from app.html.glossary import tip
from app.routes.examples import EXAMPLES
from app.server import create_app
from app.settings import Settings as SiteSettings
from precompute.shape import PRESETS
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, visit

pytestmark = pytest.mark.slow

REQUESTS_EACH = 8
OF_CLASSIFIERS = {"classifier", "classifier_vector"}  # pages that neither model of the site has, nor the demo
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


def data_operation(document: dict[str, Any], page: str) -> dict[str, Any]:
    operations = (item["get"] for item in document["paths"].values())
    found: dict[str, Any] = next(operation for operation in operations if operation["operationId"] == f"{page}_data")
    return found


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(field) for name, field in value.items() if field is not None}
    return [without_nulls(entry) for entry in value] if isinstance(value, list) else value


def test_every_page_is_there_with_its_data(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(set(ids)) == len(ids)
    assert {*EXAMPLES, *(f"{name}_data" for name in EXAMPLES)} | {"health", "settings", "metrics", "random"} == set(ids)
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


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_the_declared_shapes(document: dict[str, Any], name: str) -> None:
    operation = data_operation(document, name)
    documented = operation["responses"]["200"]["content"]["application/json"]["example"]
    assert documented == without_nulls(EXAMPLES[name])  # FastAPI leaves them out of the document
    validator(document, operation).validate(EXAMPLES[name])


def test_examples_are_of_one_model() -> None:
    """An id has one text, vectors differ, and numbers are those that the arguments give as examples."""
    texts: dict[int, set[str]] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.keys() >= {"id", "token"} and isinstance(value["token"], str):
                texts.setdefault(value["id"], set()).add(value["token"])
            for part in value.values():
                walk(part)
        elif isinstance(value, list):
            for part in value:
                walk(part)

    walk(EXAMPLES)
    assert texts
    assert [found for found in texts.items() if len(found[1]) > 1] == []
    neuron, subhead, direction = EXAMPLES["neuron"], EXAMPLES["subhead"], EXAMPLES["direction"]
    sides = [of[side] for of in (direction["vo"], direction["qk"]) for side in of if side not in ("singular", "share")]
    for vectors in ([neuron[name] for name in ("key", "value", "up")], [subhead[name] for name in "qkvo"], sides):
        assert all(first != second for first, second in itertools.combinations(vectors, 2))
    token = EXAMPLES["token"]
    assert token["bytes"] == token["token"]["token"].encode().hex(" ")
    assert EXAMPLES["search"]["matches"][0]["tokens"][0] in EXAMPLES["search"]["words"][0]["tokens"]


@pytest.mark.parametrize(
    "name", sorted(EXAMPLES.keys() - {"home", "seeds", "relation", "heads", "prompt"} - OF_CLASSIFIERS)
)
def test_examples_answer_the_example_request(document: dict[str, Any], name: str) -> None:
    answer = EXAMPLES[name]
    for parameter in data_operation(document, name)["parameters"]:
        said = openapi_text.example(parameter)
        held = answer.get(parameter["name"], said)
        if parameter["name"] == "token" and name == "token":
            held = held["id"]
        if parameter["in"] == "path" or (parameter["name"] != "k" and said != ""):
            assert held == said, parameter["name"]


def test_every_page_has_a_link_to_try(client: TestClient, tmp_path: Path) -> None:
    page = client.get("/docs").text
    links = [link for link in parsed(page).links() if link.startswith(f"/{GPT2}")]
    assert len(links) >= len(EXAMPLES.keys() - OF_CLASSIFIERS)  # all but home, and a random neuron
    live = tuple(f"/{GPT2}/{name}" for name in ("seeds", "relation", "heads", "prompt"))
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
        asked[:] = [parameter for parameter in asked if parameter["name"] not in ("reading", "format")]
        for parameter in asked:
            if parameter["name"] == "model":
                parameter["schema"] = {"enum": [GPT2, LLAMA, LLAMA, "gpt3"]}
            elif parameter["name"] == "other":
                parameter["schema"] = {"enum": [LLAMA, GPT2, "gpt3"]}
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


def test_presets_are_told_as_on_the_help_page(document: dict[str, Any]) -> None:
    told = [
        parameter["description"]
        for path in document["paths"].values()
        for parameter in path["get"].get("parameters", ())
        if parameter["name"] == "preset"
    ]
    assert told
    for text in told:
        assert all(tip(preset) in text for preset in PRESETS)
        assert "three or more ASCII letters" in text
