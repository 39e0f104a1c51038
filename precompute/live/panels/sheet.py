"""The panel `sheet`: every head at every position of the text, and the strongest neurons of every layer. Its lists are
those of the panel `patterns`, its terms of a logit those of `attribution`."""

from collections.abc import Iterator

from lexiscope.precompute.live.first_tokens import ListEnd, first_tokens_cost, promoted_end
from lexiscope.precompute.live.panels import attribution
from lexiscope.precompute.live.panels.panel import Fields, Panel, PanelRun
from lexiscope.precompute.live.panels.patterns import head_rows, rows_beside
from lexiscope.precompute.live.panels.records import COLUMNS
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import OWN_LISTS, PanelName, Sheet, SheetHead, SheetNeuron
from lexiscope.precompute.live.wire.asks import PromptAsk


def neuron_rows(run: PanelRun) -> Iterator[SheetNeuron]:
    """Yield the strongest neurons of each layer, strongest first."""
    record = run.record
    terms = attribution.terms_of(run.w, record, run.token, run.against).neurons
    for layer, (neurons, columns) in enumerate(record.columns):
        sizes = columns.abs()  # (T, n)
        if len(sizes) > 1:
            sizes[0].masked_fill_(~record.first_only(layer)[neurons], -1.0)
        peaks = sizes.argmax(dim=0)
        strengths = record.strength(layer)[neurons]
        numbers = (each.tolist() for each in (neurons, columns.T, peaks, strengths, terms[layer, neurons]))
        for neuron, coefficients, peak, strength, adds in zip(*numbers, strict=True):
            yield {
                "layer": layer, "neuron": neuron, "end": promoted_end(coefficients[peak]),
                "coefficients": coefficients, "peak": peak, "strength": strength, "adds": adds,
            }  # fmt: skip


def every_head(run: PanelRun, panel: PanelName) -> list[SheetHead]:
    """Return the rows of all heads; they are made once in a run, for the first panel that needs them."""
    if not run.head_rows:
        tick, heads = run.tick(panel), range(run.w.shape.n_heads)
        for layer in range(run.w.shape.n_layers):
            run.head_rows.extend(head_rows(run, layer, heads, tick))
    return run.head_rows


def sheet(run: PanelRun) -> Sheet:
    heads = every_head(run, "sheet")
    neurons = list(neuron_rows(run))
    return {"heads": heads, "neurons": neurons, "total": {"heads": len(heads), "neurons": len(neurons)}}


def rows(w: Weights, ask: PromptAsk, tokens: int) -> int:
    s = w.shape
    return s.n_layers * (s.n_heads * tokens * OWN_LISTS + rows_beside(w, ask))


def cost(w: Weights, ask: PromptAsk, tokens: int) -> float:
    lists = 2 * w.shape.n_layers * COLUMNS * first_tokens_cost(w.shape, ask.unbuilt)
    return lists + attribution.cost(w, ask, tokens)


def vectors(answer: Fields, _: bool) -> Iterator[ListEnd]:
    for neuron in answer["sheet"]["neurons"]:
        yield ListEnd("ff_key", neuron["layer"], neuron["neuron"])
        yield ListEnd("ff_value", neuron["layer"], neuron["neuron"], neuron["end"])


PANEL = Panel(
    name="sheet",
    keeps=frozenset({"every", "columns", "peaks", "steps", "mixed", "coefficients"}),
    answer=lambda run: {"sheet": sheet(run)},
    rows=rows,
    cost=cost,
    vectors=vectors,
)
