"""Find the entries that the paper printed in the lists of an index: exactly, and apart from the leading space, which
print may have lost."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

Entry = tuple[str, ...]  # a token, or the two of a pair, as texts


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a printed entry in a list of the index, from 1; None if the entry is not there."""

    exactly: int | None = None
    up_to_space: int | None = None


def ranks_in_ours(printed: Sequence[Entry], ours: Sequence[Entry], doubtful: Collection[int] = ()) -> list[Ranks]:
    """Return the ranks of each printed entry in our list. No entry of our list is used twice: if printed entries differ
    in spaces alone, the first gets the first of our entries that is equal apart from the space, the second the second,
    and so on; doubtful ones come last."""
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


def bare(entry: Entry) -> Entry:
    """Return the entry without the leading space of each token."""
    return tuple(text.removeprefix(" ") for text in entry)
