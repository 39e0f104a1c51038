"""Gather the patterns and messages of all layers and positions of a run, for one CSV: their rows on the pages of single
layers, after the tokens of the text and the changes of the run."""

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from lexiscope.app.formats.table import Table
from lexiscope.app.lists.view import ViewOfModel
from lexiscope.app.pages.prompt import patterns, prediction
from lexiscope.app.pages.prompt.panel import COLUMNS
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire.answers import OWN_LISTS, PromptAnswer
from lexiscope.precompute.live.wire.asks import PromptArguments, PromptAsk
from lexiscope.precompute.live.wire.errors import TooLarge
from lexiscope.precompute.shape import Shape

if TYPE_CHECKING:
    from lexiscope.app.pages.prompt.page import PromptView

A = TypeVar("A", bound=PromptArguments)
MOST_TOKENS = 400_000  # in the lists of one file: about 40 MB
MOST_SECONDS = 300.0  # for all runs of one file


@dataclass(frozen=True, slots=True, kw_only=True)
class AllLayersView(ViewOfModel):
    """The data of the CSV: a run for each layer and position or, with `rows=tokens`, for each layer and head."""

    convention: str
    lens: str
    runs: "Sequence[PromptView]"

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "convention": self.convention, "lens": self.lens}

    def tables(self) -> list[Table]:
        first = self.runs[0]
        of_text = [*prediction.token_rows(first), *prediction.change_rows(first.changes)]
        text = Table("", COLUMNS, of_text, "programs", ("convention", "lens"))
        return [text, Table("", COLUMNS, chain.from_iterable(map(patterns.rows, self.runs)), "programs")]


def runs_of_all(shape: Shape, ask: A, n_tokens: int) -> list[A]:
    """Return the arguments of the pages whose rows the file has: of every layer, at every position or head that the
    address leaves open."""
    name, count = ("position", n_tokens) if ask.rows == "heads" else ("head", shape.n_heads)
    asked = getattr(ask, name)
    numbers = range(count) if asked is None else [asked]
    return [
        ask.model_copy(update={"layer": layer, name: number, "panel": ("patterns",)})
        for layer in range(shape.n_layers)
        for number in numbers
    ]


def asks_of_all(
    shape: Shape, ask: PromptArguments, format: str, request: Callable[[PromptArguments], PromptAsk]
) -> Generator[PromptAsk, PromptAnswer, None]:
    """Yield the request for one run after the other. The first run tells how many tokens the text has; raise TooLarge
    if there are too many lists for one file, or if the runs take too long."""
    if format != "csv" or ask.panel != ("patterns",):
        raise BadRequest("layer=all is for the CSV of patterns and messages: /prompt.csv with panel=patterns")
    if not ask.text:
        raise BadRequest("there is no text: give it as text=")
    started = time.monotonic()
    n_tokens = len((yield request(runs_of_all(shape, ask, 1)[0]))["tokens"])
    runs = runs_of_all(shape, ask, n_tokens)
    in_run = shape.n_heads * 2 * OWN_LISTS if ask.rows == "heads" else n_tokens * OWN_LISTS
    if (tokens := len(runs) * in_run * ask.k) > MOST_TOKENS:
        raise TooLarge(
            f"patterns of {n_tokens} tokens in {shape.n_layers} layers have up to {tokens:,} tokens in their lists: up "
            f"to {MOST_TOKENS:,} are in one file. Ask for fewer (k), for a shorter text, or for one position"
        )
    for done, run in enumerate(runs[1:], 1):
        if time.monotonic() - started > MOST_SECONDS:
            raise TooLarge(
                f"{done} of {len(runs)} runs took {MOST_SECONDS:.0f} s, the most for one file. Ask for a shorter text "
                "or for one position"
            )
        yield request(run)
