"""What the measurements of a model show, in plain sentences made of its numbers, beside what the paper found."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.html.lab_charts import COMPARED, COVERING, SAMPLES, coverage_of_lenses, of_lenses, printed, ratio, samples
from app.html.numbers import percent, thousands
from precompute.index.index import ranges
from precompute.index.lab_record import (
    CoveragePart,
    Coverages,
    InversePart,
    KeepK,
    Similarities,
    SimilarityPart,
    TextsUsed,
)

ABOUT_EQUAL = 0.05  # two means that differ by less than this share of either are said to be alike
FEWEST_TEXTS = 20
TWICE = 1.95  # from here on one says how many times


@dataclass(frozen=True)
class Finding:
    """What a measurement shows of one of its subjects; the first of a list, without a subject, is the sum of it."""

    subject: str
    text: str


def similarity_findings(similarity: SimilarityPart) -> list[Finding]:
    rows, unlike = [], []
    for compared, name in COMPARED.items():
        texts = []
        for lens, of in of_lenses(similarity, compared):
            texts.append(f"{lens}: {_of_pairs(of, similarity, neurons=compared == 'ff')}")
            above, layers = count_above(of.matched, of.shuffled_high)
            if lens == "dot" and 2 * above <= layers:
                unlike.append(name)
        if texts:
            rows.append(Finding(name, _sentences(texts)))
    told = "matched pairs are more alike than shuffled ones, in most layers"
    if unlike:
        told = f"under dot, {_and(unlike)} are no more alike than shuffled ones in half of the layers or more"
    return [Finding("", f"{'Unlike in' if unlike else 'As in'} the paper: {told}."), *rows] if rows else []


def _of_pairs(of: Similarities, similarity: SimilarityPart, neurons: bool) -> str:
    above, layers = count_above(of.matched, of.shuffled_high)
    text = f"{percent(mean(of.matched))} in common, {times(mean(of.matched), mean(of.shuffled))} shuffled"
    text += f", more than in any of {similarity.shuffles} shuffles in {above} of {layers} layers"
    below = [
        layer
        for layer, (mine, chance) in enumerate(zip(of.matched, of.shuffled, strict=True))
        if mine is not None and chance is not None and mine < chance
    ]
    if below:
        text += f", less than shuffled in layer{'s' if len(below) > 1 else ''} {ranges(tuple(below))}"
    if mean(of.matched_bottom) >= TWICE * mean(of.shuffled_bottom) > 0:
        text += f"; with the bottom of the second {percent(mean(of.matched_bottom))}"
        text += f" (shuffled {percent(mean(of.shuffled_bottom))})"
    if neurons:
        text += f"; {percent(mean(of.common_15))} of the neurons have at least 15% of the {similarity.k} in common"
        text += f" (shuffled {percent(mean(of.shuffled_common_15))})"
    return text


def inverse_findings(inverse: InversePart) -> list[Finding]:
    rows = [Finding(SAMPLES[sample], _of_keep_k(of)) for sample, of in samples(inverse)]
    small = printed("keepk_small_ks").value
    better = [
        transpose > pseudo
        for _, of in samples(inverse)
        for k, transpose, pseudo in zip(of.k, of.transpose, of.pseudo, strict=True)
        if k in small
    ]
    if not better:
        return rows
    told = f"for small k, up to {max(small)}, the transpose is better for {sum(better)} of {len(better)} values of k, "
    told += "over all samples"
    agrees = [all(better)] if 2 * sum(better) > len(better) else [False]
    known = printed("keepk_k").value
    if inverse.normal and known in inverse.normal.k:
        at = inverse.normal.k.index(known)
        mine, other = inverse.normal.transpose[at], inverse.normal.pseudo[at]
        agrees.append(mine > other)
        told += f"; of normal vectors at k = {thousands(known)} it is {ratio(mine)} against {ratio(other)}"
        told += f", in the paper {printed('keepk_score_transpose').value} against {printed('keepk_score_pinv').value}"
    word = "As" if all(agrees) else "Partly as" if any(agrees) or 2 * sum(better) > len(better) else "Unlike"
    return [Finding("", f"{word} in the paper: {told}."), *rows]


def coverage_findings(coverage: CoveragePart) -> list[Finding]:
    rows: list[Finding] = []
    unlike: list[str] = []
    errors = 2 / math.sqrt(coverage.texts.count)  # standard errors of a mean, as a share of the standard deviation
    for kind, name in COVERING.items():
        texts = []
        for lens, of in coverage_of_lenses(coverage, kind):
            own, last = (_of_state(of, target, errors) for target in ("own", "last"))
            texts.append(f"{lens}: of the own layer’s state {own}, of the last {last}")
            if lens == "dot" and mean(of.own) - mean(of.own_random) <= errors * mean(of.own_sd):
                unlike.append(name)
        if texts:
            rows.append(Finding(name, _sentences(texts)))
    told = "active vectors cover more of the state that they were active at than of a random one"
    if unlike:
        told = f"under dot, {_and(unlike)} cover about as much, or less, of the state that they were active at as of a "
        told += "random one"
    word = "As" if not unlike else "Unlike" if len(unlike) == len(rows) else "Partly as"
    told = f"{word} in the paper: {told}, on average over layers."
    few = f" {few_texts(coverage.texts)}" if few_texts(coverage.texts) else ""
    return [Finding("", f"{told}{_of_random_states(coverage)}{few}"), *rows] if rows else []


def few_texts(texts: TextsUsed) -> str:
    """A warning; "" where there are enough."""
    if texts.count >= FEWEST_TEXTS:
        return ""
    count = f"{texts.count} {'text' if texts.count == 1 else 'texts'}"
    return f"Only {count}: too few to rely on; measure on {FEWEST_TEXTS} or more."


def _of_random_states(coverage: CoveragePart) -> str:
    """How much of a random state is covered, as a share of what is covered of the own layer's state: over all kinds."""
    covered: dict[str, list[tuple[float, float]]] = {}
    for kind in COVERING:
        for lens, of in coverage_of_lenses(coverage, kind):
            covered.setdefault(lens, []).append((mean(of.own), mean(of.own_random)))
    shares = [
        f"{sum(random for _, random in pairs) / own:.0%} as much under {lens}"
        for lens, pairs in covered.items()
        if (own := sum(own for own, _ in pairs))
    ]
    return f" A random state is covered {_and(shares)}." if shares else ""


