"""McCormick's tables, for people: all heads of a layer at one token of a text, or all tokens of it at one head."""

from typing import Any

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.views.prompt import PromptView
from lexiscope.app.views.token_text import visible
from lexiscope.precompute.live.wire.answers import Look

_SIDES = (
    Column("pattern", "words", heading="looks for"),
    Column("looks_at", "token", heading="looks at"),
    Column("weight", "number", heading="weight"),
)
_OTHER_SIDES = (
    Column("found_by", "words", heading="is found by"),
    Column("message", "words", heading="sends"),
)
HEAD_COLUMNS = (
    Column("head", "number"),
    *_SIDES,
    Column("sent", "words", heading="is sent from there"),
    *_OTHER_SIDES,
)
TOKEN_COLUMNS = (
    Column("position", "number"),
    Column("token", "token"),
    *_SIDES,
    *_OTHER_SIDES,
)


def pattern_tables(view: PromptView) -> list[Table]:
    """Which of both there is. Of the positions that a head looks at, the one that it looks at most."""
    how = f"{view.convention}, {view.lens}"
    tables = []
    if view.patterns is not None and view.position is not None:
        at = visible(view.tokens[view.position]["token"])
        title = f"{view.model}, heads of layer {view.layer} at {at}, position {view.position} ({how})"
        tables.append(Table(title, HEAD_COLUMNS, _heads(view), "people"))
    if view.patterns_by_token is not None:
        title = f"{view.model}, L{view.layer}H{view.head} at every token ({how})"
        tables.append(Table(title, TOKEN_COLUMNS, _tokens(view), "people"))
    return tables


def _heads(view: PromptView) -> list[dict[str, Any]]:
    return [
        {**head, **_looks(view, head["messages"][0]), "sent": head["messages"][0]["tokens"]}
        for head in view.patterns or ()
    ]


def _tokens(view: PromptView) -> list[dict[str, Any]]:
    return [
        {**token, **_looks(view, token["looks_at"]), "token": view.tokens[token["position"]]}
        for token in view.patterns_by_token or ()
    ]


def _looks(view: PromptView, look: Look) -> dict[str, Any]:
    return {"looks_at": view.tokens[look["position"]], "weight": look["weight"]}
