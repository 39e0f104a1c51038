"""Tell a person on stderr how a build goes: by a bar on a terminal, by plain lines elsewhere. Nothing here depends on
the work itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as Bar

from lexiscope.precompute.plain_text import plain

QUIET = 30.0  # seconds between plain lines about the same layer
ENOUGH = 0.05  # share of a layer that must be done to estimate a rate


class Progress:
    """Count layers, and show the rate and the time left. `step` is called with each finished share of a layer."""

    unit = "layer"  # the unit in which work is counted
    to_do = "to build, upper layers first"

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._bar: Bar | None = None
        self._done = 0.0  # layers made in this run, with fractions
        self._ready = self._n_layers = self._missing = self._built = 0
        self._last_line = self._started = time.monotonic()

    def say(self, text: str) -> None:
        """Print one line without breaking it, so that people can search a log for a path."""
        self.console.print(plain(text), markup=False, emoji=False, soft_wrap=True)

    def start(self, model: str, n_layers: int, ready: int, missing: int, added: str = "") -> None:
        """Begin to count layers and show them. `added` names the parts that are added to layers which have lists
        already."""
        self._n_layers, self._ready, self._missing = n_layers, ready, missing
        self._built, self._done = 0, 0.0
        self._started = self._last_line = time.monotonic()
        to_do = [f"{missing} {self.to_do}"] if missing or not added else []
        to_do += [f"to add: {added}"] if added else []
        self.say(f"{model}: {ready} of {n_layers} {self.unit}s are ready, {'; '.join(to_do)}")
        if missing and self.console.is_interactive and self.console.file.isatty():
            self._bar = self._make_bar()
            self._task = self._bar.add_task(self._text(), total=missing, pace="")
            self._bar.start()

    def _make_bar(self) -> Bar:
        return Bar(*self.columns(), console=self.console)

    def columns(self) -> tuple[ProgressColumn, ...]:
        return TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[pace]}")

    def step(self, share: float) -> None:
        self._done += share
        if self._bar:
            self._bar.update(self._task, completed=self._done, pace=self.pace())
        elif time.monotonic() - self._last_line > QUIET:
            self._line(self._text())

    @contextmanager
    def beside_layers(self, what: str) -> Iterator[None]:
        """Do work that belongs to no layer, and leave its time out of the time that layers take."""
        self.say(what)
        began = time.monotonic()
        yield
        self._started += time.monotonic() - began

    def units_done(self, count: int) -> None:
        """Count several finished units at once."""
        self._ready += count
        self._built += count
        self.step(count)
        if self._bar:
            self._bar.update(self._task, description=self._text())

    def layer_done(self, layer: int) -> None:
        self.unit_done(str(layer))

    def unit_done(self, name: str) -> None:
        self._ready += 1
        self._built += 1
        self._done = float(self._built)  # set to the whole number, because shares need not add up exactly
        if self._bar:
            self._bar.update(self._task, description=self._text(), completed=self._done, pace=self.pace())
        else:
            self._line(f"{self.unit} {name} is ready; {self._text()}")

    def finish(self, folder: Path, ready: int, n_layers: int, nothing_done: bool) -> None:
        self.stop()
        self.say_finished(folder, ready, n_layers, nothing_done)

    def say_finished(self, folder: Path, ready: int, n_layers: int, nothing_done: bool) -> None:
        was = "was up to date already, nothing to do" if nothing_done else "is up to date"
        self.say(f"{folder} {was}: {ready} of {n_layers} {self.unit}s are ready")

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None

    def _text(self) -> str:
        return f"{self._ready} of {self._n_layers} {self.unit}s"

    def pace(self) -> str:
        """Return a text with the time that a layer takes, and the time left at that rate; "" while too little is done
        to tell."""
        if self._done <= ENOUGH:
            return ""
        per_layer = (time.monotonic() - self._started) / self._done
        text = f"{duration(per_layer)} a {self.unit}"
        if self._done < self._missing:
            text += f", about {duration(per_layer * (self._missing - self._done))} left"
        return text

    def _line(self, text: str) -> None:
        self._last_line = time.monotonic()
        self.say(", ".join(filter(None, (text, self.pace()))))


def duration(seconds: float) -> str:
    """Write a time with few digits: 0.4 s, 12 s, 3 min, 2.5 h."""
    if seconds < 99.5:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"
