"""Build indexes of tiny models for tests: quietly in this process, or by the real command in a child that can be
killed. Children are forked from a server that has imported everything, so that one starts in a moment."""

import contextlib
import io
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import lexiscope.app.commands.cli
import lexiscope.app.weights
import lexiscope.precompute.weights.sources  # for the children
from lexiscope.precompute.build.job import build
from lexiscope.precompute.build.lock import LOCK
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.verify.sample import check_sample
from lexiscope.precompute.verify.sums import check_sums
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.models import tiny_gpt2

SHARD, VOCABULARY, NEIGHBOURS = "layer-1.safetensors", "vocabulary.safetensors", "neighbours.safetensors"
K, PAIRS = 8, 12
SMALL = ("--k", str(K), "--pairs", str(PAIRS))


def small_gpt2(folder: Path, n_layers: int = 3, **more: Any) -> Path:
    return tiny_gpt2(folder, n_layers=n_layers, n_heads=1, d_model=8, d_mlp=6, **more)


class Listener(Progress):
    """Keep the messages of a build, and let a test look at its folder whenever a layer is ready."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        self.layers: list[int] = []
        super().__init__(Console(file=self.text))

    def layer_done(self, layer: int) -> None:
        super().layer_done(layer)
        self.layers.append(layer)
        self.look()

    def look(self) -> None:
        """Do nothing; tests replace it."""


def quick_build(source: Path, data: Path, listener: Listener | None = None, **options: Any) -> Path:
    chosen = BuildOptions(**{"k": K, "pairs": PAIRS} | options)
    return build(Checkpoint.open(source), data, chosen, listener or Listener())


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of an index, byte for byte."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def faults(index: Path, source: Path | None = None, sample: int = 1000) -> list[str]:
    """Return the errors of a finished index by its sums and, if the weights are given, by brute force."""
    opened = Index.open(index)
    results = [*check_sums(opened)]
    if source:
        results += check_sample(opened, describe(Checkpoint.open(source)), sample, seed=1, rows=1000)
    return [f"{name}: {fault}" for name, fault in results if fault]


def stamps(folder: Path) -> Mapping[str, tuple[int, int]]:
    """Return stamps that change with every write; the lock is left out, because every build writes it."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in folder.iterdir() if p.name != LOCK}


def copy(index: Path, data: Path) -> Path:
    return Path(shutil.copytree(index, data / index.name))


@dataclass(frozen=True)
class Child:
    process: ForkServerProcess
    log: Path

    @property
    def pid(self) -> int:
        assert self.process.pid
        return self.process.pid

    def output(self) -> str:
        return self.log.read_text()

    def wait_until_paused(self, seconds: float = 300) -> None:
        """Wait until the command has printed `pause_at`; from then on it does nothing until it gets a signal."""
        deadline = time.monotonic() + seconds
        while not re.search(r"^State:\s+T", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE):
            assert self.process.is_alive(), self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.01)

    def send(self, number: int) -> None:
        """Send a signal to the paused command, which then continues with it."""
        self.wait_until_paused()
        os.kill(self.pid, number)
        with contextlib.suppress(ProcessLookupError):  # SIGKILL needs no SIGCONT
            os.kill(self.pid, signal.SIGCONT)

    def ended(self, seconds: float = 300) -> int:
        self.process.join(seconds)
        assert self.process.exitcode is not None, self.output()
        return self.process.exitcode


def forks() -> ForkServerContext:
    """Start the server in an environment where it finds this package, unless it runs already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with contextlib.chdir(Path(__file__).parents[2]):
        forkserver.ensure_running()
    return context


@contextlib.contextmanager
def command(
    log: Path,
    *words: str | Path,
    limit: int | None = None,
    fatal: bool = False,
    environment: Mapping[str, str] | None = None,
    pause_at: str | None = None,
) -> Iterator[Child]:
    """Run `lexiscope WORDS` in a child; with a limit on the size of files, which may be fatal in the middle of a write.
    The child pauses when it has printed `pause_at`, so that a signal meets it there on a machine of any speed."""
    log.write_text("")
    arguments = (log, [str(word) for word in words], limit, fatal, environment or {}, pause_at)
    process = forks().Process(target=_run, args=arguments)
    process.start()
    try:
        yield Child(process, log)
    finally:
        process.kill()
        process.join()


def _run(
    log: Path, words: list[str], limit: int | None, fatal: bool, environment: Mapping[str, str], pause_at: str | None
) -> None:
    os.environ.update(environment)
    if pause_at:
        _pause_when_said(pause_at, log)
    output = os.open(log, os.O_WRONLY | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if fatal else signal.SIG_IGN)
    sys.exit(lexiscope.app.commands.cli.main(words))


def _pause_when_said(text: str, log: Path) -> None:
    print_as_ever, paused = Console.print, False

    def print_and_pause(console: Console, *objects: Any, **options: Any) -> None:
        nonlocal paused
        print_as_ever(console, *objects, **options)
        if not paused and text in log.read_text():
            paused = True
            os.kill(os.getpid(), signal.SIGSTOP)

    pytest.MonkeyPatch().setattr(Console, "print", print_and_pause)
