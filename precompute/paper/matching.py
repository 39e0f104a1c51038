"""How much of a printed list is in ours: exactly, and up to the leading space, which print may have lost."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

Entry = tuple[str, ...]  # a token, or the two of a pair, as texts


@dataclass(frozen=True, slots=True)
class Ranks:
    """Of a printed entry in our list, from 1; None where it is not there."""

    exactly: int | None = None
    up_to_space: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """How many printed entries are among our first ones."""

    exactly: int  # of those whose spaces are known
    exactly_of: int
    up_to_space: int
    of: int
    doubtful: int  # up to the space, of those from garbled print, which the others leave out
    doubtful_of: int


def ranks_in_ours(printed: Sequence[Entry], ours: Sequence[Entry], doubtful: Collection[int] = ()) -> list[Ranks]:
    """By printed entry. No entry of ours stands for two: of printed ones that differ in spaces alone, the first gets
    the first of ours that is equal up to the space, the second the second, and so on; doubtful ones come last."""
    exact = {entry: rank for rank, entry in reversed([*enumerate(ours, 1)])}
    left: dict[Entry, Iterator[int]] = {}
    of_bare: defaultdict[Entry, list[int]] = defaultdict(list)
    for rank, entry in enumerate(ours, 1):
        of_bare[bare(entry)].append(rank)
    ranks = [Ranks()] * len(printed)
    for at in sorted(range(len(printed)), key=lambda at: at in doubtful):
        key = bare(printed[at])
        ranks[at] = Ranks(exact.get(printed[at]), next(left.setdefault(key, iter(of_bare[key])), None))
    return ranks


def counted(
    ranks: Sequence[Ranks], first: int, doubtful: Collection[int] = (), unknown_space: Collection[int] = ()
) -> Counted:
    """Of the printed entries with these ranks, those among our first ones; `doubtful` and `unknown_space` number
    printed entries."""
    sure = [at for at in range(len(ranks)) if at not in doubtful]
    spaced = [at for at in sure if at not in unknown_space]
    return Counted(
        exactly=sum(_among(ranks[at].exactly, first) for at in spaced),
        exactly_of=len(spaced),
        up_to_space=sum(_among(ranks[at].up_to_space, first) for at in sure),
        of=len(sure),
        doubtful=sum(_among(ranks[at].up_to_space, first) for at in doubtful),
        doubtful_of=len(doubtful),
    )


def bare(entry: Entry) -> Entry:
    """Without the leading space of each token."""
    return tuple(text.removeprefix(" ") for text in entry)


def _among(rank: int | None, first: int) -> bool:
    return rank is not None and rank <= first
