"""The pair search in plain tiles, for any device: the whole product, a running floor, candidates to the CPU.

Made for a GPU (where it has not been measured); on the CPU it is what pair_search is measured against.
"""

import torch

from precompute.project.pairs.board import Board
from precompute.project.pairs.space import Factor, least_error
from precompute.project.rounding import gamma

TILE = 1024  # rows; a tile is TILE x d_vocab
MANY = 4_000_000  # hits of one tile that are moved at once


def search_tiles(
    A: Factor, B: Factor, rows: torch.Tensor, columns: torch.Tensor, surface: torch.Tensor | None, boards: list[Board]
) -> None:
    """Gives the boards every pair of `rows` and `columns` (token ids, on the device) that may matter to them.

    Two tokens of one surface are no pair; without surfaces every two are.
    """
    if not len(rows) or not len(columns):
        return
    b = B.values[columns]
    b_norm = float(_norms(b).max())
    b_error = float(B.error[columns].max())
    for start in range(0, len(rows), TILE):
        i = rows[start : start + TILE]
        a = A.values[i]
        a_norm = _norms(a)
        error = A.error[i] * (b_norm + b_error) + a_norm * (b_error + gamma(a.shape[1] + 8) * b_norm)
        error += a.shape[1] * least_error(A, B)  # products too small for float32
        if surface is None:
            pairs = torch.ones((), dtype=torch.bool, device=a.device).expand(len(i), len(columns))
        else:
            pairs = surface[i][:, None] != surface[columns]
        _tile(a @ b.T, error, pairs, i, columns, boards)


def _tile(
    scores: torch.Tensor,
    error: torch.Tensor,
    pairs: torch.Tensor,
    i: torch.Tensor,
    j: torch.Tensor,
    boards: list[Board],
) -> None:
    for board in boards:
        if board.top == -float("inf"):
            _first_floors(scores, error, pairs, board)
    top, bottom = min(board.top for board in boards), max(board.bottom for board in boards)
    hits = ((scores >= (top - error)[:, None]) | (scores <= (bottom + error)[:, None])) & pairs
    if len(i) > 1 and int(hits.sum()) > MANY:  # in halves, with floors that rise between
        half = len(i) // 2
        _tile(scores[:half], error[:half], pairs[:half], i[:half], j, boards)
        _tile(scores[half:], error[half:], pairs[half:], i[half:], j, boards)
        return
    at, column = torch.nonzero(hits, as_tuple=True)
    found = [x.cpu().numpy() for x in (i[at].int(), j[column].int(), scores[at, column], error[at])]
    for board in boards:
        board.add(*found)


def _first_floors(scores: torch.Tensor, error: torch.Tensor, pairs: torch.Tensor, board: Board) -> None:
    lower = torch.where(pairs, scores - error[:, None], -torch.inf).flatten()
    upper = torch.where(pairs, scores + error[:, None], torch.inf).flatten()
    if len(lower) >= board.n:
        top = torch.topk(lower, board.n, sorted=False).values.min()
        bottom = torch.topk(upper, board.n, largest=False, sorted=False).values.max()
        board.know(float(top), float(bottom))


def _norms(rows: torch.Tensor) -> torch.Tensor:
    """Rounded up; in float64, because the squares of tiny values vanish in float32."""
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms.to(rows) * (1 + 1e-5)
