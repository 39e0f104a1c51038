"""What each page looks like as JSON, in short: examples for the OpenAPI document, of the demo and the numbers that the
arguments give as examples, with lists cut. A test checks them against the shapes of the views, and one another."""

from typing import Any

from app.routes.examples.live import LIVE
from app.routes.examples.models import MODELS
from app.routes.examples.parameters import PARAMETERS

_OF_NO_INDEX = ("home", "comparison")
_INDEX = {"model": "smollm2-135m", "build": MODELS["model"]["provenance"]["build"]}

EXAMPLES: dict[str, Any] = {
    name: example if name in _OF_NO_INDEX else _INDEX | example
    for name, example in {**MODELS, **PARAMETERS, **LIVE}.items()
}
ERROR = {"error": {"status": 404, "title": "Not Found", "detail": "layer 30: smollm2-135m has layers 0 to 29"}}
