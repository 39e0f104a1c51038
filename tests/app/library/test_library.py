"""Indexes while they are served: layers appear, files vanish, shrink, change and come back, many threads read."""

import gc
import hashlib
import os
import resource
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models

from lexiscope.app.formats.json_format import json_bytes
from lexiscope.app.library.library import Library
from lexiscope.app.pages.token import TokenView
from lexiscope.app.urls import is_reserved
from lexiscope.precompute import files
from lexiscope.precompute.errors import IndexFault, LexiscopeError, ManifestDamaged, NotFound, ShardDamaged
from lexiscope.precompute.index import manifest
from lexiscope.precompute.index.manifest import MANIFEST, TOKENIZER
from tests.support.synthetic import GPT2, LLAMA, add_layer, make_manifest, write_index
from tests.support.views import layer_view, neuron_view, search_view, token_view

LAYERS = (0, 1, 3)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_index(tmp_path / "data" / "tiny", make_manifest(), LAYERS)
    return tmp_path / "data"


def shard_path(data: Path, layer: int) -> Path:
    return data / "tiny" / f"layer-{layer}.safetensors"


def always(data: Path) -> Library:
    """Looks at the files whenever it is asked."""
    return Library(data, every=0, is_reserved=is_reserved)


def ready(library: Library) -> tuple[int, ...]:
    library.wait_for_checks("tiny")
    return library.index("tiny").layers


def readable(library: Library) -> list[int]:
    """The layers whose pages can be made, once files that were touched have been checked."""
    library.wait_for_checks("tiny")
    found = []
    for layer in range(GPT2.n_layers):
        try:
            neuron_view(library.index("tiny"), layer, 0)
        except LexiscopeError:
            continue
        found.append(layer)
    return found


def test_an_index_is_opened_once_until_it_changes(data: Path) -> None:
    library, patient = always(data), Library(data, every=60)
    before, version, home = library.index("tiny"), library.index("tiny").version, library.version()
    assert patient.index("tiny").layers == LAYERS
    assert library.index("tiny") is before
    add_layer(data / "tiny", before.manifest, 2).save(data / "tiny")
    assert ready(library) == (0, 1, 2, 3)
    assert (library.index("tiny").version != version, library.version() != home) == (True, True)
    assert library.index("tiny").tokens is before.tokens  # with the texts that were made
    assert before.layers == LAYERS
    assert ready(patient) == LAYERS  # until it looks again


