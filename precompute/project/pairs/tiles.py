"""Search for pairs in tiles of the whole product, on any device. The floors that candidates must reach rise from tile
to tile, and the candidates are moved to the CPU. This is written for a GPU, where it has not been measured."""

import torch

from lexiscope.precompute.project.pairs.factor import Factor, underflow_error
from lexiscope.precompute.project.pairs.leaderboard import Leaderboard
from lexiscope.precompute.project.rounding import gamma

PLAIN_TILE_ROWS = 1024  # rows of a tile, which has all columns
MOST_HITS = 4_000_000  # pairs of one tile that are moved to the CPU at once


def search_tiles(
    A: Factor,
    B: Factor,
    rows: torch.Tensor,
    columns: torch.Tensor,
    surface: torch.Tensor | None,
    boards: list[Leaderboard],
) -> None:
    """Add to the leaderboards every pair of a token in `rows` and a token in `columns` (ids, on the device) that may be
    on their lists.

    Two tokens of one surface are no pair; if no surfaces are given, any two tokens are.
    """
    if not len(rows) or not len(columns):
        return
    b = B.values[columns]
    b_norm = float(_norms(b).max())
    b_error = float(B.error[columns].max())
    for start in range(0, len(rows), PLAIN_TILE_ROWS):
        i = rows[start : start + PLAIN_TILE_ROWS]
        a = A.values[i]
        a_norm = _norms(a)
        error = A.error[i] * (b_norm + b_error) + a_norm * (b_error + gamma(a.shape[1] + 8) * b_norm)
        error += a.shape[1] * underflow_error(A, B)  # the error of products that are too small for float32
        if surface is None:
            pairs = torch.ones((), dtype=torch.bool, device=a.device).expand(len(i), len(columns))
        else:
            pairs = surface[i][:, None] != surface[columns]
        _search_tile(a @ b.T, error, pairs, i, columns, boards)


def _search_tile(
    scores: torch.Tensor,  # (n, m)
    error: torch.Tensor,  # (n,)
    pairs: torch.Tensor,  # (n, m) which of them are pairs
    i: torch.Tensor,  # (n,) tokens of the rows
    j: torch.Tensor,  # (m,) tokens of the columns
    boards: list[Leaderboard],
) -> None:
    for board in boards:
        if board.top == -float("inf"):
            _first_floors(scores, error, pairs, board)
    top, bottom = min(board.top for board in boards), max(board.bottom for board in boards)
    hits = ((scores >= (top - error)[:, None]) | (scores <= (bottom + error)[:, None])) & pairs
    if len(i) > 1 and int(hits.sum()) > MOST_HITS:  # in halves: the first may raise the floors of the second
        half = len(i) // 2
        _search_tile(scores[:half], error[:half], pairs[:half], i[:half], j, boards)
        _search_tile(scores[half:], error[half:], pairs[half:], i[half:], j, boards)
        return
    row, column = torch.nonzero(hits, as_tuple=True)
    candidates = [x.cpu().numpy() for x in (i[row].int(), j[column].int(), scores[row, column], error[row])]
    for board in boards:
        board.add(*candidates)


def _first_floors(scores: torch.Tensor, error: torch.Tensor, pairs: torch.Tensor, board: Leaderboard) -> None:
    """Give floors, which pairs must reach, to a leaderboard that has none: scores that n pairs of a tile surely
    reach."""
    lower = torch.where(pairs, scores - error[:, None], -torch.inf).flatten()
    upper = torch.where(pairs, scores + error[:, None], torch.inf).flatten()
    if len(lower) >= board.n:
        top = torch.topk(lower, board.n, sorted=False).values.min()
        bottom = torch.topk(upper, board.n, largest=False, sorted=False).values.max()
        board.raise_floors(float(top), float(bottom))


def _norms(rows: torch.Tensor) -> torch.Tensor:
    """Return the norms of the rows, rounded up. They are computed in float64, because the squares of tiny values are 0
    in float32."""
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms.to(rows) * (1 + 1e-5)
