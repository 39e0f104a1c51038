"""Translate scaled rotary positions: a GGUF file holds a factor for each frequency, config.json the rule that gives
these factors."""

import math
from typing import Any

import gguf
import numpy as np

from lexiscope.precompute.errors import UnsupportedArchitecture
from lexiscope.precompute.weights.gguf.layout import Layout

# The same in every Llama from 3.1 to 3.3.
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def rope_scaling(layout: Layout, tensors: dict[str, Any], theta: float) -> dict[str, Any] | None:
    """Return what config.json says of scaled positions; None where they are not scaled."""
    scaling = layout.field("rope.scaling.type", "none")
    if "rope_freqs.weight" in tensors and tensors["rope_freqs.weight"].n_elements:
        tensor = tensors["rope_freqs.weight"]
        factors = np.asarray(gguf.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        guess = {"rope_type": "llama3", "factor": round(float(factors.max()), 4), **_LLAMA3}
        if np.allclose(factors, _llama3_factors(guess, theta, 2 * len(factors)), rtol=1e-4):
            return guess
    elif scaling in ("none", ""):
        return None
    elif scaling == "linear":
        return {"rope_type": "linear", "factor": layout.number("rope.scaling.factor", 1.0)}
    raise UnsupportedArchitecture(
        f"{layout.path} scales its rotary positions in a way ({scaling}) that the Hub's Llama config does not have. "
        "Use the same model in the Hub's format (safetensors)."
    )


def _llama3_factors(scaling: dict[str, Any], theta: float, d_head: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return how much each rotary frequency is slowed down: not at all where fast, by `factor` where slow."""
    wavelength = 2 * math.pi * theta ** (np.arange(0, d_head, 2) / d_head)
    low, high, context = (scaling[key] for key in _LLAMA3)
    smooth = np.clip((context / wavelength - low) / (high - low), 0, 1)
    factors: np.ndarray[Any, np.dtype[np.float64]] = 1 / ((1 - smooth) / scaling["factor"] + smooth)
    return factors
