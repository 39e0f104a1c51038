"""Show the panel `patterns`: what heads look for and send, in McCormick's tables: all heads of a layer at one token of
a text, or all tokens of the text at one head."""

from collections import ChainMap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.bias import biased_tokens
from lexiscope.app.lists.first_tokens import FirstLists
from lexiscope.app.lists.view import visible
from lexiscope.app.pages.prompt.panel import Panel, Record, cut_spare, listed, token_at
from lexiscope.precompute.live.wire.answers import HeadPattern, Look, ScoredToken, TokenPattern
from lexiscope.precompute.live.wire.asks import PromptArguments

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

_SIDES = (
    Column("pattern", "words", heading="looks for"),
    Column("looks_at", "token", heading="looks at"),
    Column("weight", "number", heading="weight"),
)
_OTHER_SIDES = (Column("found_by", "words", heading="is found by"), Column("message", "words", heading="sends"))
HEAD_COLUMNS = (Column("head", "number"), *_SIDES, Column("sent", "words", heading="is sent from there"), *_OTHER_SIDES)
TOKEN_COLUMNS = (Column("position", "number"), Column("token", "token"), *_SIDES, *_OTHER_SIDES)

REPEATS, REPEATS_SHARE = 3, 4  # a word repeats if it stands in so many rows, and in one of so many
NAMED_REPEATS = 2  # words that a table's title names
LISTS = {"looks_for": "pattern", "found_by": "found_by", "sends": "message"}  # names of the lists, and their fields


class RepeatedWord(TypedDict):
    """A word that a head lists at many tokens of the text."""

    list: str  # looks_for, found_by or sends
    word: str  # without case and surrounding space
    rows: int  # in whose lists it stands
    of: int  # rows of the table
    tokens: Sequence[ScoredToken]  # which tokens of these lists are this word


def add_repeats(answer: dict[str, Any], lists: FirstLists, _: PromptArguments) -> None:
    """Count the words that stand in many rows of the table of all tokens at one head. Tokens that any list may hold,
    and those that are left out of lists, do not count."""
    rows: list[TokenPattern] = answer.get("patterns_by_token") or []
    biased, surface = biased_tokens(lists.index, lists.lens), lists.index.tokens.surface
    repeats: list[RepeatedWord] = []
    for name, field in LISTS.items():
        found: dict[str, dict[int, dict[int, ScoredToken]]] = {}  # word -> row -> id -> token
        for at, row in enumerate(rows):
            listed: list[ScoredToken] = row[field]  # type: ignore[literal-required]
            for token in listed:
                if not biased[token["id"]] and token["id"] not in lists.hubs:
                    found.setdefault(surface(token["token"]), {}).setdefault(at, {})[token["id"]] = token
        for word, by_row in sorted(found.items(), key=lambda each: (-len(each[1]), each[0])):
            if len(by_row) >= max(REPEATS, len(rows) / REPEATS_SHARE):
                tokens = [*ChainMap(*by_row.values()).values()]
                repeats.append({"list": name, "word": word, "rows": len(by_row), "of": len(rows), "tokens": tokens})
    answer["repeats_of_head"] = repeats if "patterns_by_token" in answer else None


def add_lists(answer: dict[str, Any], lists: FirstLists, ask: PromptArguments) -> None:
    without_spare(answer, lists, ask)
    add_repeats(answer, lists, ask)


def without_spare(answer: dict[str, Any], lists: FirstLists, ask: PromptArguments) -> None:
    """Cut every list as `cut_spare` does."""
    for row in (*(answer.get("patterns") or ()), *(answer.get("patterns_by_token") or ())):
        for name in ("pattern", "found_by", "message"):
            row[name] = cut_spare(row[name], lists, ask.k)
        for message in row.get("messages", ()):
            message["tokens"] = cut_spare(message["tokens"], lists, ask.k)


def rows(view: "PromptView") -> Iterator[Record]:
    for head in view.patterns or ():
        where: Record = {"layer": view.layer, "position": view.position, "head": head["head"]}
        yield from _sides(where, head)
        for message in head["messages"]:
            sent = {"panel": "messages", **where, "to_position": message["position"]}
            yield {**sent, "measure": "weight", "value": message["weight"]}
            yield from listed(sent, message["tokens"], "score")
    for token in view.patterns_by_token or ():
        where = {"layer": view.layer, "position": token["position"], "head": view.head}
        yield from _sides(where, token)
        look, panel = token["looks_at"], {"panel": "patterns", **where}
        yield {**panel, "to_position": look["position"], "measure": "weight", "value": look["weight"]}
    for repeat in view.repeats_of_head or ():
        where = {"panel": "repeats", "layer": view.layer, "head": view.head, "part": repeat["list"]}
        yield {**where, "token": repeat["tokens"][0], "measure": "rows", "value": repeat["rows"]}


def _sides(where: Record, lists: HeadPattern | TokenPattern) -> Iterator[Record]:
    """Yield the rows of one position: the tokens that it looks for, is found by and sends, and the position that
    attends to it most."""
    yield from listed({"panel": "patterns", **where}, lists["pattern"], "score")
    yield from listed({"panel": "found_by", **where}, lists["found_by"], "score")
    if look := lists["found_from"]:
        ends = {"position": look["position"], "to_position": where["position"]}
        yield {"panel": "found_by", **where, **ends, "measure": "weight", "value": look["weight"]}
    yield from listed({"panel": "message", **where}, lists["message"], "score")


def tables(view: "PromptView") -> list[Table]:
    """Make the table of heads or of tokens, whichever was asked for. Of the positions that a head attends to, only the
    one with the largest weight is shown."""
    how = f"{view.convention}, {view.lens}"
    shown = []
    if view.patterns is not None and view.position is not None:
        at = f"{token_at(view, view.position)}, position {view.position}"
        title = f"{view.model}, heads of layer {view.layer} at {at} ({how})"
        heads = [
            {**head, **_looks(view, head["messages"][0]), "sent": head["messages"][0]["tokens"]}
            for head in view.patterns
        ]
        shown.append(Table(title, HEAD_COLUMNS, heads, "people"))
    if view.patterns_by_token is not None:
        most = sorted(view.repeats_of_head or (), key=lambda repeat: -repeat["rows"])[:NAMED_REPEATS]
        said = "".join(f"; {visible(word['word'])} in {word['rows']} of {word['of']} tokens" for word in most)
        title = f"{view.model}, L{view.layer}H{view.head} at every token ({how}){said}"
        tokens = [
            {**token, **_looks(view, token["looks_at"]), "token": view.tokens[token["position"]]}
            for token in view.patterns_by_token
        ]
        shown.append(Table(title, TOKEN_COLUMNS, tokens, "people"))
    return shown


def _looks(view: "PromptView", look: Look) -> dict[str, Any]:
    return {"looks_at": view.tokens[look["position"]], "weight": look["weight"]}


PATTERNS = Panel(
    name="patterns", title="Patterns and messages", working="reading the heads", rows=rows, says_nothing_of=(),
    tables=tables, has_text=True, has_lists=True, add_lists=add_lists,
)  # fmt: skip
