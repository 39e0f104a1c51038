"""A run of the model as one long table: a row for every number of every panel, with the places it belongs to.
Rows of stored pages are in records.py; what the panels mean is for live_types.py."""

from collections.abc import Iterable, Iterator, Sequence

from app.formats.table_text import Record
from app.views.prompt import ActiveNeuron, EvolutionStep, HeadPattern, PromptView
from app.views.tokens import Token

COLUMNS = (
    "panel",
    "layer",
    "part",  # of a layer, what the stream has come through; of a neuron, which vector; of coverage, the kind
    "head",
    "neuron",
    "position",
    "to_position",  # that the head looks at from there
    "end",
    "rank",
    "token",
    "token_id",
    "measure",  # what the value is
    "value",
)


def prompt_records(view: PromptView) -> Iterator[Record]:
    for fields in _rows(view):
        yield dict.fromkeys(COLUMNS) | fields


def _rows(view: PromptView) -> Iterator[Record]:
    here: Record = {"position": view.position}
    place: Record
    for at, token in enumerate(view.tokens):
        yield {"panel": "tokens", "position": at, **_token(token)}
    for change in view.changes:
        place = {"layer": change["layer"], "head": change["head"], "neuron": change["neuron"]}
        yield {"panel": "changes", **place, "measure": "coefficient", "value": change["value"]}
    yield from _listed({"panel": "prediction", **here}, view.prediction, "p")
    yield from _listed({"panel": "prediction_untouched", **here}, view.untouched, "p")
    yield from _evolution("evolution", view.evolution or ())
    yield from _evolution("evolution_untouched", view.evolution_untouched or ())
    for each in view.attention or ():
        place = {"panel": "attention", "layer": each["layer"], "head": each["head"]}
        for at, row in enumerate(each["weights"]):
            for to, weight in enumerate(row):
                yield {**place, "position": at, "to_position": to, "measure": "weight", "value": weight}
    for pattern in view.patterns or ():
        yield from _pattern({"layer": view.layer, **here}, pattern)
    for rank, neuron in enumerate(view.neurons or (), 1):
        yield from _neuron({"panel": "neurons", **here}, neuron, rank)
    if chosen := view.neuron:
        place = {"panel": "neuron", "layer": chosen["layer"], "neuron": chosen["neuron"]}
        yield from _neuron({"panel": "neuron", **here}, chosen, chosen["rank"])
        if chosen["up"]:
            yield from _listed({**place, **here, "part": "up", "end": "top"}, chosen["up"]["top"])
            yield from _listed({**place, **here, "part": "up", "end": "bottom"}, chosen["up"]["bottom"])
        for at, coefficient in enumerate(chosen["coefficients"]):
            if at != view.position:  # which is above
                yield {**place, "position": at, "measure": "coefficient", "value": coefficient}
    for covered in view.coverage or ():
        place = {"panel": "coverage", "layer": covered["layer"], "part": covered["kind"], **here}
        yield {**place, "measure": "covered", "value": covered["covered"]}
        if covered["shuffled"] is not None:
            yield {**place, "measure": "shuffled", "value": covered["shuffled"]}


def _evolution(panel: str, rows: Sequence[EvolutionStep]) -> Iterator[Record]:
    """The likeliest tokens after each step, and how likely and at which rank the run's own answer is there."""
    for row in rows:
        step = {"layer": row["layer"], "part": row["after"]}
        for at, cell in enumerate(row["cells"]):
            yield from _listed({"panel": panel, **step, "position": at}, cell, "p")
            answer, place = rows[-1]["cells"][at][0], {"position": at, "rank": row["answer_rank"][at]}
            measured = {"measure": "p", "value": row["answer"][at]}
            yield {"panel": f"{panel}_answer", **step, **place, **_token(answer), **measured}


def _pattern(place: Record, each: HeadPattern) -> Iterator[Record]:
    place = {**place, "head": each["head"]}
    yield from _listed({"panel": "patterns", **place}, each["pattern"], "score")
    for message in each["messages"]:
        sent = {"panel": "messages", **place, "to_position": message["position"]}
        yield {**sent, "measure": "weight", "value": message["weight"]}
        yield from _listed(sent, message["tokens"], "score")


def _neuron(place: Record, each: ActiveNeuron, rank: int) -> Iterator[Record]:
    """Its numbers, and the first tokens of its stored lists."""
    place = {**place, "layer": each["layer"], "neuron": each["neuron"]}
    for measure, value in (("coefficient", each["coefficient"]), ("strength", each["strength"])):
        yield {**place, "rank": rank, "measure": measure, "value": value}
    yield {**place, "rank": rank, "measure": "first_only", "value": int(each["first_only"])}
    yield from _listed({**place, "part": "key", "end": "top"}, each["key"])
    yield from _listed({**place, "part": "value", "end": each["end"]}, each["value"])


def _listed(place: Record, entries: Iterable[Token], measure: str | None = None) -> Iterator[Record]:
    for rank, entry in enumerate(entries, 1):
        value = {"measure": measure, "value": entry[measure]} if measure else {}  # type: ignore[literal-required]
        yield {**place, "rank": rank, **_token(entry), **value}


def _token(token: Token) -> Record:
    return {"token": token["token"], "token_id": token["id"]}
