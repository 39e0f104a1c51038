"""A pull that is killed at any moment goes on and ends with the same bytes; whole files are not fetched again."""

import io
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx2
import pytest
from huggingface_hub import constants
from rich.console import Console

from lexiscope.app.commands.cli import main
from lexiscope.app.urls import is_reserved
from lexiscope.precompute.build.build_folder import ARRIVING
from lexiscope.precompute.files import PARTIAL
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import MANIFEST, Manifest
from lexiscope.precompute.travel import on_web
from lexiscope.precompute.travel.on_web import IndexOnWeb
from lexiscope.precompute.travel.pull import PulledRecord, PullOptions, PullProgress, pull
from tests.precompute.travel.conftest import REPOSITORY, Run, files, publish
from tests.support.builds import command, forks, quick_build
from tests.support.dataset_hub import DatasetHub
from tests.support.processes import running
from tests.support.static_server import StaticServer, serving_at
from tests.support.synthetic import make_manifest, write_index

SHARD = "layer-3.safetensors"


def whole(data: Path) -> None:
    """Whatever is there can be used."""
    if (data / "tiny" / MANIFEST).exists():
        assert Index.open(data / "tiny").faults == {}


def die_at(moment: int, after: bool, words: list[str]) -> None:
    """`lexiscope WORDS` in a process that is killed before or after it gives a file its name for the n-th time."""
    sys.stderr = io.StringIO()
    rename, left = os.replace, iter(range(moment, -1, -1))

    def replace(source: Any, target: Any) -> None:
        last = next(left) == 0
        if not last or after:
            rename(source, target)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replace  # type: ignore[assignment]
    os._exit(main(words))


@pytest.mark.slow
@pytest.mark.parametrize(("after", "replaces"), [(False, True), (True, False)])
def test_killed_at_every_file_that_gets_its_name(after: bool, replaces: bool, tiny: Path, tmp_path: Path) -> None:
    """One process after the other comes a step further; the last one is not killed."""
    data = tmp_path / "data"
    words = ["pull", str(tiny), "--data", str(data), *(["--force"] if replaces else [])]
    wanted = files(tiny)
    if replaces:
        write_index(data / "tiny", make_manifest(k=5), layers=(3,))
        undisturbed = Path(shutil.copytree(data, tmp_path / "undisturbed"))
        assert main([*words[:3], str(undisturbed), "--force"]) == 0
        wanted = files(undisturbed / "tiny")
    kills = 0
    while True:
        child = forks().Process(target=die_at, args=(kills, after, words))
        child.start()
        child.join(300)
        whole(data)
        if child.exitcode == 0:
            break
        assert child.exitcode == -signal.SIGKILL
        kills += 1
    assert kills > 3
    assert files(data / "tiny") == wanted


@pytest.mark.slow
def test_killed_while_the_hub_sends(tiny: Path, hub: DatasetHub, tmp_path: Path, run: Run) -> None:
    """What its client had begun goes; what was pushed meanwhile waits until this commit is complete."""
    publish(hub, tiny)
    environment = {"HF_ENDPOINT": constants.ENDPOINT, "HF_HUB_DISABLE_XET": "1"}
    hub.outgoing.arm(sum((tiny / name).stat().st_size for name in (MANIFEST, SHARD, "tokenizer.json")) + 30_000)
    with running("pull", REPOSITORY, "--data", tmp_path, **environment) as process:
        hub.outgoing.aim(process.pid)
        assert process.wait(300) == -signal.SIGKILL
    whole(tmp_path)
    left = [path.name for path in (tmp_path / "tiny").rglob("*.incomplete")]
    assert len(left) == 1
    hub.repositories[REPOSITORY].commit({"README.md": b"Nothing is here any more."})
    assert run("pull", REPOSITORY, "--data", tmp_path)[0] == 0
    assert files(tmp_path / "tiny") == files(tiny)
    code, said = run("pull", REPOSITORY, "--data", tmp_path)  # nothing is left to go on with
    assert (code, "There is no index in" in said) == (1, True)


