"""Link from a token to the lists that hold it: each link leads to the token's own row, however far down."""

from collections.abc import Mapping
from typing import Any

from lexiscope.app import urls
from lexiscope.app.lists.checks import PAIR_ENTRIES, VECTOR_ENTRIES, reaching
from lexiscope.precompute.index.index import Index


def address(index: Index, listing: Mapping[str, Any], end: str, rank: int, token: int, lens: str) -> str:
    """Return the address of a token's row in a vector's list, on a page that is long enough to reach its rank."""
    page = urls.vector(
        index.manifest.model, listing, lens=lens, k=reaching(rank, VECTOR_ENTRIES, index.manifest.k)
    )  # fmt: skip
    return f"{page}#{listing['kind']}-{end[0]}{token}"  # the id of the row, as in templates/_lists.html


def pair_address(index: Index, listing: Mapping[str, Any], first: int, second: int, lens: str, preset: str) -> str:
    """Return the address of a pair's row in a head's list."""
    page = urls.link("pairs",
        index.manifest.model, listing["layer"], listing["head"], listing["matrix"],
        lens=lens, preset=preset, k=reaching(listing["rank"], PAIR_ENTRIES, index.manifest.pairs),
    )  # fmt: skip
    return f"{page}#{listing['end'][0]}{first}-{second}"
