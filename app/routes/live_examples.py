"""What live pages look like as JSON, in short: examples for the OpenAPI document, beside those of examples.py."""

from typing import Any

_MODEL = "smollm2-135m"
_DOG, _HORSE = {"id": 2767, "token": " dog"}, {"id": 10252, "token": " horse"}

LIVE_EXAMPLES: dict[str, Any] = {
    "seeds": {
        "model": _MODEL, "words": "horse,dog", "kind": "ff_value",
        "seeds": [
            {"word": "horse", "tokens": [_HORSE], "weight": 1.0}, {"word": "dog", "tokens": [_DOG], "weight": 1.0},
        ],
        "nearest": [{**_DOG, "score": 0.81}],
        "results": [
            {
                "kind": "ff_value", "layer": 29, "index": 808, "head": None, "subhead": None,
                "score": 0.93, "scores": [0.88, 0.98], "top": [_DOG, _HORSE],
            }
        ],
        "heads": [
            {"layer": 29, "head": 3, "writes": [{**_DOG, "score": 1.2}], "seeks": [{**_HORSE, "score": 2.4}]}
        ],
    },
    "relation": {
        "model": _MODEL, "lens": "dot",
        "pairs": [
            {"source": {"word": "dog", "tokens": [_DOG]}, "target": {"word": "horse", "tokens": [_HORSE]},
             "ranked": _HORSE}
        ],
        "heads": [
            {
                "layer": 29, "head": 3, "rank": 7.0, "score": 1.3, "ranks": [7], "scores": [1.3],
                "rank_from_bottom": 49146.0,
            }
        ],
    },
    "prompt": {
        "model": _MODEL, "text": "The capital of France is", "panel": "evolution", "convention": "final",
        "position": 4, "layer": 29, "head": None, "changes": [], "tokens": [{"id": 504, "token": "The"}],
        "prediction": [{"id": 7042, "token": " Paris", "p": 0.62}], "untouched": [], "appears": 27,
        "evolution": [
            {
                "layer": 29, "after": "ff", "cells": [[{"id": 7042, "token": " Paris", "p": 0.62}]],
                "answer": [0.62], "answer_rank": [1],
            }
        ],
        "evolution_untouched": None, "attention": None, "patterns": None, "neurons": None, "neuron": None,
        "coverage": None,
    },
}  # fmt: skip
