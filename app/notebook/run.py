"""A run of a model on a text, as objects: its prediction, and the panels that were asked for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lexiscope.app.formats.csv_format import table_rows
from lexiscope.app.formats.run_tables import panel_tables
from lexiscope.app.formats.table import Table
from lexiscope.app.formats.tables import about, tables
from lexiscope.app.notebook import frames
from lexiscope.app.notebook.pages import Page
from lexiscope.app.notebook.show import as_text
from lexiscope.app.notebook.source import Source
from lexiscope.app.pages.page import checked
from lexiscope.app.views.prompt import PromptView
from lexiscope.app.views.token_text import visible
from lexiscope.app.views.tokens import Token
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.answers import PanelName, Predicted
from lexiscope.precompute.live.wire.asks import PANELS, PromptArguments

ROWS_OF = {  # what rows of the run's table are called that belong to a panel
    "evolution": ("evolution", "evolution_answer", "evolution_untouched", "evolution_untouched_answer"),
    "attention": ("attention",),
    "patterns": ("patterns", "found_by", "message", "messages"),
    "neurons": ("neurons", "neuron", "activations", "strongest"),
    "coverage": ("coverage",),
    "attribution": ("attribution",),
}


@dataclass(frozen=True, repr=False)
class PanelOfRun(Page[PromptView]):
    """One panel of a run: `data` as the JSON of its page has it; its frame has a row for every number."""

    name: str

    @property
    def data(self) -> Any:
        """What the run's JSON has under the panel's name."""
        return self.json()[self.name]

    def _columns(self) -> frames.FrameColumns:
        names, rows = _rows(self.view, ROWS_OF[self.name])
        return frames.rows_as_columns(names, rows)

    def _tables(self) -> Sequence[Table]:
        return panel_tables(self.view, self.name)

    def _title(self) -> str:
        return f"{self.name} of a run of {self.view.model}"

    def __str__(self) -> str:
        return as_text(self._tables())


class Run(Page[PromptView]):
    """What a model makes of a text. A panel that was not asked for is an error that says so."""

    @property
    def tokens(self) -> list[Token]:
        """The tokens of the text."""
        return self.view.tokens

    @property
    def prediction(self) -> Predicted:
        """The likeliest tokens with `p`; or, of an encoder without a head for it, the nearest with `score`."""
        return self.view.prediction

    @property
    def evolution(self) -> PanelOfRun:
        """What the stream would predict after each step."""
        return self._panel("evolution")

    @property
    def attention(self) -> PanelOfRun:
        """Where every head looks."""
        return self._panel("attention")

    @property
    def patterns(self) -> PanelOfRun:
        """What the heads of a layer look for, and what they are sent."""
        return self._panel("patterns")

    @property
    def neurons(self) -> PanelOfRun:
        """The most active neurons, with what they read and write."""
        return self._panel("neurons")

    @property
    def coverage(self) -> PanelOfRun:
        """The paper's R_k: how much of a state active vectors tell."""
        return self._panel("coverage")

    @property
    def attribution(self) -> PanelOfRun:
        """What heads and neurons added to a token's logit."""
        return self._panel("attribution")

    def _panel(self, name: PanelName) -> PanelOfRun:
        if name not in self.view.panel.split(","):
            raise BadRequest(f"this run has no {name}: it was asked for {self.view.panel}. run(..., panels=[{name!r}])")
        return PanelOfRun(self.view, name)

    def _columns(self) -> frames.FrameColumns:
        return frames.rows_as_columns(*_rows(self.view))

    def _tables(self) -> Sequence[Table]:
        """The prediction, and the evolution if it was asked for; the other panels show themselves."""
        return [table for panel in ("prediction", "evolution") for table in panel_tables(self.view, panel)]

    def _notes(self) -> Sequence[str]:
        return (f"Panels of this run: {self.view.panel.replace(',', ', ')}.",)

    def _title(self) -> str:
        first = " ".join(visible(token["token"]) for token in self.view.prediction[:1])
        return f"run of {self.view.model} on {len(self.view.tokens)} tokens, which predicts {first}"

    def __str__(self) -> str:
        return as_text(self._tables(), self._notes())


def run_model(source: Source, text: str, panels: Iterable[str] | None, arguments: Mapping[str, Any]) -> Run:
    named = PANELS if panels is None else tuple(panels)
    if unknown := [panel for panel in named if panel not in PANELS]:
        raise BadRequest(f"panel {unknown[0]!r}: there are {', '.join(PANELS)}")
    if not text:
        raise BadRequest("there is no text: give one such as The capital of France is")
    chosen = tuple(panel for panel in PANELS if panel in named) or PANELS[:1]
    return Run(source.run(checked(PromptArguments, {**arguments, "text": text, "panel": chosen})))


def _rows(view: PromptView, panels: Sequence[str] | None = None) -> tuple[list[str], list[list[Any]]]:
    """The run's table for programs; of some panels only."""
    names, rows = table_rows(tables(view), about(view))
    at = names.index("panel")
    return names, [row for row in rows if panels is None or row[at] in panels]