@pytest.mark.slow
def test_ctrl_c(tiny: Path, web: tuple[StaticServer, str], tmp_path: Path) -> None:
    """The command says how to go on."""
    site, address = web
    site.outgoing.arm((tiny / SHARD).stat().st_size + 30_000, signal.SIGINT)
    with command(tmp_path / "log", "pull", address, "--data", tmp_path) as child:
        site.outgoing.aim(child.pid)
        assert child.ended() == 130, child.output()
    assert "Finished layers are kept; the same command goes on from here" in child.output()
    assert 3 in Index.open(tmp_path / "tiny").layers
    quietly(address, tmp_path)
    assert files(tmp_path / "tiny") == files(tiny)


@pytest.mark.slow
def test_a_build_goes_on_with_a_pull_and_a_pull_with_a_build(
    source: Path, built: Path, tmp_path: Path, run: Run
) -> None:
    """And what a killed pull left goes."""
    for first, then in (("pull", "build"), ("build", "pull")):
        data = tmp_path / first
        for what, layers in ((first, (2,)), (then, None)):
            if what == "build":
                quick_build(source, data, layers=layers)
            else:
                assert run("pull", built, "--data", data, *(("--layers", "2") if layers else ()))[0] == 0
            assert not (data / "tiny" / ARRIVING).exists()
            if what == first:
                (data / "tiny" / ARRIVING).mkdir()
                (data / "tiny" / ARRIVING / f"{'0' * 64}{PARTIAL}").write_bytes(b"half")
        assert files(data / "tiny") == files(built)


def quietly(address: str, data: Path) -> None:
    progress = PullProgress(Console(file=io.StringIO()))
    pull(IndexOnWeb(address), address, data, PullOptions(), progress, is_reserved)


@pytest.mark.parametrize(("name", "n_bytes"), [(SHARD, 20_000), ("layer-1.safetensors", 1), ("layer-2.safetensors", 0)])
def test_a_connection_that_ends(
    name: str, n_bytes: int, tiny: Path, web: tuple[StaticServer, str], tmp_path: Path, run: Run
) -> None:
    """The second try fetches whole files, and only those that have not arrived."""
    site, address = web
    site.outgoing.cut = {name: n_bytes}
    code, err = run("pull", address, "--data", tmp_path)
    assert (code, f"{name} does not arrive" in err, "run this again later" in err) == (1, True, True), err
    whole(tmp_path)
    first = site.names()
    site.asked.clear()
    assert run("pull", address, "--data", tmp_path)[0] == 0
    assert files(tmp_path / "tiny") == files(tiny)
    safetensors = [path.name for path in tiny.glob("*.safetensors")]
    arrived = [file for file in first if file in safetensors and file != name]
    assert sorted(file for file in site.names() if file in safetensors) == sorted({*safetensors} - {*arrived})


@pytest.mark.parametrize("left", [lambda content: content[:1000], lambda content: content * 2])
def test_what_a_killed_try_left(
    left: Callable[[bytes], bytes], tiny: Path, web: tuple[StaticServer, str], tmp_path: Path
) -> None:
    """The file is fetched anew: what was not compared with its checksum is not trusted."""
    site, address = web
    arriving = tmp_path / "tiny" / ARRIVING
    arriving.mkdir(parents=True)
    sha256 = Manifest.load(tiny).shards[3].sha256
    (arriving / f"{sha256}{PARTIAL}").write_bytes(left((tiny / SHARD).read_bytes()))
    quietly(address, tmp_path)
    assert site.names().count(SHARD) == 1
    assert files(tmp_path / "tiny") == files(tiny)


