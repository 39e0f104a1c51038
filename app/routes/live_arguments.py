"""The arguments of live pages: what visitors type, each brought into its one form, so that one view has one address.
How it is read is for terms.py; arguments of stored pages are in arguments.py."""

from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator

from app.terms import parse_pairs, parse_terms, write_pairs, write_terms
from precompute.errors import BadRequest
from precompute.shape import SIDES

SEED_RESULTS = 50


def _kinds(text: str) -> str:
    named = {part.strip() for part in text.split(",") if part.strip()}
    if unknown := named - SIDES.keys():
        raise BadRequest(f"kind = {sorted(unknown)[0][:100]!r}: there are {', '.join(SIDES)}; several with commas")
    return ",".join(kind for kind in SIDES if kind in named) or "ff_value"


def _words(text: str) -> str:
    return write_terms(parse_terms(text))


def _pairs(text: str) -> str:
    return write_pairs(parse_pairs(text))


SeedWords = Annotated[
    str,
    Query(
        description='Words such as `horse,dog,lion`; weighted `king - man + woman`, `2*dog`; `"New York"`',
        examples=["horse,dog,lion", "king - man + woman"],
    ),
    AfterValidator(_words),
]
SeedKinds = Annotated[
    str,
    Query(description=f"Kinds of vectors to rank, with commas between: {', '.join(SIDES)}", examples=["ff_value"]),
    AfterValidator(_kinds),
]
Results = Annotated[int, Query(ge=1, le=1000, description="How many vectors")]
WithHeads = Annotated[int, Query(ge=0, le=1, description="1: also what every head would do with the average")]
RelationPairs = Annotated[
    str,
    Query(
        description="Pairs of words such as `France>Paris,Italy>Rome`: what is read, and what should be written",
        examples=["France>Paris,Italy>Rome"],
    ),
    AfterValidator(_pairs),
]
