"""Show the panel `evolution`: what the model would predict from the stream after each step."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lexiscope.app.formats.table import Column, Table
from lexiscope.app.lists.view import visible
from lexiscope.app.pages.prompt.panel import Panel, Record, listed, token_at
from lexiscope.app.pages.prompt.prediction import csv_measure, measure
from lexiscope.precompute.live.wire.answers import EvolutionRow

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView


def rows(view: "PromptView") -> Iterator[Record]:
    yield from _steps("evolution", view.evolution or (), csv_measure(view))
    yield from _steps("evolution_untouched", view.evolution_untouched or (), csv_measure(view))
    if view.from_:
        yield from _steps("evolution_from", view.from_.get("evolution") or (), csv_measure(view))
    for step in view.evolution or ():
        word: Record = {"panel": "evolution_word", "layer": step["layer"], "part": step["after"], "token": view.word}
        word |= {"position": view.position, "rank": step["word"]["rank"]}
        yield {**word, "measure": csv_measure(view), "value": step["word"][measure(view)]}  # type: ignore[literal-required]
        if step["word"]["logit"] is not None:
            yield {**word, "measure": "logit", "value": step["word"]["logit"]}
    for true in view.truth or ():
        where = {"panel": "truth", "position": true["position"], "token": true["token"], "rank": true["rank"]}
        yield {**where, "measure": "p", "value": true["probability"]}
    for name, value in (view.right or {}).items():
        yield {"panel": "right", "measure": name, "value": value}


def _steps(panel: str, steps: Sequence[EvolutionRow], measure: str) -> Iterator[Record]:
    """Yield the first tokens after each step, and the rank that the run's own answer has there, with its probability or
    cosine."""
    for row in steps:
        step = {"layer": row["layer"], "part": row["after"]}
        for at, cell in enumerate(row["cells"]):
            yield from listed({"panel": panel, **step, "position": at}, cell, measure)
            answer, ranked = steps[-1]["cells"][at][0], {"position": at, "rank": row["answer_rank"][at]}
            measured = {"measure": measure, "value": row["answer"][at]}
            yield {"panel": f"{panel}_answer", **step, **ranked, "token": answer, **measured}


def tables(view: "PromptView") -> list[Table]:
    """Make a table of the predictions at the chosen position after each layer, from the last one down; data frames have
    every step."""
    if view.evolution is None or view.position is None:
        return []
    at, word = view.position, visible(view.word["token"]) if view.word else ""
    columns = (
        Column("layer", "number"),
        Column("after"),
        Column("tokens", "words", get=lambda step: step["cells"][at], heading="first tokens"),
        Column("answer", "number", get=lambda step: step["word"][measure(view)], heading=f"{measure(view)} of {word}"),
        Column("rank", "number", get=lambda step: step["word"]["rank"], heading="its rank"),
        Column("logit", "number", get=lambda step: step["word"]["logit"], heading="its logit"),
    )
    title = f"{view.model}, what the stream would predict at {token_at(view, at)}, position {at}"
    steps = [step for step in view.evolution if step["after"] != "attention"]
    return [Table(title, columns, steps[::-1])]


EVOLUTION = Panel(name="evolution", title="Evolution", working="reading each step", rows=rows, tables=tables)
