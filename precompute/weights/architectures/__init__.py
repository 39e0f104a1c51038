"""Find the architecture that a checkpoint's config.json asks for. Each supported one has a file here: every module that
defines MODEL."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from lexiscope.precompute.errors import UnsupportedArchitecture
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.config import find_model_type
from lexiscope.precompute.weights.checkpoint import Checkpoint

__all__ = ["Model", "describe", "model_class", "names", "supported"]


def supported() -> dict[str, type[Model]]:
    """Return every supported architecture by its model_type."""
    modules = (import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__))
    models: list[type[Model]] = [module.MODEL for module in modules if hasattr(module, "MODEL")]
    return {name: model for model in models for name in model.model_types}


def names() -> list[str]:
    """Return the names of the supported architectures for people."""
    return sorted({name for model in supported().values() for name in model.model_types.values()}, key=str.lower)


def model_class(config: dict[str, Any], where: str) -> type[Model]:
    """Return the architecture that a config.json asks for; `where` names its source in the error."""
    known = supported()
    quantised = config.get("quantization_config")
    if isinstance(quantised, dict):
        raise UnsupportedArchitecture(
            f"{where} is quantised ({quantised.get('quant_method', 'unknown method')}), which cannot be read. "
            "Use the float16, bfloat16 or float32 checkpoint it was made from, or a GGUF file."
        )
    model_type = find_model_type(config, known)
    text = config.get("text_config")
    if model_type is None and isinstance(text, dict) and text.get("model_type") in known:
        raise UnsupportedArchitecture(
            f"{where} reads pictures, too (model_type {config.get('model_type')}), which is not supported. "
            f"A checkpoint of its text model alone ({text['model_type']}) can be read."
        )
    if model_type is None:
        stated = config.get("model_type") or config.get("architectures") or "unknown"
        raise UnsupportedArchitecture(
            f"{where} is of the architecture {stated!s}, which is not supported. "
            f"Supported are: {', '.join(names())} (model_type {', '.join(sorted(known))})."
        )
    return known[model_type]


def describe(checkpoint: Checkpoint) -> Model:
    """Return a checkpoint as a model of its family; check that every tensor that a build needs is there and fits."""
    return model_class(checkpoint.config, checkpoint.source)(checkpoint)
