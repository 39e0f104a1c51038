"""The numbers that the paper prints beside ours, where the index, the laboratory or this page has one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from app.views.paper_neurons import LookupCompared
from precompute.errors import IndexFault
from precompute.index.index import Index
from precompute.index.lab_record import LabRecord
from precompute.index.shard_reader import NOTABLE
from precompute.paper.lists import MEDIUM, PrintedNumber, numbers

LARGE_K = 512  # from here on the paper calls k large
KEEP_K = 1000
SAME = 0.05  # of the larger: two means that differ by no more are about the same

OursAndRemark: TypeAlias = tuple[Any, str]  # ours, and what there is to say of it
Measured: TypeAlias = Callable[["_Sources"], OursAndRemark | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCompared:
    id: str
    section: str
    description: str
    kind: str
    printed: Any
    ours: Annotated[Any, Field(description="null: not measured here")]
    remark: str


@dataclass(frozen=True)
class _Sources:
    index: Index
    lab: LabRecord | None
    lookups: Sequence[LookupCompared]


def numbers_compared(index: Index, published: str, lookups: Sequence[LookupCompared]) -> list[NumberCompared]:
    """Every printed number; ours where it is of this model."""
    lab = None
    with suppress(IndexFault):  # the page of the laboratory says what is wrong
        lab = LabRecord.load(index.folder)
    sources = _Sources(index, lab if lab and lab.is_of(index.manifest) else None, lookups)
    measured = MEASURED if published == MEDIUM else MEASURED_OF_BASE
    return [_compared(each, measured.get(each.id), sources) for each in numbers()]


def _compared(printed: PrintedNumber, measure: Measured | None, sources: _Sources) -> NumberCompared:
    measured = measure(sources) if measure else None
    ours, remark = measured or (None, "")
    return NumberCompared(
        id=printed.id,
        section=printed.section,
        description=printed.description,
        kind=printed.kind,
        printed=printed.value,
        ours=ours,
        remark=remark or (_missing(printed.id) if measure and not measured else ""),
    )


def _missing(name: str) -> str:
    if name.startswith("lookup"):
        return "computed from the weights, if asked for"
    return "not measured yet: lexiscope lab" if name.startswith(("keepk", "rk")) else "no layer is built"


def _shape(name: str) -> Measured:
    return lambda sources: (getattr(sources.index.shape, name), "")


def _all_heads(sources: _Sources) -> OursAndRemark:
    return sources.index.shape.n_layers * sources.index.shape.n_heads, ""


def _similarities(sources: _Sources, *, shuffled: bool = False) -> Iterator[Any]:
    """(n,) by layer: Sim_k of the tops of key and value, lens dot; none where they are not stored."""
    index = sources.index
    if not index.stored.similarity or "dot" not in index.stored.lenses:
        return
    for layer in index.layers:
        with suppress(IndexFault):
            shard = index.shard(layer)
            yield (shard.all_shuffled if shuffled else shard.all_similarities)("ff", "dot")[:, 0]


def _share_in_common(sources: _Sources) -> OursAndRemark | None:
    """Lists of k tokens with a share s in common have a Jaccard index of s / (2 - s)."""
    layers = [*_similarities(sources)]
    if not layers:
        return None
    of_all = np.concatenate(layers)
    common = float((of_all >= np.float32(0.15 / (2 - 0.15))).mean())
    jaccard = float((of_all >= NOTABLE).mean())
    n_layers = sources.index.shape.n_layers
    built = f"{len(layers)} of {n_layers} layers; " if len(layers) < n_layers else ""
    return round(common, 4), f"{built}with Sim_k, the Jaccard index, of at least 0.15: {jaccard:.4f}"


def _matched(sources: _Sources) -> OursAndRemark | None:
    matched, shuffled = ([*_similarities(sources, shuffled=each)] for each in (False, True))
    if not matched:
        return None
    pairs = [(float(m.mean()), float(s.mean())) for m, s in zip(matched, shuffled, strict=True)]
    higher = sum(m > s for m, s in pairs)
    mean, by_chance = (float(np.mean(side)) for side in zip(*pairs, strict=True))
    sign = "≈" if abs(mean - by_chance) <= SAME * max(mean, by_chance) else ">" if mean > by_chance else "<"
    verdict = "about the same" if sign == "≈" else f"matching is higher in {higher} of {len(pairs)} layers"
    return f"{mean:.4f} {sign} {by_chance:.4f}", f"FF keys and values: {verdict}"


def _keep_k(inverse: str) -> Measured:
    def measure(sources: _Sources) -> OursAndRemark | None:
        normal = sources.lab.inverse.normal if sources.lab and sources.lab.inverse else None
        if not normal or KEEP_K not in normal.k:
            return None
        return round(getattr(normal, inverse)[normal.k.index(KEEP_K)], 4), f"{normal.samples} samples"

    return measure


def _keep_k_better(large: bool) -> Measured:
    """Where the transpose is better than the pseudo-inverse."""

    def measure(sources: _Sources) -> OursAndRemark | None:
        inverse = sources.lab.inverse if sources.lab else None
        if not inverse:
            return None
        said = []
        for name in ("normal", "ff_value", "hidden"):
            if scores := getattr(inverse, name):
                chosen = [at for at, k in enumerate(scores.k) if (k >= LARGE_K) == large and k != KEEP_K]
                better = sum(scores.transpose[at] > scores.pseudo[at] for at in chosen)
                said.append(f"{name}: {better} of {len(chosen)} k")
        return "transpose better: " + ", ".join(said), ""

    return measure


def _coverage(sources: _Sources) -> OursAndRemark | None:
    coverage = sources.lab.coverage if sources.lab else None
    if not coverage:
        return None
    said = []
    for kind in ("ff_key", "ff_value", "w_v", "w_o"):
        if scores := getattr(coverage, kind):
            pairs = [(a, b) for a, b in zip(scores.own, scores.own_random, strict=True) if None not in (a, b)]
            said.append(f"{kind} {sum(a > b for a, b in pairs)} of {len(pairs)}")
    return "aligned higher in layers: " + ", ".join(said), f"m = {coverage.m}, {coverage.texts.count} texts"


def _lookup(seed: str) -> Measured:
    def measure(sources: _Sources) -> OursAndRemark | None:
        lookup = next((each for each in sources.lookups if seed in each.seeds), None)
        if not lookup or not lookup.ranks:
            return None
        return ", ".join(f"{each['rank']} ({each['spelling']})" for each in lookup.ranks), "by how seeds become tokens"

    return measure


MEASURED: dict[str, Measured] = {
    "heads_gpt2_medium": _all_heads,
    "layers_gpt2_medium": _shape("n_layers"),
    "heads_per_layer_gpt2_medium": _shape("n_heads"),
    "vocab_size_rounded": _shape("d_vocab"),
    "ff_overlap_share_of_pairs": _share_in_common,
    "simk_claim": _matched,
    "lookup_rank_programming": _lookup("python"),
    "lookup_rank_measures": _lookup("cm"),
    "lookup_rank_animals": _lookup("horse"),
    "rk_claim": _coverage,
    "keepk_score_transpose": _keep_k("transpose"),
    "keepk_score_pinv": _keep_k("pseudo"),
    "keepk_claim_small": _keep_k_better(large=False),
    "keepk_claim_large": _keep_k_better(large=True),
}
MEASURED_OF_BASE: dict[str, Measured] = {
    "layers_gpt2_base": _shape("n_layers"),
    "vocab_size_rounded": _shape("d_vocab"),
}
