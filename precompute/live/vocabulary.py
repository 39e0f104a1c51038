"""Turn states and vectors into words: by products with W_U or W_E, the largest scores of each row, and probabilities.
This is done by the kernels of token_kernel on a CPU, and by torch on other devices."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from lexiscope.precompute.live import token_kernel
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import LikelyToken, Predicted, ScoredToken
from lexiscope.precompute.shape import Predicts

OWN_FIRST = -1  # in place of a token: the one that is most likely there
PRODUCT_ROWS = 256  # rows per product: their scores are d_vocab * PRODUCT_ROWS * 4 bytes

Tick = Callable[[float], None]  # called with how many rows of a product with the vocabulary are done


@dataclass(frozen=True)
class Top:
    ids: Tensor  # (n, k)
    values: Tensor  # (n, k), falling


def top_tokens(scores: Tensor, k: int, only: Tensor | None = None) -> Top:
    """Return the k largest of each row of scores (n, d_vocab); of equal scores the smaller id comes first. Where `only`
    (d_vocab,) is given, other tokens than those it flags are left out."""
    k = min(k, scores.shape[1])
    if only is not None:
        k, scores = min(k, int(only.sum())), scores.masked_fill(~only, -torch.inf)
    if not k:
        return Top(torch.empty(len(scores), 0, dtype=torch.long, device=scores.device), scores[:, :0])
    if scores.device.type == "cpu":
        ids, values = torch.empty(len(scores), k, dtype=torch.long), torch.empty(len(scores), k)
        _by_rows(token_kernel.first_tokens, scores, ids, values)
        return Top(ids, values)
    best = scores.topk(k, dim=1)
    by_id = best.indices.argsort(dim=1)
    ids, values = best.indices.gather(1, by_id), best.values.gather(1, by_id)
    order = values.argsort(dim=1, descending=True, stable=True)
    return Top(ids.gather(1, order), values.gather(1, order))


def count_above(scores: Tensor, bounds: Tensor) -> Tensor:
    """Return for each row of scores (n, d_vocab) how many are larger than its bound, of (n,)."""
    if scores.device.type != "cpu":
        return (scores > bounds[:, None]).sum(dim=1)
    counts = torch.empty(len(scores), dtype=torch.long)
    _by_rows(token_kernel.count_above, scores, bounds.contiguous(), counts)
    return counts


def count_around(scores: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each row of scores (n, d_vocab) and its m ranges from low to high (n, m), float64 on the CPU, count the
    scores above and within each range, (n, m) each; and return row, range and token (found, 3) of the scores in ranges
    that hold several. All results are on the CPU."""
    infinity = torch.tensor(torch.inf)
    low, high = low.float().nextafter(-infinity), high.float().nextafter(infinity)  # no bound becomes narrower
    if scores.device.type != "cpu":
        ranges = [[bound[:, m, None].to(scores.device) for bound in (low, high)] for m in range(low.shape[1])]
        above = torch.stack([(scores > top).sum(dim=1).cpu() for _, top in ranges], dim=1)
        inside = torch.stack([(scores >= bottom) & (scores <= top) for bottom, top in ranges], dim=1)
        within = inside.sum(dim=2)
        return above, within.cpu(), torch.nonzero(inside & (within > 1)[:, :, None]).cpu()
    above, within = (torch.empty(low.shape, dtype=torch.long) for _ in range(2))
    low, high = low.contiguous(), high.contiguous()
    _by_rows(token_kernel.count_around, scores, low, high, above, within)
    several = token_kernel.find_several(scores.numpy(), low.numpy(), high.numpy(), within.numpy())
    return above, within, torch.from_numpy(several)


