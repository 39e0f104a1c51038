"""What views list, one row per entry with all its numbers and ids: the rows of CSV.
Tables for people are in tables.py; how either is written is for table_text.py."""

from collections.abc import Iterator, Sequence
from functools import singledispatch

from app.formats.live_tables import RELATION_COLUMNS, SEEDS_COLUMNS, relation_records, seeds_records
from app.formats.prompt_records import COLUMNS as PROMPT_COLUMNS
from app.formats.prompt_records import prompt_records
from app.formats.table_text import Record
from app.views.head import HeadView
from app.views.home import HomeView
from app.views.layer import FIRST, LayerView
from app.views.model import ModelView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.prompt import PromptView
from app.views.relation import RelationView
from app.views.search import SearchView
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.token import TokenView
from app.views.tokens import Token, TokenPair, View
from app.views.vectors import Vector, VectorReading
from precompute.index.index import ranges

STORED = "stored"  # how lists are called beside those of another reading
_FIRST = range(1, FIRST + 1)


@singledispatch
def records(view: View) -> Iterator[Record]:
    raise TypeError(f"{type(view).__name__} has no table")


@records.register
def _(view: NeuronView | SubheadView) -> Iterator[Record]:
    for reading, name, vector in readings(view):
        said: Record = {"reading": reading or STORED} if view.reading else {}
        for end, entries in (("top", vector.top), ("bottom", vector.bottom)):
            for rank, entry in enumerate(entries, 1):
                place = {**said, "vector": name, "end": end, "rank": rank}
                yield {**place, **_token("token", entry), "score": entry["score"]}


def readings(view: NeuronView | SubheadView) -> list[tuple[str | None, str, Vector | VectorReading]]:
    """The stored lists, then those of another reading, if there is one: its name, the name of the vector, the lists."""
    stored = [(None, name, vector) for name, vector in vectors(view).items()]
    return [*stored, *([(view.reading.name, *each) for each in view.reading.vectors.items()] if view.reading else [])]


def vectors(view: NeuronView | SubheadView) -> dict[str, Vector]:
    if isinstance(view, SubheadView):
        return {"q": view.q, "k": view.k, "v": view.v, "o": view.o}
    return {"key": view.key, **({"up": view.up} if view.up else {}), "value": view.value}


@records.register
def _(view: PairsView) -> Iterator[Record]:
    if view.reading is None:
        yield from _pair_records(view.matrix, view.top, view.bottom)
        return
    for name, lists in ((STORED, view), (view.reading.name, view.reading)):
        for record in _pair_records(view.matrix, lists.top, lists.bottom):
            yield {"reading": name, **record}


@records.register
def _(view: HeadView) -> Iterator[Record]:
    for matrix, glance in (("vo", view.vo), ("qk", view.qk)):
        for record in _pair_records(matrix, glance.top, glance.bottom):
            yield {**record, **_blank(_SUBHEAD)}
    for row in view.subheads:
        for vector, tokens in (("q", row["q"]), ("k", row["k"]), ("v", row["v"]), ("o", row["o"])):
            for rank, token in enumerate(tokens, 1):
                of_subhead = {"subhead": row["subhead"], "vector": vector, **_token("token", token)}
                yield {**_blank(_PAIR), "end": "top", "rank": rank, **of_subhead}


def _pair_records(matrix: str, top: Sequence[TokenPair], bottom: Sequence[TokenPair]) -> Iterator[Record]:
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
            "origin": card.origin, "name": card.name,
        }  # fmt: skip


@records.register
def _(view: TokenView) -> Iterator[Record]:
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
    blank = _blank(columns(view))
    for match in view.matches:
        record: Record = blank | {name: match[name] for name in _MATCH}  # type: ignore[literal-required]
        for number, (rank, token) in enumerate(zip(match["ranks"], match["tokens"], strict=True), 1):
            record |= {f"rank_{number}": rank, **_token(f"token_{number}", token)}
        yield record
    for pair in view.pairs:
        record = {name: pair[name] for name in ("layer", "head", "end", "preset", "rank", "score")}
        of_pair = {"kind": pair["matrix"], **_token("from", pair["from"]), **_token("to", pair["to"])}
        yield blank | record | of_pair


records.register(SeedsView, seeds_records)
records.register(RelationView, relation_records)
records.register(PromptView, prompt_records)


_PAIR = ("matrix", "end", "rank", "from", "from_id", "to", "to_id", "score")
_SUBHEAD = ("subhead", "vector", "token", "token_id")
_MATCH = ("kind", "layer", "index", "head", "subhead", "end")
_MATCH_PAIR = ("preset", "rank", "from", "from_id", "to", "to_id", "score")


def columns(view: View) -> tuple[str, ...]:
    """Of the records of a view that may have none; () of one that always has some."""
    match view:
        case PairsView():
            return ("reading", *_PAIR) if view.reading else _PAIR
        case LayerView():
            tokens = [f"{name}_{rank}{part}" for name in ("key", "value") for rank in _FIRST for part in ("", "_id")]
            return ("neuron", "norm", "coherence", "similarity", *tokens)
        case ModelView():
            return ("layer", "matrix", "head", "coherence", *_PAIR[3:])
        case HomeView():
            return ("model", "architecture", "n_layers", "layers", "bytes", "revision", "origin", "name")
        case TokenView():
            place = ("kind", "layer", "index", "head", "subhead", "rank", "score")
            return ("role", "end", *place, "side", "other", "other_id")
        case SearchView():
            numbers = range(1, len(view.words) + 1)
            words = [name for n in numbers for name in (f"rank_{n}", f"token_{n}", f"token_{n}_id")]
            return (*_MATCH, *words, *_MATCH_PAIR)
        case PromptView():
            return PROMPT_COLUMNS
        case SeedsView():
            return SEEDS_COLUMNS
        case RelationView():
            return RELATION_COLUMNS
    return ()


def _blank(names: Sequence[str]) -> Record:
    return dict.fromkeys(names)


def _token(name: str, token: Token) -> Record:
    return {name: token["token"], f"{name}_id": token["id"]}
