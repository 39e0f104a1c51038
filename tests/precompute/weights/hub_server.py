"""A small Hub on this machine: enough of its HTTP interface for `huggingface_hub` to list and download a model.
Holds models as {id: {revision: {file name: content}}}, and can answer with any error instead.
"""

import hashlib
import json
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


def commit_of(files: dict[str, bytes]) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    for name, content in sorted(files.items()):
        digest.update(name.encode() + b"\0" + content)
    return digest.hexdigest()


class Hub:
    def __init__(self) -> None:
        self.models: dict[str, dict[str, dict[str, bytes]]] = {}
        self.failures: dict[str, tuple[int, str]] = {}  # model id -> status and X-Error-Code
        self.downloads: list[str] = []  # names of the files given out
        self.broken: str | None = None  # a file whose connection ends in the middle

    def add(self, repo_id: str, folder: Path, revision: str = "main") -> str:
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        self.models.setdefault(repo_id, {})[revision] = files
        self.models[repo_id][commit_of(files)] = files
        return commit_of(files)

    @contextmanager
    def serve(self) -> Iterator[str]:
        with serving_at(type("Handler", (_Handler,), {"hub": self})) as url:
            yield url


@contextmanager
def serving_at(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server on this machine, until the end of the block, and its address."""
    server = _Server(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no fault of the server."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            self._api("/".join(parts[2:4]), parts[4:])
        else:
            self._file("/".join(parts[:2]), parts[3], "/".join(parts[4:]))

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        pass

    def _api(self, repo_id: str, rest: list[str]) -> None:
        files = self._files(repo_id, rest[1] if len(rest) > 1 else "main")
        if files is None:
            return
        if rest[:1] == ["tree"]:
            tree = [
                {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                for name, content in files.items()
            ]
            self._answer(200, json.dumps(tree).encode())
        else:
            info = {"id": repo_id, "sha": commit_of(files), "siblings": [{"rfilename": name} for name in files]}
            self._answer(200, json.dumps(info).encode())

    def _file(self, repo_id: str, revision: str, name: str) -> None:
        files = self._files(repo_id, revision)
        if files is None:
            return
        if name not in files:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        if self.command == "GET":
            self.hub.downloads.append(name)
        etag = hashlib.sha1(files[name], usedforsecurity=False).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": commit_of(files)}
        self._answer(200, files[name], headers, cut=self.hub.broken == name)

    def _files(self, repo_id: str, revision: str) -> dict[str, bytes] | None:
        if repo_id in self.hub.failures:
            status, code = self.hub.failures[repo_id]
            self._answer(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})
        elif repo_id not in self.hub.models:
            self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif revision not in self.hub.models[repo_id]:
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        else:
            return self.hub.models[repo_id][revision]
        return None

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None, cut: bool = False) -> None:
        self.send_response(status)
        for key, value in {
            "Content-Length": str(len(body)),
            "Content-Type": "application/json",
            **(headers or {}),
        }.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = self.close_connection or cut