def sums_of_exponentials(scores: Tensor, highest: Tensor) -> Tensor:
    """Return the sum of exp(score - highest) of each row of (n, d_vocab), where highest (n,) is its largest score.

    The sum is at least 1, the term of the largest score: rounding must not make a probability larger than 1.
    """
    if scores.device.type != "cpu":
        return (scores - highest[:, None]).exp_().sum(dim=1).clamp_(min=1)
    sums = torch.empty(len(scores))
    _by_rows(token_kernel.sums_of_exponentials, scores, highest.contiguous(), sums)
    return sums.clamp_(min=1)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _by_rows(kernel: Callable[..., None], *arrays: Tensor) -> None:
    """Call a kernel of token_kernel in as many threads as torch has, each for its share of the rows of all arrays.

    These threads wait for each other only at the end. torch's own threads would wait for each other often in so much
    work, and long on a busy machine.
    """
    threads = torch.get_num_threads()
    share = -(-len(arrays[0]) // threads)
    if threads == 1 or share < 8:
        kernel(*(array.numpy() for array in arrays))
        return
    starts = range(0, len(arrays[0]), share)
    shares = ([array[start : start + share].numpy() for array in arrays] for start in starts)
    for future in [_pool(threads).submit(kernel, *rows) for rows in shares]:
        future.result()


@dataclass(frozen=True)
class Likelihoods:
    """What the model predicts from a stream at n positions, by its own last steps."""

    ids: Tensor  # (n, k)
    p: Tensor  # (n, k), falling
    of: Tensor  # (n, m) probabilities of the tokens that were asked about
    rank: Tensor  # (n, m) their ranks: 1 plus how many tokens are more probable
    logit: Tensor  # (n, m)
    log_p: Tensor  # (n, m) natural logarithms; of use only where p are probabilities


def likelihoods(
    w: Weights, stream: Tensor, k: int, asked: Tensor | None, tick: Tick = lambda _: None, only: Tensor | None = None
) -> Likelihoods:
    """Predict from a stream (n, d_model) by the model's own last steps. If the model has no head that predicts tokens,
    find the nearest tokens of W_U instead: p and logits are then cosines.

    `asked` (n, m) are more tokens to tell of, where OWN_FIRST stands for the position's own first token. Where `only`
    (d_vocab,) is given, the k tokens are those of the ones it flags; ranks and probabilities are among all tokens.
    """
    results: list[tuple[Tensor, ...]] = []
    for start in range(0, len(stream), PRODUCT_ROWS):
        some = slice(start, start + PRODUCT_ROWS)
        results.append(_likelihoods(w, stream[some], k, None if asked is None else asked[some], only))
        tick(len(stream[some]))
    return Likelihoods(*(torch.cat(column) for column in zip(*results, strict=True)))


def _likelihoods(w: Weights, x: Tensor, k: int, asked: Tensor | None, only: Tensor | None) -> tuple[Tensor, ...]:
    """Return the fields of Likelihoods for one block of positions, whose scores are freed before the next block is
    computed."""
    logits = w.model.logits(x) if w.model.predicts else w.cosines(x)  # (block, d_vocab)
    top = top_tokens(logits, k, only)
    first = top if only is None else top_tokens(logits, 1)
    asked = first.ids[:, :0] if asked is None else asked.where(asked != OWN_FIRST, first.ids[:, :1])
    logit = logits.gather(1, asked)
    rank = torch.stack([1 + count_above(logits, column) for column in logit.T], dim=1) if logit.numel() else asked
    if not w.model.predicts:
        return top.ids, top.values, logit, rank, logit, logit
    highest = first.values[:, :1]
    total = sums_of_exponentials(logits, highest[:, 0])[:, None]
    log_p = logit - highest - total.log()
    return top.ids, (top.values - highest).exp() / total, log_p.exp(), rank, logit, log_p


def predicted(predicts: Predicts, ids: Iterable[int], numbers: Iterable[float]) -> Predicted:
    """Return tokens with their probabilities, or with their cosines if the model only has nearest tokens."""
    if predicts == "nearest":
        return scored(ids, numbers)
    likely: list[LikelyToken] = [{"id": token, "p": p} for token, p in zip(ids, numbers, strict=True)]
    return likely


def scored(ids: Iterable[int], scores: Iterable[float]) -> list[ScoredToken]:
    return [{"id": token, "score": score} for token, score in zip(ids, scores, strict=True)]


def best_tokens(scores: Tensor, k: int, only: Tensor | None = None) -> Iterator[list[ScoredToken]]:
    """Yield the k tokens with the largest scores of each row (n, d_vocab), of those that `only` flags if given."""
    top = top_tokens(scores, k, only)
    yield from map(scored, top.ids.tolist(), top.values.tolist())
