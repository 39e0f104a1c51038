"""Sentences about measurements say what their numbers are."""

import pytest

from app.html.lab_findings import count_above, coverage_findings, inverse_findings, mean, similarity_findings, times
from precompute.index.lab_record import CoveragePart, InversePart, Similarities, SimilarityPart


@pytest.mark.parametrize(("value", "other", "said"), [
    (0.04, 0.004, "10 times the 0.4%"), (0.04, 0.02, "2.0 times the 2.0%"), (0.03, 0.02, "50% more than the 2.0%"),
    (0.0205, 0.02, "about as much as the 2.0%"), (0.0196, 0.02, "about as much as the 2.0%"),
    (0.01, 0.02, "less than the 2.0%"), (0.0, 0.02, "less than the 2.0%"), (0.1, 0.0, "as against none"),
    (0.0, 0.0, "as little as"),
])  # fmt: skip
def test_times(value: float, other: float, said: str) -> None:
    assert times(value, other) == said


def test_layers_that_were_not_measured_do_not_count() -> None:
    assert mean([None, 0.2, 0.4]) == pytest.approx(0.3)
    assert mean([None]) == 0
    assert count_above([None, 0.2, 0.4, 0.1], [0.1, 0.1, None, 0.1]) == (1, 2)


@pytest.mark.parametrize(("transpose", "said", "verdict"), [
    ((0.5, 0.5, 0.5), "for every k", "As in the paper"), ((0.1, 0.1, 0.1), "for no k", "Unlike in the paper"),
    ((0.5, 0.5, 0.1), "up to k = 100", "Partly as in the paper"),
    ((0.1, 0.5, 0.5), "from k = 100 on", "Partly as in the paper"),
    ((0.5, 0.1, 0.1), "at k = 10 alone", "Unlike in the paper"),
    ((0.5, 0.1, 0.5), "for 2 of 3 values of k", "Partly as in the paper"),
])  # fmt: skip
def test_which_inverse_is_better(transpose: tuple[float, ...], said: str, verdict: str) -> None:
    """The paper has the transpose ahead for small k, and at 1,000."""
    keep_k = {"k": (10, 100, 1000), "transpose": transpose, "pseudo": (0.3, 0.3, 0.3), "samples": 300}
    summed, normal = inverse_findings(InversePart.model_validate({"normal": keep_k, "seed": 0}))
    assert summed.text.startswith(verdict)
    assert f"at k = 1,000 it is {transpose[2]:.2f} against 0.30, in the paper 0.83 against 0.1" in summed.text
    assert normal.text.endswith(f"the transpose is better {said}.")


def test_none_of_the_papers_k() -> None:
    keep_k = {"k": (7,), "transpose": (0.5,), "pseudo": (0.3,), "samples": 300}
    (only,) = inverse_findings(InversePart.model_validate({"normal": keep_k, "seed": 0}))
    assert "0.50 with the transpose and 0.30 with the pseudo-inverse at k = 7" in only.text


@pytest.mark.parametrize(("own", "verdict", "clear"), [
    (0.3, "As in the paper", "(clearly more in 2 of 2 layers)"),
    (0.21, "Unlike in the paper", "(clearly more in 0 of 2"),
    (0.1, "Unlike in the paper", "(clearly more in 0 of 2 layers)"),
])  # fmt: skip
@pytest.mark.parametrize("count", [4, 100])
def test_coverage_is_more_only_by_two_standard_errors(own: float, verdict: str, clear: str, count: int) -> None:
    """A standard deviation of 0.1 over 100 texts: more is more than 0.02; over 4 texts, more than 0.1."""
    numbers = dict.fromkeys(("own_random", "last", "last_random"), (0.2, 0.2))
    numbers |= {f"{name}_sd": (0.1, 0.1) for name in ("own", "own_random", "last", "last_random")}
    texts = {"name": "a.txt", "sha256": "1" * 64, "count": count, "length": 128, "positions": 900}
    made = {"k": 100, "m": 10, "drawn": 300, "seed": 0, "layers": (0, 1), "texts": texts}
    part = CoveragePart.model_validate({"ff_key": numbers | {"own": (own, own)}, **made})
    summed, of_keys = coverage_findings(part)
    if count == 100:
        assert summed.text.startswith(verdict)
        assert clear in of_keys.text
        assert "Only" not in summed.text
    else:
        assert "Only 4 texts: too few to rely on" in summed.text


def test_layers_below_chance_are_named() -> None:
    of_ff = dict.fromkeys(Similarities.model_fields, (0.1, 0.2, 0.05)) | {"shuffled": (0.05, 0.1, 0.1)}
    made = {"k": 100, "shuffles": 10, "seed": 0, "layers": (0, 1, 2)}
    findings = similarity_findings(SimilarityPart.model_validate({"ff": of_ff, **made}))
    assert ", less than shuffled in layer 2" in findings[-1].text


def test_one_sample_is_told_apart() -> None:
    keep_k = {"k": (10, 1000), "transpose": (0.1, 0.2), "pseudo": (0.3, 0.3), "samples": 300}
    keep_k |= {"transpose_same": (0.7, 0.83), "pseudo_same": (0.2, 0.1)}
    normal = inverse_findings(InversePart.model_validate({"normal": keep_k, "seed": 0}))[-1]
    assert normal.text.endswith("With x and y of one sample: 0.83 and 0.10.")
