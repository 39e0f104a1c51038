"""Links from a token to the lists that hold it: each leads to the token's own row there, however far down."""

from collections.abc import Iterable

from lexiscope.app import addresses
from lexiscope.app.views.lengths import PAIR_ENTRIES, VECTOR_ENTRIES, reaching
from lexiscope.app.views.search_matches import PairMatch, VectorMatch
from lexiscope.app.views.token import Listing, PairListing, RoleList
from lexiscope.precompute.index.index import Index


def peak(roles: Iterable[RoleList]) -> float:
    """The largest score of all listings, in size."""
    return max((abs(listing["score"]) for role in roles for listing in role.places), default=0.0)


def address(index: Index, listing: Listing | VectorMatch, end: str, rank: int, token: int, lens: str) -> str:
    """The address of a token's row in a vector's list, on a page that is long enough to reach its rank."""
    page = addresses.vector(
        index.manifest.model, listing, lens=lens, k=reaching(rank, VECTOR_ENTRIES, index.manifest.k)
    )  # fmt: skip
    return f"{page}#{listing['kind']}-{end[0]}{token}"  # the id of the row, as in templates/_lists.html


def pair_address(
    index: Index, listing: PairListing | PairMatch, first: int, second: int, lens: str, preset: str
) -> str:
    """The address of a pair's row in a head's list."""
    page = addresses.link("pairs",
        index.manifest.model, listing["layer"], listing["head"], listing["matrix"],
        lens=lens, preset=preset, k=reaching(listing["rank"], PAIR_ENTRIES, index.manifest.pairs),
    )  # fmt: skip
    return f"{page}#{listing['end'][0]}{first}-{second}"
