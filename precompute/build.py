"""Builds a model's index: which layers are missing, in which order, and what to do when the place is taken.

The making of one layer is shard.py's. A finished layer is kept and listed at once; everything else can be killed.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from precompute.architectures import describe
from precompute.architectures.base import Model
from precompute.build_lock import build_lock
from precompute.checkpoint import Checkpoint
from precompute.container import Container
from precompute.errors import IndexFault, IndexMissing, LexiscopeError, NotFound, OptionsDiffer
from precompute.files import PARTIAL, sha256_of, write_beside
from precompute.index import Index
from precompute.layout import shard_file, vocabulary_file
from precompute.manifest import MANIFEST, TOKENIZER, FileEntry, Manifest
from precompute.progress import Progress
from precompute.shard import Workbench, make_shard
from precompute.shard_writer import write_shard, write_vocabulary
from precompute.tokens import pack, token_bytes

NEXT = "manifest.next.json"  # of a rebuild that is not finished


@dataclass(frozen=True)
class Options:
    k: int = 100
    pairs: int = 500
    layers: tuple[int, ...] | None = None  # None: all
    force: bool = False
    device: str = "auto"
    threads: int | None = None  # None: as many as there are cores


def build(checkpoint: Checkpoint, data: Path, options: Options, progress: Progress) -> Path:
    """Makes or completes DATA/<model>; returns that folder."""
    model = describe(checkpoint)
    folder = data / checkpoint.name
    wanted = wanted_layers(model, options)
    with build_lock(folder):
        progress.say("reading the weights' hash")
        manifest = identify(model, options)
        manifest, name = _place(folder, manifest, wanted, options.force)
        if missing := [layer for layer in reversed(wanted) if layer not in manifest.shards]:
            progress.start(manifest.model, model.shape.n_layers, len(manifest.shards), len(missing))
            tokens = token_bytes(checkpoint.tokenizer_file(), model.shape.d_vocab)
            device, threads = pick_device(options.device), options.threads or os.cpu_count() or 1
            with compute_threads(device, threads) as pool:
                bench = Workbench.of(model, tokens, manifest.k, manifest.pairs, device, pool)
                if manifest.vocabulary is None:
                    manifest = _write_vocabulary(folder, manifest, bench, tokens, checkpoint)
                    manifest.save(folder, name)
                for layer in missing:  # upper layers first: they read best
                    arrays = make_shard(bench, layer, progress.step)
                    manifest = manifest.with_shard(layer, write_shard(folder, manifest, layer, arrays))
                    manifest.save(folder, name)
                    progress.layer_done(layer)
        if name == NEXT:
            os.replace(folder / NEXT, folder / MANIFEST)
        _remove_unlisted(folder, manifest)
    progress.finish(folder)
    return folder


def wanted_layers(model: Model, options: Options) -> list[int]:
    n_layers = model.shape.n_layers
    layers = sorted(set(options.layers)) if options.layers is not None else list(range(n_layers))
    if wrong := [layer for layer in layers if not 0 <= layer < n_layers]:
        raise NotFound(f"layer {wrong[-1]}: {model.checkpoint.name} has layers 0 to {n_layers - 1}")
    return layers


def identify(model: Model, options: Options) -> Manifest:
    """The manifest of a build before it has any files."""
    checkpoint = model.checkpoint
    return Manifest(
        model=checkpoint.name,
        source=checkpoint.source,
        revision=checkpoint.revision,
        weights_sha256=checkpoint.weights_hash(),
        tokenizer_sha256=sha256_of(checkpoint.tokenizer_file()),
        shape=model.shape,
        k=min(options.k, model.shape.d_vocab),
        pairs=min(options.pairs, model.shape.d_vocab**2),
    )


def pick_device(asked: str) -> torch.device:
    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise LexiscopeError(
            f"device {asked!r} cannot be used here ({str(error).splitlines()[0]}); try auto or cpu"
        ) from None
    return device


class compute_threads:  # noqa: N801 (used like a function)
    """A pool for make_shard. On the CPU each of its threads computes alone; float32 products stay float32."""

    def __init__(self, device: torch.device, threads: int) -> None:
        self.device, self.threads = device, threads

    def __enter__(self) -> ThreadPoolExecutor:
        self.before = torch.get_num_threads()
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_num_threads(1)
        workers = self.threads if self.device.type == "cpu" else 1
        self.pool = ThreadPoolExecutor(workers, initializer=lambda: torch.set_num_threads(1))
        return self.pool

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(self.before)


def _place(folder: Path, new: Manifest, wanted: list[int], force: bool) -> tuple[Manifest, str]:
    """What of `new` is already in the folder, and under which name its manifest goes on."""
    current = _load(folder, MANIFEST, force)
    if current is None:
        return _adopt(folder, new, wanted), MANIFEST
    if force:
        new = replace(new, generation=current.generation + 1)
        rebuilt = _load(folder, NEXT, force)
        if rebuilt and rebuilt.build == new.build and rebuilt.generation == new.generation:
            new = rebuilt
        elif current.build == new.build:  # layers that are not rebuilt stay
            new = replace(new, shards={n: entry for n, entry in current.shards.items() if n not in wanted})
        return _adopt(folder, new, wanted), NEXT
    if current.build != new.build:
        raise OptionsDiffer(f"{folder} holds another build ({_difference(current, new)}): add --force to replace it, "
                            "or build elsewhere with --data DIR")  # fmt: skip
    return _adopt(folder, _without_faults(folder, current), wanted), MANIFEST


def _load(folder: Path, name: str, force: bool) -> Manifest | None:
    try:
        return Manifest.load(folder, name)
    except IndexMissing:
        return None
    except IndexFault:
        if force:
            return None
        raise


def _difference(current: Manifest, new: Manifest) -> str:
    fields = (
        "k",
        "pairs",
        "revision",
        "weights_sha256",
        "tokenizer_sha256",
        "shape",
        "lenses",
        "presets",
        "format_version",
    )
    for field in fields:
        before, after = getattr(current, field), getattr(new, field)
        if before != after:
            return f"its {field} is {str(before)[:40]}, not {str(after)[:40]}"
    return "its model differs"


def _without_faults(folder: Path, manifest: Manifest) -> Manifest:
    """Forgets files that cannot be used, so that they are made again."""
    try:
        faults = Index.open(folder).faults
    except IndexFault:  # the vocabulary
        return replace(manifest, vocabulary=None)
    return replace(manifest, shards={n: entry for n, entry in manifest.shards.items() if n not in faults})


def _adopt(folder: Path, manifest: Manifest, wanted: list[int]) -> Manifest:
    """Lists files that are complete but were not listed when the build was killed, or that another machine made."""
    if manifest.vocabulary is None and (
        entry := _complete(folder, vocabulary_file(manifest.generation), manifest, None)
    ):
        manifest = manifest.with_vocabulary(entry)
    for layer in wanted:
        if layer not in manifest.shards:
            if entry := _complete(folder, shard_file(layer, manifest.generation), manifest, layer):
                manifest = manifest.with_shard(layer, entry)
    return manifest


def _complete(folder: Path, name: str, manifest: Manifest, layer: int | None) -> FileEntry | None:
    path = folder / name
    about = {"model": manifest.model, "build": manifest.build} | ({} if layer is None else {"layer": layer})
    try:
        if Container.open(path).about == about:
            return FileEntry(name, path.stat().st_size, sha256_of(path))
    except (LexiscopeError, OSError):
        pass
    return None


def _write_vocabulary(
    folder: Path, manifest: Manifest, bench: Workbench, tokens: list[bytes], checkpoint: Checkpoint
) -> Manifest:
    offsets, data = pack(tokens)
    arrays = {"token.offsets": offsets, "token.bytes": data}
    names = {"embedding": "reads"} if manifest.shape.tied else {"embedding": "reads", "unembedding": "writes"}
    for name, side in names.items():
        embedding = bench.projectors[side].embedding
        arrays[f"{name}.norm"] = embedding.norm.astype("float32")
        arrays[f"{name}.centred_norm"] = embedding.centred_norm.astype("float32")
    write_beside(folder / TOKENIZER, [checkpoint.tokenizer_file().read_bytes()])
    return manifest.with_vocabulary(write_vocabulary(folder, manifest, arrays))


def _remove_unlisted(folder: Path, manifest: Manifest) -> None:
    """Removes what an earlier generation or a killed writer left. A reader that has it mapped keeps it."""
    listed = {entry.file for entry in (manifest.vocabulary, *manifest.shards.values()) if entry}
    for path in folder.iterdir():
        if path.suffix == PARTIAL or (path.suffix == ".lxs" and path.name not in listed):
            path.unlink(missing_ok=True)
