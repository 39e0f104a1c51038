"""A run of the model as one long table for programs: a row for every number of every panel, and where it belongs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lexiscope.app.formats.pattern_tables import pattern_tables
from lexiscope.app.formats.table import Column, Kind, Table
from lexiscope.app.views.prompt import PromptView
from lexiscope.app.views.tokens import Token
from lexiscope.precompute.live.wire.answers import ActiveNeuron, EvolutionRow, HeadPattern, TokenPattern

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
    """The tables of a prompt: for people those of patterns. Only these have a convention; stored lists have a lens."""
    return [
        *pattern_tables(view),
        Table("", COLUMNS, _run(view), "programs", ("convention", "lens")),
        Table("", COLUMNS, _patterns(view), "programs"),
        Table("", COLUMNS, _neurons(view), "programs", ("convention",)),
        Table("", COLUMNS, _attribution(view), "programs", ("convention", "lens")),
    ]


def _run(view: PromptView) -> Iterator[Record]:
    here: Record = {"position": view.position}
    for at, token in enumerate(view.tokens):
        yield {"panel": "tokens", "position": at, "token": token}
    for change in view.changes:
        where: Record = {"layer": change["layer"], "head": change["head"], "neuron": change["neuron"]}
        where |= {"position": change["position"]}  # none: at all of them
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
    for head in view.patterns or ():
        where: Record = {"layer": view.layer, "position": view.position, "head": head["head"]}
        yield from _sides(where, head)
        for message in head["messages"]:
            sent = {"panel": "messages", **where, "to_position": message["position"]}
            yield {**sent, "measure": "weight", "value": message["weight"]}
            yield from _listed(sent, message["tokens"], "score")
    for token in view.patterns_by_token or ():
        where = {"layer": view.layer, "position": token["position"], "head": view.head}
        yield from _sides(where, token)
        look = token["looks_at"]
        yield {
            "panel": "patterns",
            **where,
            "to_position": look["position"],
            "measure": "weight",
            "value": look["weight"],
        }


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
    for panel, neurons in (("activations", view.activations), ("strongest", view.strongest)):
        for rank, neuron in enumerate(neurons or (), 1):
            yield from _neuron({"panel": panel, "position": neuron["position"]}, neuron, rank)
            where = {"panel": panel, "layer": neuron["layer"], "neuron": neuron["neuron"]}
            for at, coefficient in enumerate(neuron["coefficients"]):
                if at != neuron["position"]:  # which is above
                    yield {**where, "position": at, "measure": "coefficient", "value": coefficient}
    for covered in view.coverage or ():
        where = {"panel": "coverage", "layer": covered["layer"], "part": covered["kind"], **here}
        yield {**where, "measure": "covered", "value": covered["covered"]}
        if covered["shuffled"] is None:
            continue
        yield {**where, "measure": "shuffled", "value": covered["shuffled"]}
        if covered["shuffled_sd"] is not None:
            yield {**where, "measure": "shuffled_sd", "value": covered["shuffled_sd"]}
        yield {**where, "measure": "others", "value": covered["others"]}
        yield {**where, "measure": "as_covered", "value": covered["as_covered"]}


def _attribution(view: PromptView) -> Iterator[Record]:
    """Every term once, but of neurons only the largest; those of a layer together are there, too."""
    found = view.attribution
    if not found:
        return
    here: Record = {"panel": "attribution", "position": view.position}
    of_others = {"token": found["against"]} if isinstance(found["against"], dict) else {}
    yield {**here, "part": "logit", "token": found["token"], "measure": "logit", "value": found["logit"]}
    yield {**here, "part": "baseline", **of_others, "measure": "logit", "value": found["baseline"]}
    for each in found["sums"]:
        yield {**here, "part": each["part"], "measure": "sum", "value": each["term"]}
    for row in found["layers"]:
        of_layer = {**here, "layer": row["layer"], "measure": "term"}
        for head, term in enumerate(row["heads"]):
            yield {**of_layer, "part": "head", "head": head, "value": term}
        yield {**of_layer, "part": "attention_bias", "value": row["attention_bias"]}
        yield {**of_layer, "part": "neurons", "value": row["neurons"]}
        yield {**of_layer, "part": "ff_bias", "value": row["ff_bias"]}
    for end, parts in (("top", found["raises"]), ("bottom", found["lowers"])):
        for rank, part in enumerate(parts, 1):
            if part["neuron"] is not None:
                where = {**here, "layer": part["layer"], "part": "neuron", "neuron": part["neuron"]}
                yield {**where, "end": end, "rank": rank, "measure": "term", "value": part["term"]}


def _evolution(panel: str, rows: Sequence[EvolutionRow], measure: str) -> Iterator[Record]:
    """The first tokens after each step, and how likely or near, and at which rank, the run's own answer is there."""
    for row in rows:
        step = {"layer": row["layer"], "part": row["after"]}
        for at, cell in enumerate(row["cells"]):
            yield from _listed({"panel": panel, **step, "position": at}, cell, measure)
            answer, ranked = rows[-1]["cells"][at][0], {"position": at, "rank": row["answer_rank"][at]}
            measured = {"measure": measure, "value": row["answer"][at]}
            yield {"panel": f"{panel}_answer", **step, **ranked, "token": answer, **measured}


def _sides(where: Record, lists: HeadPattern | TokenPattern) -> Iterator[Record]:
    """What a position looks for, is found by and sends; and from where it is looked at most: that position attends."""
    yield from _listed({"panel": "patterns", **where}, lists["pattern"], "score")
    yield from _listed({"panel": "found_by", **where}, lists["found_by"], "score")
    if look := lists["found_from"]:
        ends = {"position": look["position"], "to_position": where["position"]}
        yield {"panel": "found_by", **where, **ends, "measure": "weight", "value": look["weight"]}
    yield from _listed({"panel": "message", **where}, lists["message"], "score")


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
        yield {**where, "rank": entry.get("rank", rank), "token": entry, **value}