def shrink(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def alter(path: Path) -> None:
    """One byte in the middle, the size as before."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    os.utime(path, ns=(0, 0))


def alter_unseen(path: Path) -> None:
    times = path.stat()
    alter(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def replace_by_another(path: Path) -> None:
    os.replace(shutil.copy(path.with_name("layer-0.safetensors"), path.with_suffix(".copy")), path)


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


HARMS = [Path.unlink, shrink, empty, grow, alter, alter_unseen, replace_by_another, make_a_folder]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("every", [0, 60])
def test_a_layer_that_is_harmed_says_so_and_comes_back(
    data: Path, harm: Callable[[Path], None], every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(data, every)
    path = shard_path(data, 1)
    saved = path.read_bytes()
    assert readable(library) == [0, 1, 3]
    version = library.index("tiny").version
    harm(path)
    with pytest.raises(ShardDamaged, match=r"layer-1\.safetensors"):
        neuron_view(library.index("tiny"), 1, 0)
    assert readable(library) == [*ready(library)] == [0, 3]
    assert list(library.index("tiny").faults) == [1]
    assert library.index("tiny").version != version
    if path.is_dir():
        path.rmdir()
    path.write_bytes(saved)
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + every)  # the library looks again
    assert readable(library) == [0, 1, 3]
    assert not library.index("tiny").faults
    assert library.index("tiny").version == version


@pytest.mark.parametrize("harm", HARMS)
def test_an_index_in_hand_refuses_the_layer(data: Path, harm: Callable[[Path], None]) -> None:
    """Nothing was looked at since: the old file must not be read, and nothing may crash."""
    index = Library(data, every=60).index("tiny")
    shard = index.shard(1)
    harm(shard_path(data, 1))
    if harm in (shrink, empty):  # in the middle of a page
        with pytest.raises(ShardDamaged, match="was cut short while it was read"):
            shard.vector("w_v", 0, "dot")
    with pytest.raises(ShardDamaged, match=r"layer-1\.safetensors"):
        layer_view(index, 1)
    assert index.changed
    assert token_view(index, 40).missing == (1, 2)
    assert search_view(index, "e").missing == (1, 2)
    assert neuron_view(index, 0, 0).neuron == 0


@pytest.mark.parametrize("harm", [Path.unlink, shrink, empty])
def test_tokens_stay_while_their_file_is_gone(data: Path, harm: Callable[[Path], None]) -> None:
    library = Library(data, every=3600)
    index = library.index("tiny")
    harm(data / "tiny" / "vocabulary.safetensors")
    assert token_view(index, 65).token == {"id": 65, "token": "A"}
    assert search_view(index, "dog", library=library).words[0].tokens


def test_a_file_that_was_touched_is_hashed_in_a_thread(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile its layer is left out, the others serve, and nobody waits who does not want to."""
    go_on = threading.Event()
    hashed = files.sha256_of

    def slowly(path: Path) -> str:
        assert go_on.wait(120)
        return hashed(path)

    library = always(data)
    in_hand = library.index("tiny")
    monkeypatch.setattr(manifest, "sha256_of", slowly)
    os.utime(shard_path(data, 1), ns=(1, 1))
    with pytest.raises(ShardDamaged, match="Ask again"):
        in_hand.shard(1)
    for _ in range(3):
        index = library.index("tiny")
        assert index.layers == (0, 3)
        assert "is being checked" in str(index.faults[1])
    go_on.set()
    assert [*ready(library)] == readable(library) == [0, 1, 3]


def test_a_harmed_layer_stays_out_when_others_come(data: Path) -> None:
    library = always(data)
    manifest = library.index("tiny").manifest
    alter(shard_path(data, 1))
    assert ready(library) == (0, 3)
    add_layer(data / "tiny", manifest, 2).save(data / "tiny")
    assert ready(library) == (0, 2, 3)
    assert "checksum" in str(library.index("tiny").faults[1])


@contextmanager
def few_files(spare: int) -> Iterator[None]:
    """A process that may open that many more files."""
    gc.collect()  # libraries of other tests close their files now, not meanwhile
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 20, before[1]))
    held: list[int] = []
    try:
        while True:
            try:
                held.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        for _ in range(spare):
            os.close(held.pop())
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("spare", [1, 2])
@pytest.mark.parametrize("opened", [True, False])
def test_a_fault_of_the_system_passes(data: Path, opened: bool, spare: int) -> None:
    library = always(data)
    if opened:
        version = library.index("tiny").version
        for layer in LAYERS:
            os.utime(shard_path(data, layer), ns=(1, 1))
    with few_files(spare):
        assert "cannot be read: Too many open files" in str(library.index("tiny").faults)
        library.index("tiny")  # still so
    assert ready(library) == LAYERS
    assert not library.index("tiny").faults
    assert library.index("tiny") is library.index("tiny")
    assert not opened or library.index("tiny").version == version


@pytest.mark.parametrize("harm", HARMS)
def test_reloads_while_a_layer_is_harmed_leave_nothing_open(data: Path, harm: Callable[[Path], None]) -> None:
    library = always(data)
    library.index("tiny")
    harm(shard_path(data, 1))
    n_open = []
    for time_ in range(1, 9):
        os.utime(data / "tiny" / MANIFEST, ns=(time_, time_))
        assert ready(library) == (0, 3)
        assert list(library.index("tiny").faults) == [1]
        n_open.append(len(os.listdir("/proc/self/fd")))
    assert n_open[-1] < n_open[1] + 4  # six reloads later; a file is open for a moment while its checksum is made
    assert all(fault.__cause__ is None is fault.__context__ for fault in library.index("tiny").faults.values())


def test_an_index_that_is_built_anew(data: Path) -> None:
    library = always(data)
    version = library.index("tiny").version
    shutil.rmtree(data / "tiny")
    with pytest.raises(NotFound, match="no index of 'tiny'"):
        library.index("tiny")
    assert library.cards() == ()
    write_index(data / "tiny", make_manifest(LLAMA), (0,))
    assert ready(library) == (0,)
    assert library.index("tiny").shape == LLAMA
    assert library.index("tiny").version != version


