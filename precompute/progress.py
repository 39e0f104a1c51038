"""Tells a person how a build goes: a bar on a terminal, plain lines elsewhere. Knows nothing of the work itself."""

import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

QUIET = 30.0  # seconds between plain lines about the same layer


class Progress:
    """Layers done, rate, time left. All work goes through `step`, which takes shares of a layer."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._bar: Bar | None = None
        self._done = 0.0  # layers of this run
        self._ready = self._n_layers = self._missing = 0
        self._last_line = self._started = time.monotonic()

    def say(self, text: str) -> None:
        self.console.print(text, markup=False)

    def start(self, model: str, n_layers: int, ready: int, missing: int) -> None:
        self._n_layers, self._ready, self._missing, self._done = n_layers, ready, missing, 0.0
        self._started = self._last_line = time.monotonic()
        self.say(f"{model}: {ready} of {n_layers} layers are ready, {missing} to build, upper layers first")
        if self.console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=self.console)
            self._task = self._bar.add_task(self._text(), total=missing, rate="")
            self._bar.start()

    def step(self, share: float) -> None:
        self._done += share
        if self._bar:
            self._bar.update(self._task, completed=self._done, rate=self._rate())
        elif time.monotonic() - self._last_line > QUIET:
            self._line(self._text())

    def layer_done(self, layer: int) -> None:
        self._ready += 1
        self._done = float(round(self._done))
        if self._bar:
            self._bar.update(self._task, description=self._text(), completed=self._done, rate=self._rate())
        else:
            self._line(f"layer {layer} is ready; {self._text()}")

    def finish(self, folder: Path) -> None:
        self.stop()
        self.say(f"{folder} is up to date")

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None

    def _text(self) -> str:
        return f"{self._ready} of {self._n_layers} layers"

    def _rate(self) -> str:
        passed = time.monotonic() - self._started
        return f"{passed / self._done:.0f} s a layer" if self._done > 0.05 else ""

    def _line(self, text: str) -> None:
        self._last_line = time.monotonic()
        left = (
            (self._last_line - self._started) / self._done * (self._missing - self._done) if self._done > 0.05 else 0.0
        )
        rate = f", {self._rate()}, about {left / 60:.0f} min left" if self._done > 0.05 else ""
        self.say(text + rate)
