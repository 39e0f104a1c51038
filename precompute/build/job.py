"""Builds a model's index, one missing layer after the other. What is finished is kept and listed at once, so the job
can be killed at any moment."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from precompute.build.build_folder import BuildFolder, generation_after, load_current, read_build_state, with_best_lens
from precompute.build.classifier import make_classifier
from precompute.build.estimate import Work, size_text, time_text
from precompute.build.layer import BuildContext, Costs, make_layer
from precompute.build.lock import build_lock
from precompute.build.progress import Progress
from precompute.build.shard_writer import write_classifier, write_neighbours, write_shard, write_vocabulary
from precompute.build.unchanged import changes_text, layers_text
from precompute.device import is_out_of_memory, pick_device
from precompute.errors import BuildError, NotFound
from precompute.files import sha256_of
from precompute.index.layout import shard_size
from precompute.index.manifest import LARGEST_K, LARGEST_PAIRS, FileEntry, Manifest, Minus, read_old_fields
from precompute.index.tokens import pack, token_bytes
from precompute.project.nearest_tokens import nearest_tokens
from precompute.shape import LENSES, SIDES
from precompute.weights.architectures import describe
from precompute.weights.checkpoint import Checkpoint
from precompute.weights.classifier_head import ClassifierHead, read_head
from precompute.weights.difference import Difference, Parameters

K, PAIRS = 100, 500  # of a new index, unless something else is asked for
LARGEST_SHARD = 8 << 30  # bytes: a layer is in memory as a whole while it is made


@dataclass(frozen=True)
class Options:
    k: int | None = None  # None: as the index has it, else K
    pairs: int | None = None  # likewise; 0: none
    kinds: tuple[str, ...] | None = None  # None: as the index has them, else all
    lenses: tuple[str, ...] | None = None  # likewise
    layers: tuple[int, ...] | None = None  # None: all
    force: bool = False
    device: str = "auto"
    threads: int | None = None  # None: as many as there are cores


def build(source: Checkpoint | Difference, data: Path, options: Options, progress: Progress) -> Path:
    """Makes or completes DATA/<model>; returns that folder."""
    model = describe(source) if isinstance(source, Checkpoint) else source
    checkpoint = model.checkpoint
    wanted = wanted_layers(model, options)
    device = pick_device(options.device)
    folder = data / checkpoint.name
    with build_lock(folder):
        minus = f" and from {model.base.checkpoint.source}" if isinstance(model, Difference) else ""
        progress.say(f"{checkpoint.name}: checking the weights from {checkpoint.source}{minus}")
        weights_sha256 = checkpoint.weights_hash()
        current = load_current(folder, weights_sha256, options.force)
        if old := read_old_fields(folder):
            progress.say(f"{folder} has an older format: it is built anew, and its old files go when that is done")
        new = identify(model, weights_sha256, _as_built(options, current, old))
        new = new.with_changes(generation=generation_after(old))
        check_size(new)
        manifest, manifest_name = read_build_state(folder, new, current, wanted, options.force)
        build_folder = BuildFolder(folder, manifest_name, model.tokenizer_file())
        missing = [layer for layer in reversed(wanted) if layer not in manifest.shards]  # upper layers read best
        head = read_head(model)
        incomplete = bool(missing) or manifest.vocabulary is None or manifest.neighbours is None
        incomplete |= head is not None and manifest.classifier is None
        if incomplete:
            progress.start(manifest.model, model.shape.n_layers, len(manifest.shards), len(missing))
            threads = options.threads or os.cpu_count() or 1
            work = Work(manifest.stored, len(missing), manifest.neighbours is None, workers_on(device, threads))
            if isinstance(model, Difference) and missing:
                work = replace(work, unchanged=_say_changes(model, missing, progress))
            progress.say(f"{manifest.model}: {size_text(work)}")
            with compute_threads(device, threads) as pool:
                try:
                    manifest = _make(model, manifest, build_folder, missing, head, device, pool, progress, work)
                except (MemoryError, RuntimeError) as error:
                    raise_if_out_of_memory(error, manifest)
                    raise
        manifest = with_best_lens(folder, manifest)
        written = build_folder.finish(manifest)
        if manifest.minus:
            progress.say(f"{manifest.model}: {changes_text(folder, manifest)}")
        if manifest.kinds is None and options.kinds is None:
            progress.say(f"{manifest.model} stores no directions of heads: add --force to build it anew, with them")
        progress.finish(folder, len(manifest.shards), model.shape.n_layers, nothing_done=not (written or incomplete))
        if build_folder.has_unfinished_rebuild():
            progress.say("A rebuild beside it was stopped: the command with --force that began it goes on with it.")
    return folder


def _say_changes(difference: Difference, layers: list[int], progress: Progress) -> int:
    """Says what changed beside lists, and in which of these layers nothing did; gives the number of the latter."""
    for name, change in difference.embedding_changes.items():
        if change:
            progress.say(
                f"{difference.checkpoint.name}: {name} itself changed, |Δ{name}|/|{name}| = {change:.2g}; lists are "
                f"made with the base's {name}"
            )
    unchanged = tuple(layer for layer in layers if difference.is_unchanged(layer))
    if unchanged:
        progress.say(f"{difference.checkpoint.name}: nothing changed in {layers_text(unchanged)}")
    return len(unchanged)


def wanted_layers(model: Parameters, options: Options) -> list[int]:
    n_layers = model.shape.n_layers
    layers = sorted(set(options.layers)) if options.layers is not None else list(range(n_layers))
    if wrong := [layer for layer in layers if not 0 <= layer < n_layers]:
        raise NotFound(f"layer {wrong[-1]}: {model.checkpoint.name} has layers 0 to {n_layers - 1}")
    return layers


def identify(model: Parameters, weights_sha256: str, options: Options) -> Manifest:
    """The manifest of a build before it has any files."""
    checkpoint, shape = model.checkpoint, model.shape
    for name in options.kinds or ():
        if name not in shape.kinds:
            raise BuildError(f"--kinds {name}: the vectors of {checkpoint.name} are {', '.join(shape.kinds)}")
    kinds = tuple(kind for kind in shape.kinds if options.kinds is None or kind in options.kinds)
    pairs = PAIRS if options.pairs is None else options.pairs
    return Manifest(
        model=checkpoint.name,
        source=checkpoint.source,
        revision=checkpoint.revision,
        weights_sha256=weights_sha256,
        tokenizer_sha256=sha256_of(model.tokenizer_file()),
        shape=shape,
        k=min(options.k or K, shape.d_vocab, LARGEST_K),
        pairs=min(pairs, shape.d_vocab**2, LARGEST_PAIRS),
        lenses=tuple(lens for lens in LENSES if options.lenses is None or lens in options.lenses),
        kinds=None if kinds == shape.weight_kinds else kinds,
        minus=minus_of(model) if isinstance(model, Difference) else None,
    )


def minus_of(difference: Difference) -> Minus:
    base = difference.base.checkpoint
    return Minus(
        tuned=difference.tuned.checkpoint.name,
        model=base.name,
        source=base.source,
        revision=base.revision,
        weights_sha256=base.weights_hash(),
    )


def _as_built(options: Options, current: Manifest | None, old: Mapping[str, Any]) -> Options:
    """What the options leave open is as in the index that is there, in this format or an older one."""
    built: dict[str, Any] = {}
    if current:
        stored = current.stored
        built = {"k": stored.k, "pairs": stored.pairs, "kinds": stored.kinds, "lenses": stored.lenses}
        if options.force and options.layers is None and current.kinds is None:
            del built["kinds"]  # nobody chose them: an index that is built anew has directions, too
    else:
        built = {name: old[name] for name in ("k", "pairs") if type(old.get(name)) is int and old[name] >= 0}
        for name, known in (("kinds", SIDES), ("lenses", LENSES)):
            if isinstance(old.get(name), list):
                built[name] = tuple(one for one in known if one in old[name]) or None
    return replace(options, **{name: value for name, value in built.items() if getattr(options, name) is None})


def check_size(manifest: Manifest) -> None:
    """BuildError if the layers would be larger than one can be."""
    n_bytes, entries = shard_size(manifest.stored)
    if n_bytes > LARGEST_SHARD or entries > np.iinfo(np.uint32).max:
        raise BuildError(
            f"--k {manifest.k} and --pairs {manifest.pairs} make layers of up to {n_bytes / 1e9:.3g} GB, and one may "
            f"have {LARGEST_SHARD / 1e9:.3g} GB: ask for shorter lists"
        )


def raise_if_out_of_memory(error: Exception, manifest: Manifest) -> None:
    """Raises a BuildError that says what to do if `error` is that memory ran out."""
    if is_out_of_memory(error):
        first = str(error).splitlines()[0] if str(error) else "no more is given"
        raise BuildError(
            f"not enough memory to build {manifest.model} ({first}): use smaller lists (--pairs {manifest.pairs} and "
            f"--k {manifest.k} now) or fewer --threads; finished layers are kept"
        ) from error


def workers_on(device: torch.device, threads: int) -> int:
    return threads if device.type == "cpu" else 1


@contextmanager
def compute_threads(device: torch.device, threads: int) -> Iterator[Executor]:
    """A pool for make_layer. On the CPU each of its threads computes alone; float32 products stay float32."""
    before = torch.get_num_threads()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers_on(device, threads), initializer=lambda: torch.set_num_threads(1))
    try:
        yield pool
        pool.shutdown()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C: a search that is running cannot be stopped
        torch.set_num_threads(before)


def _make(
    model: Parameters,
    manifest: Manifest,
    build_folder: BuildFolder,
    missing: list[int],
    head: ClassifierHead | None,
    device: torch.device,
    pool: Executor,
    progress: Progress,
    work: Work,
) -> Manifest:
    tokens = token_bytes(build_folder.tokenizer, model.shape.d_vocab)
    context = BuildContext.of(model, tokens, manifest.stored, device, pool)
    if manifest.vocabulary is None:
        manifest = manifest.with_changes(vocabulary=_write_vocabulary(build_folder.folder, manifest, context, tokens))
        build_folder.save(manifest)
    if head and manifest.classifier is None:
        arrays = make_classifier(context, head)
        entry = write_classifier(build_folder.folder, manifest, arrays, head.labels, head.base is not None)
        manifest = manifest.with_changes(classifier=entry)
        build_folder.save(manifest)
    if not missing and manifest.neighbours is None:
        manifest = _add_neighbours(manifest, build_folder, context, progress)

    said: list[str] = []

    def say_time(costs: Costs) -> None:
        said.append(f"{manifest.model}: {time_text(work, costs)}")
        progress.say(said[-1])

    for layer in missing:
        build_folder.check()
        arrays = make_layer(context, layer, progress.step, None if said else say_time)
        manifest = manifest.with_shard(layer, write_shard(build_folder.folder, manifest, layer, arrays))
        build_folder.save(manifest)
        progress.layer_done(layer)
        if manifest.neighbours is None:  # not before there is something to read
            manifest = _add_neighbours(manifest, build_folder, context, progress)
    return manifest


def _add_neighbours(
    manifest: Manifest, build_folder: BuildFolder, context: BuildContext, progress: Progress
) -> Manifest:
    progress.say("finding the nearest tokens of every token")
    arrays = nearest_tokens(context.projectors["reads"].embedding, context.pool)
    manifest = manifest.with_changes(neighbours=write_neighbours(build_folder.folder, manifest, arrays))
    build_folder.save(manifest)
    return manifest


def _write_vocabulary(folder: Path, manifest: Manifest, context: BuildContext, tokens: list[bytes]) -> FileEntry:
    offsets, data = pack(tokens)
    arrays: dict[str, NDArray[Any]] = {"token.offsets": offsets, "token.bytes": data}
    sides = {"embedding": "reads"} if manifest.shape.tied else {"embedding": "reads", "unembedding": "writes"}
    for name, side in sides.items():
        embedding = context.projectors[side].embedding
        arrays[f"{name}.norm"] = embedding.norm.astype(np.float32)
        arrays[f"{name}.centred_norm"] = embedding.centred_norm.astype(np.float32)
    return write_vocabulary(folder, manifest, arrays)
