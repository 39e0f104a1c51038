"""Prepare the OpenAPI document for readers of /docs: each page with all its formats, types in words, examples."""

from typing import Any

FORMAT = ".{format}"  # the end of the path of a page's data


def endpoints(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each page once, with its formats and the description of the route that returns its data; after the pages,
    return all other addresses as they are."""
    pages: dict[str, dict[str, Any]] = {}
    for path, methods in document["paths"].items():
        page = path.removesuffix(FORMAT).replace("/index", "/")
        entry = pages.setdefault(page, {"path": page, "formats": [], "operation": methods["get"]})
        if path.endswith(FORMAT):
            parameters = methods["get"]["parameters"]
            entry["formats"] = next(p["schema"]["enum"] for p in parameters if p["name"] == "format")
            others = [parameter for parameter in parameters if parameter["name"] != "format"]
            entry["operation"] = {**methods["get"], "parameters": others}
    return sorted(pages.values(), key=lambda page: not page["formats"])


def type_name(schema: dict[str, Any]) -> str:
    """Describe the type in a JSON schema in a few words."""
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


def example(argument: dict[str, Any]) -> Any:
    """Return the first example of an argument, else its default value, else ""."""
    schema = argument.get("schema", {})
    return next(iter(schema.get("examples", [])), schema.get("default", ""))
