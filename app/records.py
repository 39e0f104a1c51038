"""What views list, one row per entry with all its numbers and ids: the rows of CSV.
Tables for people are in tables.py; how either is written is for table_text.py."""

from collections.abc import Iterator, Sequence
from functools import singledispatch

from app.live_tables import relation_records, seeds_records
from app.live_types import RelationView, SeedsPageView
from app.page_types import HeadView, HomeView, LayerView, ModelView, SearchView, TokenPageView
from app.table_text import Record
from app.view_types import FFView, PairsView, PairView, SubheadView, TokenView, VectorView, View
from precompute.index import ranges


@singledispatch
def records(view: View) -> Iterator[Record]:
    raise TypeError(f"{type(view).__name__} has no table")


@records.register
def _(view: FFView | SubheadView) -> Iterator[Record]:
    for name, vector in vectors(view).items():
        for end, entries in (("top", vector.top), ("bottom", vector.bottom)):
            for rank, entry in enumerate(entries, 1):
                yield {"vector": name, "end": end, "rank": rank, **_token("token", entry), "score": entry["score"]}


def vectors(view: FFView | SubheadView) -> dict[str, VectorView]:
    if isinstance(view, SubheadView):
        return {"q": view.q, "k": view.k, "v": view.v, "o": view.o}
    return {"key": view.key, **({"up": view.up} if view.up else {}), "value": view.value}


@records.register
def _(view: PairsView) -> Iterator[Record]:
    yield from _pair_records(view.matrix, view.pairs, view.bottom)


@records.register
def _(view: HeadView) -> Iterator[Record]:
    for matrix, glance in (("vo", view.vo), ("qk", view.qk)):
        yield from _pair_records(matrix, glance.pairs, glance.bottom)


def _pair_records(matrix: str, top: Sequence[PairView], bottom: Sequence[PairView]) -> Iterator[Record]:
    for end, entries in (("top", top), ("bottom", bottom)):
        for rank, pair in enumerate(entries, 1):
            yield {
                "matrix": matrix, "end": end, "rank": rank,
                **_token("from", pair["from"]), **_token("to", pair["to"]), "score": pair["score"],
            }  # fmt: skip


@records.register
def _(view: LayerView) -> Iterator[Record]:
    for row in view.rows:
        record: Record = {name: row[name] for name in ("neuron", "norm", "coherence", "similarity")}
        for rank, token in enumerate(row["key"], 1):
            record |= _token(f"key_{rank}", token)
        for rank, token in enumerate(row["value"], 1):
            record |= _token(f"value_{rank}", token)
        yield record


@records.register
def _(view: ModelView) -> Iterator[Record]:
    blank: Record = {"from": None, "from_id": None, "to": None, "to_id": None, "score": None}
    for row in view.rows:
        for matrix, cells in (("vo", row.vo), ("qk", row.qk)):
            for cell in cells:
                first = cell["first"]
                pair = (
                    {**_token("from", first["from"]), **_token("to", first["to"]), "score": first["score"]}
                    if first
                    else blank
                )
                yield {
                    "layer": row.layer,
                    "matrix": matrix,
                    "head": cell["head"],
                    "coherence": cell["coherence"],
                    **pair,
                }


@records.register
def _(view: HomeView) -> Iterator[Record]:
    for card in view.models:
        yield {
            "model": card.model, "architecture": card.architecture, "n_layers": card.n_layers,
            "layers": ranges(card.layers), "bytes": card.bytes, "revision": card.revision,
        }  # fmt: skip


@records.register
def _(view: TokenPageView) -> Iterator[Record]:
    blank: Record = {"side": None, "other": None, "other_id": None}
    for role in view.roles:
        for place in role.places:
            yield {"role": role.role, "end": role.end, **place, **blank}
    for pair in view.pairs:
        yield {
            "role": "maps", "end": pair["end"], "kind": pair["matrix"], "layer": pair["layer"], "index": None,
            "head": pair["head"], "subhead": None, "rank": pair["rank"], "score": pair["score"], "side": pair["side"],
            **_token("other", pair["other"]),
        }  # fmt: skip


@records.register
def _(view: SearchView) -> Iterator[Record]:
    for match in view.matches:
        record: Record = {name: match[name] for name in ("kind", "layer", "index", "head", "subhead", "end")}
        for number, (rank, token) in enumerate(zip(match["ranks"], match["tokens"], strict=True), 1):
            record |= {f"rank_{number}": rank, **_token(f"token_{number}", token)}
        yield record


records.register(SeedsPageView, seeds_records)
records.register(RelationView, relation_records)


def _token(name: str, token: TokenView) -> Record:
    return {name: token["token"], f"{name}_id": token["id"]}
