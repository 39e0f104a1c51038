"""Which tokens two vocabularies have in common, and what is said where they are too few."""

import pytest

from lexiscope.precompute.compare.common_tokens import check_enough, common_tokens
from lexiscope.precompute.errors import BuildError

DOG, CAT, COW, NONE = b" dog", b" cat", b"\xff\xfe", b""


@pytest.mark.parametrize(("a", "b", "ids_a", "ids_b", "matched"), [
    ([DOG, CAT, COW], [DOG, CAT, COW], [0, 1, 2], [0, 1, 2], "ids"),
    ([DOG, CAT], [DOG, CAT, COW], [0, 1], [0, 1], "ids"),  # a tuned model has one more
    ([DOG, CAT, COW], [DOG, CAT, NONE, NONE], [0, 1], [0, 1], "ids"),  # and a padded one none
    ([DOG, NONE, COW], [DOG, NONE, COW], [0, 2], [0, 2], "ids"),
    ([DOG, DOG, CAT], [DOG, DOG, CAT], [0, 1, 2], [0, 1, 2], "ids"),
    ([DOG, CAT, COW], [COW, DOG, CAT], [0, 1, 2], [1, 2, 0], "text"),
    ([DOG, CAT, DOG], [CAT, NONE, DOG, CAT], [0, 1], [2, 0], "text"),  # twice: by the smaller id
    ([DOG, b"dog"], [b"dog", b"DOG"], [1], [0], "text"),  # space and case count
    ([DOG], [CAT], [], [], "text"),
])  # fmt: skip
def test_common_tokens(a: list[bytes], b: list[bytes], ids_a: list[int], ids_b: list[int], matched: str) -> None:
    common = common_tokens(a, b)
    assert (common.a.tolist(), common.b.tolist(), common.matched) == (ids_a, ids_b, matched)
    assert len(common) == len(ids_a)


@pytest.mark.parametrize(("b", "how"), [
    ([DOG, CAT], "one and other have 2 tokens in common (their ids mean the same), and .* at least 3"),
    ([CAT, DOG], "have 2 tokens in common (matched by their text, since ids differ)"),
])  # fmt: skip
def test_too_few(b: list[bytes], how: str) -> None:
    common = common_tokens([DOG, CAT], b)
    check_enough(common, "one", "other", least=2)
    with pytest.raises(BuildError, match=how.replace("(", r"\(").replace(")", r"\)")):
        check_enough(common, "one", "other", least=3)
