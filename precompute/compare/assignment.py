"""Which layer of one model goes with which of another."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment


def assign(similarity: NDArray[np.float64]) -> NDArray[np.uint16]:
    """(L_A, L_B) -> (m, 2): layers one to one with the largest sum of similarities, by the layer of A."""
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return np.stack([rows, columns], axis=1).astype(np.uint16)
