"""Builds on a real Ray cluster of two machines, both this one: the bytes of a local build, whatever dies meanwhile."""

import importlib
import os
import re
import shutil
import signal
import socket
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import ray
import torch
from huggingface_hub import constants
from ray.cluster_utils import Cluster
from rich.console import Console

from lexiscope.precompute.build.cluster import runner, task, weights
from lexiscope.precompute.build.cluster.board import Notes
from lexiscope.precompute.build.cluster.job import NamedModel, build_on_ray
from lexiscope.precompute.build.cluster.machines import machine_name
from lexiscope.precompute.build.cluster.progress import ClusterProgress
from lexiscope.precompute.build.cluster.queue import Order
from lexiscope.precompute.build.cluster.task import Outcome
from lexiscope.precompute.build.job import build
from lexiscope.precompute.build.options import BuildOptions
from lexiscope.precompute.build.pieces import Task
from lexiscope.precompute.errors import BuildError
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference
from lexiscope.precompute.weights.sources import resolve
from tests.support.builds import PAIRS, SMALL, K, Listener, command, contents, small_gpt2
from tests.support.dataset_hub import DatasetHub
from tests.support.differences import difference_of, fine_tune, tuned_from
from tests.support.models import tiny_gpt2, tiny_llama

pytestmark = [pytest.mark.ray, pytest.mark.slow]

STORE_BYTES = 100 << 20
MEMORY = 4 << 30  # that tasks may ask for, whatever else runs here
LAYERS = 6  # of the model `deep`
CORES = 2  # of each machine: a task has both
MACHINE = {"num_cpus": CORES, "object_store_memory": STORE_BYTES, "memory": MEMORY}


@dataclass
class Machines:
    """Two machines with room for one task each. This process is connected to the first; the second can be lost."""

    cluster: Any
    second: Any
    client_port: int  # of Ray Client
    hub_caches: tuple[Path, Path]
    temporary: Path  # where tasks would leave files
    lost: bool = False  # the second

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    @property
    def names(self) -> list[str]:
        """As builds call them."""
        return [machine_name(node.node_ip_address, node.node_id) for node in (self.cluster.head_node, self.second)]

    def lose_second(self) -> None:
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.lost = True

    def replace_lost(self) -> None:
        """Another in its place."""
        if self.lost:
            self.second = self.cluster.add_node(**MACHINE)
            self.lost = False

    def warm_up(self) -> None:
        """Until both have a process that has loaded what tasks need, so that both take part in short builds."""
        deadline, seen = time.monotonic() + 300, set[str]()
        while len(seen) < 2:
            assert time.monotonic() < deadline, seen
            seen = set(ray.get([ray.remote(_load_and_wait).options(num_cpus=CORES).remote() for _ in range(2)]))


def _load_and_wait() -> str:
    importlib.import_module("lexiscope.precompute.build.cluster.task")
    time.sleep(0.1)
    return str(ray.get_runtime_context().get_node_id())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def hub() -> Iterator[tuple[DatasetHub, str]]:
    server = DatasetHub()
    with server.serve() as url:
        yield server, url


