"""Bound how far a float32 computation can be from the true value. With these bounds the searches prove that they miss
nothing.

This is standard forward error analysis (Higham, Accuracy and Stability of Numerical Algorithms, chapter 3): a dot
product of length n, summed in any order, with or without fused multiply-add, is off by at most gamma(n) |x||y|.
"""

UNIT = 2.0**-24  # unit roundoff of float32
TINY = 2.0**-126  # below this float32 may flush to zero
LARGEST_SCORE = 8.0e37  # a quarter of the largest float32: the difference of two scores is finite too


def gamma(n: int) -> float:
    """Return the relative error bound of n float32 roundings, with a little room for rounding the bound itself."""
    return 1.01 * n * UNIT / (1 - n * UNIT)
