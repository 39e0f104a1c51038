"""The panels of a run as tables for people, where there is no page with their charts: in a notebook."""

from collections.abc import Callable
from typing import Any

from lexiscope.app.formats.pattern_tables import pattern_tables
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.views.prompt import PromptView
from lexiscope.app.views.token_text import visible
from lexiscope.precompute.live.wire.answers import PartTerm, Predicted

SHOWN_HEADS = 25  # of attention, by how much they look at one place


def panel_tables(view: PromptView, panel: str) -> list[Table]:
    """The tables of one panel that was asked for."""
    made: dict[str, Callable[[PromptView], list[Table]]] = {
        "prediction": _prediction,
        "evolution": _evolution,
        "attention": _attention,
        "patterns": pattern_tables,
        "neurons": _neurons,
        "coverage": _coverage,
        "attribution": _attribution,
    }
    return made[panel](view)


def _measure(view: PromptView) -> str:
    return "score" if view.predicts == "nearest" else "p"


def _prediction(view: PromptView) -> list[Table]:
    measure = _measure(view)
    columns = (Column("token", "token", get=lambda entry: entry), Column(measure, "number"))
    lists: list[tuple[str, Predicted]] = [("prediction", view.prediction)]
    if view.untouched:
        lists.append(("prediction without the changes", view.untouched))
    at = "" if view.position is None else f" at position {view.position}"
    return [Table(f"{view.model}, {what}{at}", columns, entries) for what, entries in lists]


def _evolution(view: PromptView) -> list[Table]:
    """At the position that is looked at, after each layer, from the last one down; frames have every step."""
    if view.evolution is None or view.position is None:
        return []
    at = view.position
    columns = (
        Column("layer", "number"),
        Column("after"),
        Column("tokens", "words", get=lambda step: step["cells"][at], heading="first tokens"),
        Column("answer", "number", get=lambda step: step["answer"][at], heading=f"{_measure(view)} of the answer"),
        Column("rank", "number", get=lambda step: step["answer_rank"][at], heading="its rank"),
    )
    title = f"{view.model}, what the stream would predict at {_token(view, at)}, position {at}"
    steps = [step for step in view.evolution if step["after"] != "attention"]
    return [Table(title, columns, steps[::-1])]


def _attention(view: PromptView) -> list[Table]:
    """Where each head looks most from the position that is looked at, but for the first token: most heads look there
    while they have nothing to do."""
    if view.attention is None or view.position is None:
        return []
    rows: list[dict[str, Any]] = []
    for head in view.attention:
        weights = head["weights"][view.position]
        to = max(range(min(1, len(weights) - 1), len(weights)), key=weights.__getitem__)
        rows.append({**head, "to": to, "token": view.tokens[to], "weight": weights[to]})
    rows.sort(key=lambda row: -row["weight"])
    columns = (
        Column("layer", "number"), Column("head", "number"), Column("to", "number", heading="position"),
        Column("token", "token", heading="looks at"), Column("weight", "number"),
    )  # fmt: skip
    some = f"; {SHOWN_HEADS} of {len(rows)} heads" if len(rows) > SHOWN_HEADS else ""
    where = f"from {_token(view, view.position)}, position {view.position}"
    return [
        Table(f"{view.model}, where heads look {where} (not at the first token{some})", columns, rows[:SHOWN_HEADS])
    ]


def _neurons(view: PromptView) -> list[Table]:
    columns = (
        Column("layer", "number"), Column("neuron", "number"), Column("coefficient", "number"),
        Column("strength", "number"), Column("key", "words", heading="key reads"),
        Column("value", "words", heading="value writes"), Column("end"),
    )  # fmt: skip
    if view.neurons is None:
        return []
    title = f"{view.model}, most active neurons at {_token(view, view.position)} ({view.lens})"
    return [Table(title, columns, view.neurons)]


def _coverage(view: PromptView) -> list[Table]:
    columns = (
        Column("layer", "number"), Column("kind"), Column("covered", "ratio"), Column("shuffled", "ratio"),
        Column("shuffled_sd", "ratio", heading="its deviation"), Column("as_covered", "number", heading="as covered"),
        Column("others", "number", heading="of others"),
    )  # fmt: skip
    if view.coverage is None:
        return []
    return [Table(f"{view.model}, R_k at {_token(view, view.position)}", columns, view.coverage)]


def _attribution(view: PromptView) -> list[Table]:
    found = view.attribution
    if found is None:
        return []
    against = found["against"]
    other = against if isinstance(against, str) else visible(against["token"])
    logit = f"the logit of {visible(found['token']['token'])}, {found['logit']:.3f}, against {other}"
    parts = (
        Column("where", get=_where), Column("term", "number"), Column("share", "ratio"),
        Column("value", "words", heading="writes"), Column("pairs", "pairs", heading="maps"),
    )  # fmt: skip
    return [
        Table(f"{view.model}, {logit}", (Column("part"), Column("term", "number")), found["sums"]),
        Table("What raises it most", parts, found["raises"]),
        Table("What lowers it most", parts, found["lowers"]),
    ]


def _where(part: PartTerm) -> str:
    return f"L{part['layer']}" + (f"H{part['head']}" if part["neuron"] is None else f"N{part['neuron']}")


def _token(view: PromptView, position: int | None) -> str:
    token: Any = view.tokens[position] if position is not None else {"token": ""}
    return visible(token["token"])