@pytest.fixture(scope="module")
def machines(hub: tuple[DatasetHub, str]) -> Iterator[Machines]:
    """One cluster for all tests of this module."""
    folder = Path(tempfile.mkdtemp(prefix="ls-", dir="/tmp"))  # short: the paths of sockets have 107 bytes at most
    caches, temporary = (folder / "hub-0", folder / "hub-1"), folder / "tmp"
    (temporary / "ray").mkdir(parents=True)  # Ray writes there which cluster is current
    head = {
        "include_dashboard": False,
        "include_log_monitor": False,
        "temp_dir": str(folder / "ray"),
        "ray_client_server_port": free_port(),
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Ray leaves log files and processes to the collector
        patch.setenv("HF_ENDPOINT", hub[1])
        patch.setenv("RAY_health_check_period_ms", "1000")  # five at which nobody answers, and a machine counts as lost
        patch.setenv("RAY_idle_worker_killing_time_threshold_ms", "600000")  # another would have to load torch again
        patch.setenv("RAY_prestart_worker_first_driver", "0")  # a process for each task, and none in advance
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")  # whatever else fills this machine is no fault of ours
        patch.setenv("HF_HUB_CACHE", str(caches[0]))
        patch.setenv("TMPDIR", str(temporary))
        cluster = Cluster(initialize_head=True, head_node_args={**MACHINE, **head})
        try:
            patch.setenv("HF_HUB_CACHE", str(caches[1]))
            second = cluster.add_node(**MACHINE)
            ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
            found = Machines(cluster, second, int(str(head["ray_client_server_port"])), caches, temporary)
            found.warm_up()
            yield found
        finally:
            ray.shutdown()
            cluster.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def both_there(machines: Machines) -> None:
    machines.replace_lost()


class Watcher(ClusterProgress):
    """What a build says and shows of its tasks, and a chance to do something whenever a layer is ready."""

    def __init__(self, look: Callable[[str], object] = lambda _: None) -> None:
        self.text, self.look, self.made_by = StringIO(), look, list[str]()
        self.shown_at: dict[str, str] = {}  # where a task is, by its name
        super().__init__(Console(file=self.text))

    def show(self, running: Sequence[Order], notes: Notes) -> None:
        super().show(running, notes)
        self.shown_at |= {task: doing.machine for task, doing in notes.doing.items()}

    def piece_done(self, order: Order, machine: str) -> None:
        super().piece_done(order, machine)
        if order.pieces[0].part == "lists":
            self.made_by.append(machine)
            self.look(machine)


def on_ray(
    data: Path, *sources: Checkpoint | Difference, watcher: Watcher | None = None, **options: Any
) -> tuple[int, str]:
    """How many failed, and what was said; the connection of this process is used."""
    watcher = watcher or Watcher()
    models = [NamedModel(source_name(source), partial(_as_it_is, source)) for source in sources]
    chosen = BuildOptions(**{"k": K, "pairs": PAIRS} | options)
    return build_on_ray(models, data, chosen, "auto", None, watcher), watcher.text.getvalue()


def _as_it_is(source: Checkpoint | Difference) -> Checkpoint | Difference:
    return source


def source_name(source: Checkpoint | Difference) -> str:
    return source.name if isinstance(source, Checkpoint) else source.checkpoint.name


def here(data: Path, *sources: Checkpoint | Difference, **options: Any) -> None:
    for source in sources:
        build(source, data, BuildOptions(**{"k": K, "pairs": PAIRS} | options), Listener())


def same(data: Path, other: Path) -> bool:
    names = sorted(path.name for path in data.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    return all(contents(data / name) == contents(other / name) for name in names)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with many layers that take a while, for something to happen meanwhile."""
    folder = tmp_path_factory.mktemp("deep") / "deep"
    return tiny_gpt2(folder, n_layers=LAYERS, n_heads=2, d_model=16, d_mlp=1500)


@pytest.fixture(scope="module")
def deep_index(deep: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("deep-built")
    here(data, Checkpoint.open(deep))
    return data / "deep"


def test_models_at_once_have_the_bytes_of_local_builds(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tied and an untied one in bfloat16, both from files, and a difference."""
    monkeypatch.setattr(weights, "CHUNK_BYTES", 10_000)  # larger tensors are in several pieces
    base = tiny_gpt2(tmp_path / "base", n_layers=3)
    tuned = tuned_from(base, tmp_path / "tuned", fine_tune)
    untied = tiny_llama(tmp_path / "untied", n_layers=3, tied=False, dtype=torch.bfloat16)
    sources = Checkpoint.open(base), Checkpoint.open(untied), difference_of(tuned, base)
    watcher = Watcher()
    assert on_ray(tmp_path / "ray", *sources, watcher=watcher)[0] == 0, watcher.text.getvalue()
    here(tmp_path / "here", *sources)
    assert same(tmp_path / "ray", tmp_path / "here")
    assert {*watcher.made_by} <= {*machines.names}
    text = watcher.text.getvalue()
    assert "2 machines with room for 2 tasks at once, of 2 threads" in text
    assert "3 models: 0 of 9 layers are ready, 9 to build" in text
    assert "nothing changed in layer 0" in text
    left = {path.name for path in machines.temporary.iterdir()}
    assert {name for name in left if not name.startswith("torchinductor")} == {"ray"}  # torch's own, by transformers
    failed, text = on_ray(tmp_path / "ray", *sources)
    assert (failed, text.count("was up to date already, nothing to do")) == (0, 3)


def test_a_hub_model_comes_from_the_cache_of_each_machine(
    machines: Machines, hub: tuple[DatasetHub, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, url = hub
    commit = server.add("owner/tiny", tiny_gpt2(tmp_path / "model"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "own-cache"))
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    huggingface_hub.close_session()
    checkpoint = resolve("owner/tiny", cache=tmp_path / "cache")
    watcher = Watcher()
    assert on_ray(tmp_path / "ray", checkpoint, watcher=watcher)[0] == 0, watcher.text.getvalue()
    snapshot = Path("models--owner--tiny", "snapshots", commit, "model.safetensors")
    used = [cache for cache in machines.hub_caches if (cache / snapshot).is_file()]
    assert len(used) >= len(set(watcher.made_by)) >= 1
    here(tmp_path / "here", checkpoint)
    assert same(tmp_path / "ray", tmp_path / "here")
    huggingface_hub.close_session()


def test_what_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """A layer alone, or all of a model whose embedding is spoiled."""

    def spoil(ending: str) -> Callable[[str, torch.Tensor], torch.Tensor]:
        return lambda name, tensor: tensor * torch.nan if name.endswith(ending) else tensor

    whole = small_gpt2(tmp_path / "whole")
    spoiled = tuned_from(whole, tmp_path / "spoiled", spoil("h.1.mlp.c_fc.weight"))
    unusable = tuned_from(whole, tmp_path / "unusable", spoil("wte.weight"))
    failed, text = on_ray(tmp_path / "ray", *(Checkpoint.open(folder) for folder in (spoiled, unusable, whole)))
    assert failed == 2
    assert "lexiscope: unusable: vocabulary could not be made" in text
    assert not (tmp_path / "ray" / "unusable" / "manifest.json").exists()
    assert "lexiscope: spoiled: layer 1 could not be made on " in text
    assert "h.1.mlp.c_fc.weight" in text
    assert "values that are not finite numbers" in text
    assert Index.open(tmp_path / "ray" / "spoiled").layers == (0, 2)
    here(tmp_path / "here", Checkpoint.open(whole))
    assert contents(tmp_path / "ray" / "whole") == contents(tmp_path / "here" / "whole")


def before_pieces(happens: Callable[[int | None, int], None]) -> Callable[..., Outcome]:
    """In place of `run_task`: the same, in a process of which something happens by piece and threads."""

    def run(*arguments: Any) -> Outcome:
        def make(inputs: Any, layer: Any, pieces: Task, threads: int, *more: Any) -> Any:
            happens(pieces[0].layer, threads)
            return as_ever(inputs, layer, pieces, threads, *more)

        as_ever = task.make
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(task, "make", make)
            return task.run_task(*arguments)

    return run


def test_what_becomes_of_tasks_that_run_out_of_memory_or_die(machines: Machines, tmp_path: Path) -> None:
    """In layer 2 memory suffices for one thread and in layer 1 for none; the process of layer 0 is killed, once. Its
    second try ends when the build has shown where it is, and how long all will take."""
    killed, seen = tmp_path / "killed", tmp_path / "seen"

    def happens(piece: int | None, threads: int) -> None:
        if piece == 1 or (piece == 2 and threads > 1):
            np.empty(1 << 60, np.uint8)
        if piece == 0 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        deadline = time.monotonic() + 120
        while piece == 0 and not seen.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    class Seeing(Watcher):
        def show(self, running: Sequence[Order], notes: Notes) -> None:
            super().show(running, notes)
            if "tiny layer 0" in self.shown_at and killed.exists() and "tiny: it will take" in self.text.getvalue():
                seen.touch()

    source = Checkpoint.open(small_gpt2(tmp_path / "tiny"))
    watcher = Seeing()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "run_task", before_pieces(happens))
        failed, text = on_ray(tmp_path / "ray", source, watcher=watcher)
    assert failed == 1
    assert re.search(r"layer 2 of tiny, made by .* is ready", text)
    assert re.search(r"tiny: not enough memory for layer 1 on .*, not even with 1 thread \(Unable to allocate ", text)
    assert re.search(r"layer 0 of tiny, made by .* is ready", text)
    assert watcher.shown_at["tiny layer 0"] in machines.names
    assert Index.open(tmp_path / "ray" / "tiny").layers == (0, 2)
    assert on_ray(tmp_path / "ray", source)[0] == 0
    here(tmp_path / "here", source)
    assert same(tmp_path / "ray", tmp_path / "here")


def test_a_machine_with_other_code_ends_the_command(
    deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "code_version", lambda: "lexiscope 9")
    with pytest.raises(
        BuildError, match=r"has lexiscope .* and the machine that gives out the tasks has lexiscope 9: "
    ):
        on_ray(tmp_path, Checkpoint.open(deep))


def test_a_driver_that_is_killed_or_interrupted_leaves_what_is_finished(
    machines: Machines, deep: Path, deep_index: Path, tmp_path: Path
) -> None:
    """The real command, on a machine of the cluster and as a client: what one leaves, the next goes on with."""
    words = ("precompute", deep, "--data", tmp_path, *SMALL, "--ray")
    known, first = {"RAY_ADDRESS": machines.address}, f"is ready; 1 of {LAYERS}"
    with command(tmp_path / "log", *words, "auto", environment=known, pause_at=first) as child:
        child.send(signal.SIGKILL)
        assert child.ended() == -signal.SIGKILL
    killed = len(Index.open(tmp_path / "deep").layers)
    assert 1 <= killed < LAYERS - 1
    client, next_one = f"ray://127.0.0.1:{machines.client_port}", f"is ready; {killed + 1} of {LAYERS}"
    with command(tmp_path / "log", *words, client, pause_at=next_one) as child:
        child.send(signal.SIGINT)
        assert child.ended() == 128 + signal.SIGINT
    assert f"{killed} of {LAYERS} layers are ready" in child.output()
    assert child.output().endswith("Stopped. Finished layers are kept; the same command goes on from here.\n")
    assert "Traceback" not in child.output()
    interrupted = len(Index.open(tmp_path / "deep").layers)
    assert killed < interrupted
    failed, text = on_ray(tmp_path, Checkpoint.open(deep))
    assert (failed, f"deep: {interrupted} of {LAYERS} layers are ready" in text) == (0, True), text
    assert contents(tmp_path / "deep") == contents(deep_index)


def test_a_machine_that_is_lost_in_the_midst(machines: Machines, deep: Path, deep_index: Path, tmp_path: Path) -> None:
    """It has made a layer, unless Ray gave it none before half of them were there, and works at the next, which the
    other makes then."""
    machines.warm_up()
    first, second = machines.names
    layers_before: list[int] = []

    def lose(machine: str) -> None:
        if not layers_before and (machine == second or len(watcher.made_by) == LAYERS // 2):
            layers_before.append(len(watcher.made_by))
            machines.lose_second()

    watcher = Watcher(lose)
    assert on_ray(tmp_path, Checkpoint.open(deep), watcher=watcher)[0] == 0, watcher.text.getvalue()
    assert layers_before[0] < LAYERS
    assert watcher.made_by[-1] == first
    assert contents(tmp_path / "deep") == contents(deep_index)
