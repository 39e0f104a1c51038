"""A run of a model on a text as an object: its prediction, and the panels (parts of the result) that were asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from lexiscope.app.formats.table import Table
from lexiscope.app.lists.view import Token, visible
from lexiscope.app.notebook.arguments import texts
from lexiscope.app.notebook.pages import Page
from lexiscope.app.notebook.show import Shown
from lexiscope.app.notebook.source import Source
from lexiscope.app.pages.prompt import prediction
from lexiscope.app.pages.prompt.page import PROMPT, PromptAt, PromptView
from lexiscope.app.pages.prompt.panels import PANELS
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.answers import Predicted
from lexiscope.precompute.live.wire.asks import PromptArguments

# the panels that a run has unless some are named; others may take seconds
USUAL_PANELS = ("evolution", "attention", "patterns", "neurons", "coverage", "attribution")


@dataclass(frozen=True, repr=False)
class PanelOfRun(Page[PromptView]):
    """One panel (part of the result) of a run: `data` is its JSON; its frame has a row for every number. That of
    the sheet has a row for every head at a position, and for every neuron."""

    name: str

    def __call__(self) -> Self:
        """Return the panel itself, so that `run.sheet().to_pandas()` can be written, too."""
        return self

    @property
    def data(self) -> Any:
        """Return the panel's part of the run's JSON."""
        return self.json()[self.name]

    def _listed(self) -> Sequence[Table]:
        return PANELS[self.name].for_programs(self.view)

    def _tables(self) -> Sequence[Table]:
        return PANELS[self.name].tables(self.view)

    def _title(self) -> str:
        return f"{self.name} of a run of {self.view.model}"

    __str__ = Shown.__str__


class Run(Page[PromptView]):
    """The result of running a model on a text. Access to a panel (part of the result) that was not asked for raises an
    error that says so."""

    @property
    def tokens(self) -> list[Token]:
        """Return the tokens of the text."""
        return self.view.tokens

    @property
    def prediction(self) -> Predicted:
        """Return the likeliest tokens with their probability `p` or, for an encoder without a head for predictions, the
        nearest tokens with their `score`."""
        return self.view.prediction

    def __getattr__(self, name: str) -> PanelOfRun:
        """Return a panel (part of the result) by its name, such as `run.evolution`."""
        if name not in PANELS:
            raise AttributeError(f"a run has no {name!r}: it has {', '.join(PANELS)}", name=name, obj=self)
        return self._panel(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *PANELS]

    def _panel(self, name: str) -> PanelOfRun:
        if name not in self.view.panel.split(","):
            raise BadRequest(f"this run has no {name}: it was asked for {self.view.panel}. run(..., panels=[{name!r}])")
        return PanelOfRun(self.view, name)

    def _tables(self) -> Sequence[Table]:
        """Return the tables of the prediction and, if it was asked for, of the evolution over layers; other panels
        display themselves."""
        return [*prediction.tables(self.view), *PANELS["evolution"].tables(self.view)]

    def _notes(self) -> Sequence[str]:
        return (f"Panels of this run: {self.view.panel.replace(',', ', ')}.",)

    def _title(self) -> str:
        first = " ".join(visible(token["token"]) for token in self.view.prediction[:1])
        return f"run of {self.view.model} on {len(self.view.tokens)} tokens, which predicts {first}"

    __str__ = Shown.__str__


def run_model(source: Source, text: str, panels: Any, arguments: Mapping[str, Any]) -> Run:
    """Run a model; raise TypeError for an argument that a run does not take, as any function does."""
    for name in arguments:
        if name not in PromptArguments.model_fields or name in ("text", "panel"):
            raise TypeError(f"run() got an unexpected keyword argument {name!r}")
    named = USUAL_PANELS if panels is None else texts("panels", panels)
    if unknown := [panel for panel in named if panel not in PANELS]:
        raise BadRequest(f"panel {unknown[0]!r}: there are {', '.join(PANELS)}")
    if text == "":
        raise BadRequest("there is no text: give one such as The capital of France is")
    chosen = tuple(panel for panel in PANELS if panel in named) or tuple(PANELS)[:1]
    return Run(source.get(PROMPT, PromptAt(), text=text, panel=chosen, **arguments))
