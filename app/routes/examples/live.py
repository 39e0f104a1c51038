"""Examples of pages that a worker answers for: seeds, relations, words through heads, prompts."""

from typing import Any

_MODEL = "smollm2-135m"
_DOG, _HORSE = {"id": 2767, "token": " dog"}, {"id": 10252, "token": " horse"}

LIVE: dict[str, Any] = {
    "seeds": {
        "model": _MODEL, "words": "horse,dog", "kind": "ff_value", "lens": "dot",
        "seeds": [
            {"word": "horse", "tokens": [_HORSE], "weight": 1.0}, {"word": "dog", "tokens": [_DOG], "weight": 1.0},
        ],
        "nearest": [{**_DOG, "score": 0.81}],
        "nearest_hubs": [{"id": 260, "token": " the"}],
        "results": [
            {
                "kind": "ff_value", "layer": 29, "index": 808, "head": None, "subhead": None, "direction": None,
                "score": 0.93, "scores": [0.88, 0.98], "top": [_DOG, _HORSE],
                "computed": False,
            }
        ],
        "heads": [
            {"layer": 29, "head": 3, "writes": [{**_DOG, "score": 1.2}], "seeks": [{**_HORSE, "score": 2.4}]}
        ],
    },
    "relation": {
        "model": _MODEL, "lens": "dot", "matrix": "vo", "shuffled_with": "words", "clear_rank": 491,
        "clear_chance": 2.7,
        "pairs": [
            {"source": {"word": "dog", "tokens": [_DOG]}, "target": {"word": "horse", "tokens": [_HORSE]},
             "ranked": _HORSE}
        ],
        "heads": [
            {
                "layer": 29, "head": 3, "rank": 7.0, "score": 1.3, "ranks": [7], "scores": [1.3],
                "rank_from_bottom": 49146.0, "shuffled": 24187.0, "identity": 2.0, "chance": 0.04, "verdict": "copies",
                "shuffled_from_bottom": 24966.0, "identity_from_bottom": 49151.0, "chance_from_bottom": 270.0,
                "verdict_from_bottom": "any",
                "first": {"from": {"id": 17114, "token": " Swiss"}, "to": {"id": 15031, "token": " Switzerland"},
                          "score": 9.873},
            }
        ],
    },
    "heads": {
        "model": _MODEL, "words": "dog,horse", "layers": "0", "head": 2, "lens": "dot", "end": "top",
        "groups": [
            {"word": "dog", "parts": [{"word": "dog", "tokens": [_DOG]}]},
            {"word": "horse", "parts": [{"word": "horse", "tokens": [_HORSE]}]},
        ],
        "heads": [
            {
                "layer": 0, "head": 2,
                "words": [
                    {"word": "dog", "seeks": [{**_HORSE, "score": 2.4}], "seeks_itself": None, "seeks_alike": None,
                     "writes": [{**_DOG, "score": 1.2}], "writes_itself": 1, "writes_alike": None},
                    {"word": "horse", "seeks": [{**_DOG, "score": 2.1}], "seeks_itself": None, "seeks_alike": None,
                     "writes": [{**_DOG, "score": 0.4}], "writes_itself": None, "writes_alike": None},
                ],
            }
        ],
    },
    "prompt": {
        "model": _MODEL, "text": "The capital of France is", "panel": "evolution", "convention": "vocabulary",
        "lens": "dot", "rows": "heads",
        "predicts": "next", "position": 4, "layer": 29, "head": None, "changes": [],
        "tokens": [{"id": 504, "token": "The"}],
        "prediction": [{"id": 7042, "token": " Paris", "p": 0.62}], "untouched": [], "appears": 27,
        "evolution": [
            {
                "layer": 29, "after": "ff", "cells": [[{"id": 7042, "token": " Paris", "p": 0.62}]],
                "answer": [0.62], "answer_rank": [1],
            }
        ],
        "evolution_untouched": None, "attention": None, "patterns": None, "patterns_by_token": None, "neurons": None,
        "neuron": None, "coverage": None, "attribution": None, "activations": None, "strongest": None,
    },
}  # fmt: skip
