"""The tables and records of live pages, which tables.py and records.py offer beside those of stored ones."""

from collections.abc import Iterator, Sequence

from app.formats.table_text import Cell, Record, Table
from app.views.relation import RelationView, Word
from app.views.seeds import SeedsView
from app.views.token_text import shown
from app.views.tokens import Token

TOKENS = 8
_PLACE = ("kind", "layer", "index", "head", "subhead", "score")
SEEDS_COLUMNS = ("rank", *_PLACE)  # before anything was asked; those of words and tokens come with them
RELATION_COLUMNS = ("layer", "head", "rank", "score", "rank_from_bottom")


def _listed(tokens: Sequence[Token]) -> str:
    return "  ".join(shown(token["token"]) for token in tokens)


def _padded(name: str, tokens: Sequence[Token], n: int) -> Record:
    """As many columns in every record."""
    record: Record = {}
    for at in range(n):
        token = tokens[at] if at < len(tokens) else None
        record |= {f"{name}_{at + 1}": token and token["token"], f"{name}_{at + 1}_id": token and token["id"]}
    return record


def seeds_tables(view: SeedsView) -> list[Table]:
    words = [f"{seed.weight:g}*{seed.word}" if seed.weight != 1 else seed.word for seed in view.seeds]
    rows: list[tuple[Cell, ...]] = [
        (
            rank,
            place["kind"],
            place["layer"],
            place["index"],
            place["head"],
            place["subhead"],
            place["score"],
            *place["scores"],
            _listed(place["top"]),
        )
        for rank, place in enumerate(view.results, 1)
    ]
    columns = ("#", "kind", "layer", "index", "head", "subhead", "score", *words, "tokens")
    made = [Table(f"{view.model}, vectors about {view.words}", columns, rows)]
    if view.heads:
        through = [(h["layer"], h["head"], _listed(h["writes"]), _listed(h["seeks"])) for h in view.heads]
        made.append(Table(f"{view.model}, {view.words} through every head", ("layer", "head", "VO", "QK"), through))
    return made


def seeds_records(view: SeedsView) -> Iterator[Record]:
    """The vectors; and where heads were asked for, what each writes (kind vo) and seeks (qk), token by token."""
    blank: Record = {"token": None, "token_id": None} if view.heads else {}
    names: Record = {}
    for record in _found_records(view):
        names = names or dict.fromkeys(record)
        yield record | blank
    for head in view.heads:
        for kind, entries in (("vo", head["writes"]), ("qk", head["seeks"])):
            for rank, entry in enumerate(entries, 1):
                place = {"rank": rank, "kind": kind, "layer": head["layer"], "head": head["head"]}
                scored = {"score": entry["score"], "token": entry["token"], "token_id": entry["id"]}
                yield names | place | scored


def _found_records(view: SeedsView) -> Iterator[Record]:
    for rank, place in enumerate(view.results, 1):
        record: Record = {"rank": rank}
        record |= {name: place[name] for name in _PLACE}  # type: ignore[literal-required]
        for at, (seed, score) in enumerate(zip(view.seeds, place["scores"], strict=True), 1):
            record |= {f"word_{at}": seed.word, f"weight_{at}": seed.weight, f"score_{at}": score}
        yield record | _padded("top", place["top"], TOKENS)


def _pair(source: Word, target: Word) -> str:
    return f"{source.word} > {target.word}"


def relation_tables(view: RelationView) -> list[Table]:
    names = [_pair(pair.source, pair.target) for pair in view.pairs]
    rows = [
        (head["layer"], head["head"], head["rank"], head["score"], head["rank_from_bottom"], *head["ranks"])
        for head in view.heads
    ]
    columns = ("layer", "head", "mean rank", "mean score", "mean rank from the bottom", *names)
    title = f"{view.model}, heads that carry {', '.join(names)} ({view.lens}{_first_pieces(view)})"
    return [Table(title, columns, rows)]


def _first_pieces(view: RelationView) -> str:
    """Said of targets of several pieces: theirs is not the whole word's rank."""
    cut = [pair for pair in view.pairs if len(pair.target.tokens) > 1]
    said = [
        f"of {pair.target.word}, {len(pair.target.tokens)} pieces, the first: {_listed([pair.ranked])}" for pair in cut
    ]
    return f"; ranked is {'; '.join(said)}" if said else ""


def relation_records(view: RelationView) -> Iterator[Record]:
    for head in view.heads:
        record: Record = {name: head[name] for name in RELATION_COLUMNS}  # type: ignore[literal-required]
        for at, pair in enumerate(view.pairs):
            record |= {
                f"source_{at + 1}": pair.source.word, f"target_{at + 1}": pair.target.word,
                f"rank_{at + 1}": head["ranks"][at], f"score_{at + 1}": head["scores"][at],
                f"ranked_{at + 1}": pair.ranked["token"], f"ranked_{at + 1}_id": pair.ranked["id"],
                f"pieces_{at + 1}": len(pair.target.tokens),
            }  # fmt: skip
        yield record