@pytest.mark.parametrize(("trouble", "said"), [
    (lambda site, _: site.statuses.update({MANIFEST: 404}), "There is no index in"),
    (lambda site, _: site.statuses.update({MANIFEST: 403}), "is not open to everybody"),
    (lambda site, _: site.statuses.update({MANIFEST: 409}), "answers with status 409"),
    (lambda site, _: site.statuses.update({MANIFEST: 503}), "answers with status 503: try again later"),
    (lambda site, _: site.statuses.update({SHARD: 503}), "answers with status 503: try again later"),
    (lambda site, _: site.statuses.update({SHARD: 404}), f"lists {SHARD} and does not have it"),
    (lambda site, _: site.headers.update({"Content-Encoding": "gzip"}), "does not arrive"),
    (lambda site, url: site.redirects.update({f"tiny/{MANIFEST}": url + f"/{MANIFEST}"}), "leads on more than 5 times"),
    (lambda site, _: site.redirects.update({f"tiny/{MANIFEST}": "ftp://127.0.0.1/x"}), "is no address of a web server"),
    (lambda site, _: site.redirects.update({f"tiny/{MANIFEST}": "http://a..b/x"}), "is no address of a web server"),
    (lambda site, _: site.redirects.update({f"tiny/{MANIFEST}": "http://["}), "does not answer"),
])  # fmt: skip
def test_servers_in_trouble(
    trouble: Callable[[StaticServer, str], None], said: str, web: tuple[StaticServer, str], tmp_path: Path, run: Run
) -> None:
    site, address = web
    trouble(site, address)
    code, err = run("pull", address, "--data", tmp_path)
    assert code == 1
    assert re.search(said, err), err
    assert not list(tmp_path.glob("tiny/layer-*"))


def test_a_server_whose_file_is_too_short(tiny: Path, tmp_path: Path, run: Run) -> None:
    source = Path(shutil.copytree(tiny, tmp_path / "source" / "tiny"))
    os.truncate(source / SHARD, 1000)
    with StaticServer(source.parent).serve() as url:
        code, err = run("pull", f"{url}/tiny", "--data", tmp_path / "data")
    assert (code, f"{SHARD} ends after 1000 of the" in err) == (1, True), err
    assert not list((tmp_path / "data").rglob("layer-*"))
    assert not list((tmp_path / "data").rglob(f"*{PARTIAL}"))


def test_a_server_that_falls_silent(
    web: tuple[StaticServer, str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_web, "TIMEOUT", httpx2.Timeout(0.2, connect=300))
    site, address = web
    over = threading.Event()
    monkeypatch.setattr(site.outgoing, "write", lambda *_: over.wait(300))
    code, err = run("pull", address, "--data", tmp_path)
    over.set()
    assert (code, "does not arrive" in err) == (1, True), err


def test_nobody_listens(tmp_path: Path, run: Run) -> None:
    code, err = run("pull", "http://127.0.0.1:9/tiny", "--data", tmp_path)
    assert (code, "http://127.0.0.1:9/tiny does not answer" in err) == (1, True)
    assert not any(tmp_path.iterdir())


def test_a_redirect_is_followed(tiny: Path, web: tuple[StaticServer, str], tmp_path: Path) -> None:
    site, address = web
    for name in os.listdir(tiny):
        site.redirects[f"moved/{name}"] = f"{address}/{name}"
    quietly(address.replace("/tiny", "/moved/"), tmp_path)
    assert files(tmp_path / "tiny") == files(tiny)


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server with TLS that leads on to one without, its address, and the certificate that nobody vouches for."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    alternative = ("-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", key, "-out", certificate)
    subprocess.run([*words.split(), *alternative, *files], check=True, capture_output=True)

    class LeadsOn(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:9/tiny/manifest.json")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serving_at(LeadsOn, context) as url:
        yield url.replace("http:", "https:"), certificate


def test_encryption_is_not_given_up(
    encrypted: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(encrypted[1]))  # now somebody does
    code, err = run("pull", f"{encrypted[0]}/tiny", "--data", tmp_path / "data")
    assert (code, "leads on to 127.0.0.1 without encryption, which is not followed" in err) == (1, True), err


def test_the_record_of_a_stranger_is_passed_over(tmp_path: Path) -> None:
    for content in (b"{", b"[]", b'{"format": 2}', b"\xff"):
        (tmp_path / "pulled.json").write_bytes(content)
        assert PulledRecord.load(tmp_path) is None
