"""Starts what browser tests and screenshots need: the server in a process of its own, and a system Chromium."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def serving(data: Path, **settings: str) -> Iterator[str]:
    """The explorer over a data folder, in a process of its own, with settings of its environment; its address."""
    port = free_port()
    words = ["serve", "--data", str(data), "--port", str(port)]
    with running(*words, **settings) as server:
        _wait(f"http://127.0.0.1:{port}/-/health", server)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(*words: str, **settings: str) -> Iterator["subprocess.Popen[bytes]"]:
    """One of our commands, until the end of the block."""
    command = [sys.executable, "-m", "app.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **settings}) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _wait(address: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        assert server.poll() is None, "the server ended before it answered"
        try:
            urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(address)


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