def _of_keep_k(of: KeepK) -> str:
    better = [k for k, transpose, pseudo in zip(of.k, of.transpose, of.pseudo, strict=True) if transpose > pseudo]
    at = of.k.index(known) if (known := printed("keepk_k").value) in of.k else len(of.k) - 1
    figures = f"{ratio(of.transpose[at])} with the transpose and {ratio(of.pseudo[at])} with the pseudo-inverse"
    text = f"{figures} at k = {thousands(of.k[at])}; the transpose is better {_which(better, of.k)}."
    if of.transpose_same and of.pseudo_same:
        text += f" With x and y of one sample: {ratio(of.transpose_same[at])} and {ratio(of.pseudo_same[at])}."
    return text


def _which(some: Sequence[int], all_k: Sequence[int]) -> str:
    """Which values of k these are."""
    if len(some) in (0, len(all_k)):
        return "for every k" if some else "for no k"
    if [*some] == [*all_k[: len(some)]]:
        return f"up to k = {thousands(some[-1])}" if len(some) > 1 else f"at k = {thousands(some[0])} alone"
    if [*some] == [*all_k[-len(some) :]]:
        return f"from k = {thousands(some[0])} on"
    return f"for {len(some)} of {len(all_k)} values of k"


def _of_state(of: Coverages, target: str, errors: float) -> str:
    """Clearly more: by more than two standard errors of the mean over texts."""
    mine, random, sd = (getattr(of, f"{target}{which}") for which in ("", "_random", "_sd"))
    least = [None if at is None or by is None else at + errors * by for at, by in zip(random, sd, strict=True)]
    above, layers = count_above(mine, least)
    return f"{percent(mean(mine))} against {percent(mean(random))} (clearly more in {above} of {layers} layers)"


def mean(values: Iterable[float | None]) -> float:
    """Over the layers that were measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else 0.0


def count_above(values: Sequence[float | None], others: Sequence[float | None]) -> tuple[int, int]:
    """In how many layers one is above the other, of how many."""
    pairs = [(a, b) for a, b in zip(values, others, strict=True) if a is not None and b is not None]
    return sum(a > b for a, b in pairs), len(pairs)


def times(value: float, other: float) -> str:
    """How much one is of the other, with the other's number: "10 times the 0.4%"."""
    if other == 0:
        return "as against none" if value else "as little as"
    how_often, text = value / other, percent(other)
    if how_often >= TWICE:
        return f"{how_often:.0f} times the {text}" if how_often >= 9.5 else f"{how_often:.1f} times the {text}"
    if how_often > 1 + ABOUT_EQUAL:
        return f"{how_often - 1:.0%} more than the {text}"
    return f"{'about as much as' if how_often >= 1 - ABOUT_EQUAL else 'less than'} the {text}"


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(f"Under {text}." for text in texts)


def _and(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