def test_a_broken_manifest_hides_no_other_model(data: Path) -> None:
    write_index(data / "small", make_manifest(LLAMA, "small"))
    library = always(data)
    assert library.names() == ("small", "tiny")
    (data / "tiny" / MANIFEST).write_text("{")
    with pytest.raises(ManifestDamaged):
        library.index("tiny")
    small, tiny = library.cards()
    assert (small.model, small.architecture, small.n_layers, small.layers) == ("small", "llama", 3, (0, 1, 2))
    assert (small.bytes, small.faults) == (library.index("small").n_bytes, ())
    assert (tiny.model, tiny.n_layers, "is damaged" in tiny.faults[0]) == ("tiny", 0, True)
    assert library.version() != library.index("small").version


@pytest.mark.parametrize("name", ["docs", "index", "favicon.svg", "tiny.json"])
def test_a_folder_whose_name_a_page_has(data: Path, name: str) -> None:
    write_index(data / name, make_manifest(model=name), (0,))
    library = always(data)
    with pytest.raises(ManifestDamaged, match="a name that a page of the explorer has already"):
        library.index(name)
    assert {card.model: len(card.faults) for card in library.cards()} == {name: 1, "tiny": 0}


def test_a_folder_with_another_models_index(data: Path) -> None:
    shutil.copytree(data / "tiny", data / "copied")
    with pytest.raises(ManifestDamaged, match="is of another model, tiny"):
        always(data).index("copied")


@pytest.mark.parametrize("name", ["none", "", ".", "..", "../tiny", "tiny/", "tiny\0", "/etc", "ti ny", "é", ".cache"])
def test_no_such_model(data: Path, name: str) -> None:
    with pytest.raises(NotFound, match="built: tiny"):
        always(data).index(name)
    with pytest.raises(NotFound, match="did you mean tiny"):
        always(data).index("Tiny")


@pytest.mark.parametrize("make", [Path.resolve, Path.mkdir, Path.touch])
def test_no_models(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "data")
    library = always(tmp_path / "data")
    assert (library.cards(), library.names(), library.version()) == ((), (), "")
    with pytest.raises(NotFound, match="built: none"):
        library.index("tiny")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def other_tokenizer(path: Path) -> None:
    """A whole one, but not the model's: ids would mean other tokens."""
    path.write_text(Tokenizer(models.WordLevel({"a": 0}, "a")).to_str())


@pytest.mark.parametrize("harm", [Path.unlink, shrink, empty, grow, make_a_folder, pipe, other_tokenizer])
def test_a_tokenizer_that_is_not_the_models(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    saved = Tokenizer(models.WordLevel({"dog": 0, "the": 1}, "the")).to_str().encode()
    manifest = make_manifest().with_changes(tokenizer_sha256=hashlib.sha256(saved).hexdigest())
    write_index(tmp_path / "tiny", manifest, (0,))
    path = tmp_path / "tiny" / TOKENIZER
    path.write_bytes(saved)
    before = always(tmp_path)
    assert before.tokenizer("tiny") is before.tokenizer("tiny") is not None
    harm(path)
    library = always(tmp_path)
    assert library.tokenizer("tiny") is None
    assert search_view(library.index("tiny"), "the dog", library=library).pieces == []
    if path.is_dir():
        path.rmdir()
    path.unlink(missing_ok=True)
    path.write_bytes(saved)
    assert library.tokenizer("tiny")


def lists_alone(view: TokenView) -> TokenView:
    """Without the first pairs of heads, which are left out where a file goes between two reads."""
    return replace(view, pairs=[{**pair, "first": None} for pair in view.pairs or []])


def test_threads_while_files_come_and_go(data: Path) -> None:
    """Every answer is right or names the file; in the end all is well."""
    library = always(data)
    expected = json_bytes(neuron_view(library.index("tiny"), 1, 0))
    page = lists_alone(token_view(library.index("tiny"), 101, size=1000))
    saved = shard_path(data, 1).read_bytes()
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                view = lists_alone(token_view(library.index("tiny"), 101, size=1000))
                if view.missing == page.missing and view != page:
                    wrong.append(view)
                if json_bytes(neuron_view(library.index("tiny"), 1, 0)) != expected:
                    wrong.append("another neuron")
            except IndexFault as fault:
                if "layer-1.safetensors" not in str(fault):
                    wrong.append(fault)
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    path = shard_path(data, 1)
    for _ in range(20):
        for harm in (shrink, Path.unlink):
            harm(path)
            time.sleep(0.01)
            path.with_suffix(".new").write_bytes(saved)
            path.with_suffix(".new").replace(path)
            time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert readable(library) == [0, 1, 3]
