"""The OpenAPI document as people read it: pages with all their formats, types in words, examples."""

import re
from typing import Any

_FORMAT = re.compile(r"\.(json|csv|md|tex)$")


def endpoints(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Each page once, as its JSON declares it, with the formats it has; other addresses as they are."""
    pages: dict[str, dict[str, Any]] = {}
    for path, methods in document["paths"].items():
        operation = methods.get("get", {})
        ending = _FORMAT.search(path)
        page = (_FORMAT.sub("", path) if ending else path).replace("/index", "/")
        entry = pages.setdefault(page, {"path": page, "formats": [], "operation": operation})
        if ending:
            entry["formats"].append(ending[1])
            if ending[1] == "json":
                entry["operation"] = operation
    return list(pages.values())


def type_name(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    match schema:
        case {"$ref": str(reference)}:
            return reference.rsplit("/", 1)[-1]
        case {"enum": list(values)}:
            return " | ".join(map(str, values))
        case {"const": value}:
            return str(value)
        case {"anyOf": list(choices)} | {"oneOf": list(choices)} | {"allOf": list(choices)}:
            return " | ".join(map(type_name, choices))
        case {"type": "array", "prefixItems": list(items)}:
            return f"({', '.join(map(type_name, items))})"
        case {"type": "array", "items": dict(items)}:
            return f"list of {type_name(items)}"
        case {"type": str(name)}:
            low, high = schema.get("minimum"), schema.get("maximum")
            limits = [f"from {low}"] * (low is not None) + [f"to {high}"] * (high is not None)
            return " ".join([name, *limits])
    return "anything"


def example(about: dict[str, Any]) -> Any:
    """The first example of a parameter or an answer; "" if it has none."""
    if "example" in about:
        return about["example"]
    match about.get("examples"):
        case dict(named) if named:
            first = next(iter(named.values()))
            return first.get("value", "") if isinstance(first, dict) else first
        case list(listed) if listed:
            return listed[0]
    schema = about.get("schema", {})
    return next(iter(schema.get("examples", [])), schema.get("default", ""))
