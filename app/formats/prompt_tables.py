"""A run of the model as one long table for programs: a row for every number of every panel, and where it belongs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from app.formats.table import Column, Kind, Table
from app.views.prompt import ActiveNeuron, EvolutionStep, HeadPattern, PromptView
from app.views.tokens import Token

Record = dict[str, Any]  # the columns that a row has
FIELDS = {"cosine": "score"}  # measures that an entry has under another name


def _column(name: str, kind: Kind = "text") -> Column:
    return Column(name, kind, get=lambda record: record.get(name))


COLUMNS = (
    _column("panel"),
    _column("layer"),
    _column("part"),  # of a layer, what the stream has come through; of a neuron, which vector; of coverage, the kind
    _column("head"),
    _column("neuron"),
    _column("position"),
    _column("to_position"),  # that the head looks at from there
    _column("end"),
    _column("rank"),
    _column("token", "token"),
    _column("measure"),  # what the value is
    _column("value"),
)


def prompt_tables(view: PromptView) -> list[Table]:
    """The tables of a prompt; only patterns and messages have a convention."""
    no_convention = ("convention",)
    return [
        Table("", COLUMNS, _run(view), "programs", no_convention),
        Table("", COLUMNS, _patterns(view), "programs"),
        Table("", COLUMNS, _neurons(view), "programs", no_convention),
    ]


def _run(view: PromptView) -> Iterator[Record]:
    here: Record = {"position": view.position}
    for at, token in enumerate(view.tokens):
        yield {"panel": "tokens", "position": at, "token": token}
    for change in view.changes:
        where: Record = {"layer": change["layer"], "head": change["head"], "neuron": change["neuron"]}
        yield {"panel": "changes", **where, "measure": "coefficient", "value": change["value"]}
    measure = "cosine" if view.predicts == "nearest" else "p"
    yield from _listed({"panel": "prediction", **here}, view.prediction, measure)
    yield from _listed({"panel": "prediction_untouched", **here}, view.untouched, measure)
    yield from _evolution("evolution", view.evolution or (), measure)
    yield from _evolution("evolution_untouched", view.evolution_untouched or (), measure)
    for head in view.attention or ():
        where = {"panel": "attention", "layer": head["layer"], "head": head["head"]}
        for at, row in enumerate(head["weights"]):
            for to, weight in enumerate(row):
                yield {**where, "position": at, "to_position": to, "measure": "weight", "value": weight}


def _patterns(view: PromptView) -> Iterator[Record]:
    for pattern in view.patterns or ():
        yield from _pattern({"layer": view.layer, "position": view.position}, pattern)


def _neurons(view: PromptView) -> Iterator[Record]:
    here: Record = {"position": view.position}
    for rank, neuron in enumerate(view.neurons or (), 1):
        yield from _neuron({"panel": "neurons", **here}, neuron, rank)
    if chosen := view.neuron:
        where = {"panel": "neuron", "layer": chosen["layer"], "neuron": chosen["neuron"]}
        yield from _neuron({"panel": "neuron", **here}, chosen, chosen["rank"])
        if chosen["up"]:
            yield from _listed({**where, **here, "part": "up", "end": "top"}, chosen["up"]["top"])
            yield from _listed({**where, **here, "part": "up", "end": "bottom"}, chosen["up"]["bottom"])
        for at, coefficient in enumerate(chosen["coefficients"]):
            if at != view.position:  # which is above
                yield {**where, "position": at, "measure": "coefficient", "value": coefficient}
    for covered in view.coverage or ():
        where = {"panel": "coverage", "layer": covered["layer"], "part": covered["kind"], **here}
        yield {**where, "measure": "covered", "value": covered["covered"]}
        if covered["shuffled"] is not None:
            yield {**where, "measure": "shuffled", "value": covered["shuffled"]}


def _evolution(panel: str, rows: Sequence[EvolutionStep], measure: str) -> Iterator[Record]:
    """The first tokens after each step, and how likely or near, and at which rank, the run's own answer is there."""
    for row in rows:
        step = {"layer": row["layer"], "part": row["after"]}
        for at, cell in enumerate(row["cells"]):
            yield from _listed({"panel": panel, **step, "position": at}, cell, measure)
            answer, ranked = rows[-1]["cells"][at][0], {"position": at, "rank": row["answer_rank"][at]}
            measured = {"measure": measure, "value": row["answer"][at]}
            yield {"panel": f"{panel}_answer", **step, **ranked, "token": answer, **measured}


def _pattern(where: Record, head: HeadPattern) -> Iterator[Record]:
    where = {**where, "head": head["head"]}
    yield from _listed({"panel": "patterns", **where}, head["pattern"], "score")
    for message in head["messages"]:
        sent = {"panel": "messages", **where, "to_position": message["position"]}
        yield {**sent, "measure": "weight", "value": message["weight"]}
        yield from _listed(sent, message["tokens"], "score")


def _neuron(where: Record, neuron: ActiveNeuron, rank: int) -> Iterator[Record]:
    """Its numbers, and the first tokens of its stored lists."""
    where = {**where, "layer": neuron["layer"], "neuron": neuron["neuron"]}
    for measure, value in (("coefficient", neuron["coefficient"]), ("strength", neuron["strength"])):
        yield {**where, "rank": rank, "measure": measure, "value": value}
    yield {**where, "rank": rank, "measure": "first_only", "value": int(neuron["first_only"])}
    yield from _listed({**where, "part": "key", "end": "top"}, neuron["key"])
    yield from _listed({**where, "part": "value", "end": neuron["end"]}, neuron["value"])


def _listed(where: Record, entries: Iterable[Token] | None, measure: str | None = None) -> Iterator[Record]:
    """A row for each entry; none of a list that is not stored."""
    for rank, entry in enumerate(entries or (), 1):
        value = {"measure": measure, "value": entry[FIELDS.get(measure, measure)]} if measure else {}  # type: ignore[literal-required]
        yield {**where, "rank": rank, "token": entry, **value}
