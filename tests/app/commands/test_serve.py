"""`lexiscope serve` and the server of `lexiscope demo` as processes: addresses, signals, raw bytes, memory, no torch.
What pages show is for site/test_pages.py."""

import re
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lexiscope.app.asgi.http_server import MOST_OPEN_FILES, browser_address, listen, raise_file_limit
from lexiscope.app.commands import demo
from lexiscope.app.commands.cli import main, make_parser
from lexiscope.precompute.errors import ServeError
from tests.support.processes import get, serving
from tests.support.site import GPT2, LLAMA
from tests.support.workers import until

pytestmark = pytest.mark.slow

WHOLE = b"GET /-/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def connect(url: str) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname, address.port or 80), timeout=120)


def until_the_end(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


def raw(url: str, request: bytes) -> bytes:
    """The whole answer to bytes on a socket."""
    with connect(url) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return until_the_end(connection)


@pytest.fixture(scope="module")
def server(site_data: Path) -> Iterator[str]:
    with serving("--data", site_data) as (_, url):
        yield url


@pytest.mark.parametrize(("target", "statuses"), [
    (b"/\xff\xfe", (400, 404)), (b"/tiny-gpt2/search?q=\xff", (400, 404)),
    (b"/tiny-gpt2/search?q=d\xc3\xb6g", (200, 400)),  # 400: the parser takes ASCII only
    (b"/tiny-gpt2/search?q=%00", (400,)), (b"/a\x00b", (400,)), (b"/../../../../etc/passwd", (400, 404)),
    (b"/static/../../app/server.py", (404,)), (b"/static//etc/passwd", (404,)),
    (b"http://elsewhere.example/-/health", (200, 400, 404)),
    (b"*", (400, 404)),
    (b"/tiny-gpt2/search?q=" + b"x" * 100_000, (414, 400, 431)),
    (b"/" + b"x/" * 50_000, (414, 400, 431)),
])  # fmt: skip
def test_raw_addresses(server: str, target: bytes, statuses: tuple[int, ...]) -> None:
    answer = raw(server, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert int(answer.split()[1]) in statuses, answer[:200]
    assert b"root:" not in answer
    assert get(f"{server}/-/health")[0] == 200


@pytest.mark.parametrize("host", [b'x"><script>alert(1)</script>', b"", b"[::1]:8000", b"a b", b"\xff"])
def test_strange_hosts(server: str, host: bytes) -> None:
    answer = raw(server, b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
    assert int(answer.split()[1]) in (200, 400)
    assert b"alert(1)" not in answer


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
def test_an_endless_head_is_cut_off(server: str, start: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(start)
        with pytest.raises(OSError, match=r"reset|pipe"):
            connection.sendall(b"x" * (1 << 26))
    assert get(f"{server}/-/health")[0] == 200


def test_connections_leave_files_for_others() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        allowed = raise_file_limit()
        assert 256 < allowed <= MOST_OPEN_FILES
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (allowed, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_settings_of_the_environment(site_data: Path) -> None:
    """A body that never comes, one connection too many, and a log in which nothing stands that was typed."""
    settings = {"BODY_SECONDS": "0.3", "CONNECTIONS": "3", "ACCESS_LOG": "1", "LOG_LEVEL": "info"}
    environment = {f"LEXISCOPE_{name}": value for name, value in settings.items()}
    with serving("--data", site_data, **environment) as (process, url):
        with connect(url) as connection:
            head = b"POST /tiny-gpt2/prompt HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
            connection.sendall(head + b"text=")
            answer = until_the_end(connection)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"the setting body_seconds" in answer
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(connect(url))
            until(lambda: raw(url, WHOLE).startswith(b"HTTP/1.1 503 "))
        until(lambda: raw(url, WHOLE).startswith(b"HTTP/1.1 200 "))
        get(f"{url}/{GPT2}/search?q=zebra")
        raw(url, WHOLE.replace(b"/-/health", b"/a/b/zebra?q=zebra"))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        assert process.returncode in (0, -15, 143)
    assert "GET search 200" in err
    assert "GET none 404" in err
    assert "zebra" not in err


def test_a_child_ends_with_its_parent(site_data: Path) -> None:
    with serving("--data", site_data, "--child") as (process, url):
        get(url)
        assert process.stdin
        process.stdin.close()
        process.stdin = None
        assert process.wait(120) == 0


def test_a_port_in_use(server: str, site_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = str(urlsplit(server).port)
    assert main(["serve", "--data", str(site_data), "--port", port]) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"lexiscope: cannot listen at 127.0.0.1 port {port}: ")) == ("", True)
    assert "--port" in err


@pytest.mark.parametrize(
    ("host", "port"), [("256.1.1.1", 0), ("no.such.host.invalid", 0), ("192.0.2.1", 0), ("127.0.0.1", 99999)]
)
def test_no_such_place_to_listen(host: str, port: int) -> None:
    with pytest.raises(ServeError, match=f"cannot listen at {host} port {port}"):
        listen(host, port)


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:")])
def test_an_address_to_open(host: str, shown: str) -> None:
    with listen(host, 0) as listener:
        assert browser_address(listener).startswith(shown)


@pytest.mark.parametrize("url", ["http://me:secret@gpu", "tiny=http://a..b:1"])
def test_addresses_of_workers_are_checked_first(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEXISCOPE_WORKER_URL", url)
    assert main(["serve", "--port", "0"]) == 1
    out, err = capsys.readouterr()
    assert (out, "which is no address of a worker" in err, "secret" in err) == ("", True, False)


def test_no_torch_little_memory_and_a_quiet_end(site_data: Path) -> None:
    paths = ["/", f"/{GPT2}", f"/{GPT2}/ff/1/5", f"/{LLAMA}/token/300", f"/{GPT2}/search?q=xyzzy", f"/{LLAMA}/head/0/1"]
    with serving("--data", site_data) as (process, url):
        assert {get(url + path)[0] for path in (*paths, f"/{LLAMA}/head/0/1.tex", "/docs", "/-/help")} == {200}
        loaded = Path(f"/proc/{process.pid}/maps").read_text()
        assert "numpy" in loaded
        assert not re.search("torch|llvmlite|numba", loaded)
        lines = get(f"{url}/-/metrics")[1].decode().splitlines()
        resident = next(float(line.split()[1]) for line in lines if line.startswith("process_resident_memory_bytes "))
        assert 0 < resident < 200e6
        idle = connect(url)  # a visitor who stays
        idle.sendall(WHOLE.replace(b"close", b"keep-alive"))
        assert idle.recv(100).startswith(b"HTTP/1.1 200 ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        idle.close()
        assert (process.returncode in (0, 130), err) == (True, "")


def test_the_demo_serves_while_it_builds(
    site_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part of the demo that is not another command: a server that ends with it."""
    with listen("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        monkeypatch.setenv("LEXISCOPE_PORT", port)
        args = make_parser().parse_args(["demo", "--data", str(site_data)])
        with demo.serve_meanwhile(args) as (child, said):
            url = said.split()[3]
            assert url != f"http://127.0.0.1:{port}"  # taken: another one
            assert get(f"{url}/{GPT2}.json")[0] == 200
    assert child.returncode == 0
    assert said in capsys.readouterr().out


def test_the_demo_stops_serving_when_the_build_fails(site_data: Path) -> None:
    args = make_parser().parse_args(["demo", "--data", str(site_data), "--port", "0"])
    with pytest.raises(ZeroDivisionError), demo.serve_meanwhile(args) as (child, _):
        raise ZeroDivisionError
    assert child.returncode == 0


def test_a_demo_whose_server_cannot_start_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "build_and_show", lambda _: pytest.fail("it goes on without a server"))
    with listen("127.0.0.1", 0) as taken:
        assert main(["demo", "--data", str(tmp_path), "--port", str(taken.getsockname()[1])]) == 1
    errors = capfd.readouterr().err
    assert "Give another port" in errors
    assert "nothing is built; --no-serve builds without it" in errors
