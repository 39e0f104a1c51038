"""Compare two models, one kind of vectors after the other. Each finished file is kept and listed at once, so the job
can be killed at any moment."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.options import minus_of
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.build.threads import compute_threads
from lexiscope.precompute.compare.common_tokens import LEAST_COMMON_TOKENS, CommonTokens, check_enough, common_tokens
from lexiscope.precompute.compare.compared_arrays import Comparer
from lexiscope.precompute.compare.comparison_files import add_file, read_state
from lexiscope.precompute.device import is_out_of_memory, pick_device
from lexiscope.precompute.errors import BuildError
from lexiscope.precompute.files import folder_gone, sha256_of
from lexiscope.precompute.index.comparison_record import KERNEL, ComparedModel, ComparisonRecord, comparison_folder
from lexiscope.precompute.index.tokens import token_bytes
from lexiscope.precompute.weights.difference import Difference, Parameters


@dataclass(frozen=True)
class CompareOptions:
    kinds: tuple[str, ...] | None = None  # None: all that both models have; (): the kernel alone
    force: bool = False
    device: str = "auto"
    threads: int | None = None  # None: as many as there are cores
    least_tokens: int = LEAST_COMMON_TOKENS


class CompareProgress(Progress):
    unit = "kind"
    to_do = "to compare"


def compare(a: Parameters, b: Parameters, data: Path, options: CompareOptions, progress: Progress) -> Path:
    """Make or complete the comparison in DATA/vs/A/B, and return that folder. The kernel, which turns states of A into
    states of B, is made whichever kinds are asked for."""
    device = pick_device(options.device)
    name_a, name_b = a.checkpoint.name, b.checkpoint.name
    common = common_tokens(*(token_bytes(model.tokenizer_file(), model.shape.d_vocab) for model in (a, b)))
    check_enough(common, name_a, name_b, options.least_tokens)
    progress.say(f"{name_a} and {name_b} have {len(common)} tokens in common: {common.how}")
    folder = comparison_folder(data, name_a, name_b)
    with build_lock(folder):
        progress.say(f"checking the weights from {a.checkpoint.source} and {b.checkpoint.source}")
        new = identify(a, b, common)
        _say_what_is_left_out(new, progress)
        record = read_state(folder, new, options.force)
        wanted = [kind for kind in new.kinds if options.kinds is None or kind in options.kinds]
        missing = [name for name in (KERNEL, *wanted) if name not in record.files]
        lacks_chance = bool(wanted) and not record.chance
        if missing or lacks_chance:
            kinds = [name for name in missing if name != KERNEL]
            progress.start(f"{name_a} vs {name_b}", len(wanted), len(wanted) - len(kinds), len(kinds))
            try:
                with compute_threads(device, options.threads or os.cpu_count() or 1) as pool:
                    comparer = Comparer(a, b, common, device, pool)
                    if lacks_chance:
                        record = record.model_copy(update={"chance": comparer.chance()})
                        record.save(folder)
                    _make_files(comparer, record, folder, missing, progress)
            except (MemoryError, RuntimeError) as error:
                if is_out_of_memory(error):
                    raise BuildError(
                        f"not enough memory to compare {name_a} with {name_b}: use fewer --threads, or a machine with "
                        "more; finished kinds are kept"
                    ) from error
                raise
        progress.finish(folder, len(wanted), len(wanted), nothing_done=not (missing or lacks_chance))
    return folder


def identify(a: Parameters, b: Parameters, common: CommonTokens) -> ComparisonRecord:
    """Return the record of a comparison before it has any files."""
    with ThreadPoolExecutor(2) as pool:  # both models' files are read whole for their hashes, at the same time
        compared_a, compared_b = pool.map(_compared, (a, b))
    return ComparisonRecord(a=compared_a, b=compared_b, tokens=len(common), matched=common.matched)


def _compared(model: Parameters) -> ComparedModel:
    checkpoint, shape = model.checkpoint, model.shape
    return ComparedModel(
        model=checkpoint.name,
        source=checkpoint.source,
        revision=checkpoint.revision,
        weights_sha256=checkpoint.weights_hash(),
        minus=minus_of(model) if isinstance(model, Difference) else None,
        tokenizer_sha256=sha256_of(model.tokenizer_file()),
        n_layers=shape.n_layers,
        d_model=shape.d_model,
        kinds={kind: shape.count(kind) for kind in shape.kinds},
    )


def _say_what_is_left_out(record: ComparisonRecord, progress: Progress) -> None:
    for one, other in ((record.a, record.b), (record.b, record.a)):
        if only := [kind for kind in one.kinds if kind not in other.kinds]:
            progress.say(f"{', '.join(only)} is left out: {one.model} has it and {other.model} does not")


def _make_files(
    comparer: Comparer, record: ComparisonRecord, folder: Path, names: list[str], progress: Progress
) -> None:
    for name in names:
        if not folder.is_dir():
            raise folder_gone(folder)
        arrays = comparer.kernel() if name == KERNEL else comparer.kind(name, progress.step)
        record = add_file(folder, record, name, arrays)
        if name != KERNEL:
            progress.unit_done(name)
