"""Stitch two models on a file of texts, which means to feed states of one to the last layers of the other, and keep the
results in stitching.json beside their comparison."""

from pathlib import Path

from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.compare.job import CompareOptions, compare
from lexiscope.precompute.compare.stitching import stitch
from lexiscope.precompute.device import pick_device
from lexiscope.precompute.errors import OptionsDiffer
from lexiscope.precompute.files import write_beside
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.stitching import MOST_RUNS, STITCHING, StitchingRun, dump_runs, read_runs
from lexiscope.precompute.live.texts import Texts
from lexiscope.precompute.weights.architectures.base import Model


class StitchProgress(Progress):
    unit = "text"
    to_do = "to stitch"


class _KernelProgress(Progress):
    """A progress report that shows nothing, because a comparison of no kinds only makes the kernel."""

    def start(self, model: str, n_layers: int, ready: int, missing: int, added: str = "") -> None:
        pass

    def finish(self, folder: Path, ready: int, n_layers: int, nothing_done: bool) -> None:
        pass


def stitch_models(
    a: Model, b: Model, data: Path, texts: Texts, progress: Progress, *, last: int, limit: int, length: int,
    device: str = "auto",
) -> StitchingRun:  # fmt: skip
    """Stitch two models, and make the kernel first if there is none. The run replaces an earlier one of the same texts
    and number of layers."""
    folder = _compare(a, b, data, device, progress)
    comparison = Comparison.open(folder)
    read_runs(folder)  # raises an error now, not after the run, if the run could not be added to this file
    names, done = f"{a.checkpoint.name} → {b.checkpoint.name}", 0

    def tick(ready: int, count: int) -> None:
        nonlocal done
        if not ready:
            progress.start(names, count, 0, count)
        progress.units_done(ready - done)
        done = ready

    kernel = comparison.kernel().astype("float64")
    run = stitch(a, b, kernel, texts, pick_device(device), last=last, limit=limit, length=length, tick=tick)
    progress.stop()
    with build_lock(folder):
        write_beside(folder / STITCHING, [dump_runs(_with_run(read_runs(folder), run))])
    return run


def _compare(a: Model, b: Model, data: Path, device: str, progress: Progress) -> Path:
    try:
        return compare(a, b, data, CompareOptions(kinds=(), device=device), _KernelProgress(progress.console))
    except OptionsDiffer as error:
        raise OptionsDiffer(f"{error}. It is `lexiscope compare` that takes --force") from None


def _with_run(runs: tuple[StitchingRun, ...], new: StitchingRun) -> tuple[StitchingRun, ...]:
    """Return the runs with a new one: one run for each file of texts and number of layers, sorted by these, and no run
    of other weights."""

    def key(run: StitchingRun) -> tuple[str, int]:
        return run.texts, run.last

    kept = [run for run in runs if _weights(run) == _weights(new) and key(run) != key(new)]
    return tuple(sorted([*kept[-MOST_RUNS + 1 :], new], key=key))


def _weights(run: StitchingRun) -> tuple[str, str]:
    return run.a_weights_sha256, run.b_weights_sha256
