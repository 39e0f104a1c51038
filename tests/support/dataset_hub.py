"""Serve repositories of datasets and models as a small Hub on this machine: what `huggingface_hub` asks to create one,
to commit to it and to download from it, with large files as LFS. It keeps every commit, so that tests can look at what
readers saw meanwhile."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import huggingface_hub
import pytest
from huggingface_hub import constants

from tests.support.static_server import Outgoing, serving_at

TOKEN = "hf_aVeryPrivateToken"

Files = dict[str, bytes]


@dataclass
class Repository:
    private: bool = False
    commits: dict[str, Files] = field(default_factory=dict)  # in the order of the commits
    messages: list[str] = field(default_factory=list)
    branches: dict[str, str] = field(default_factory=dict)

    def files(self, revision: str = "main") -> Files | None:
        return self.commits.get(self.branches.get(revision, revision))

    def commit(self, files: Files, branch: str = "main", message: str = "") -> str:
        digest = hashlib.sha1(repr((len(self.commits), branch, sorted(files))).encode(), usedforsecurity=False)
        self.branches[branch] = digest.hexdigest()
        self.commits[digest.hexdigest()] = files
        self.messages.append(message)
        return digest.hexdigest()


class DatasetHub:
    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}  # large files by their SHA-256
        self.token: str | None = None  # the token that a writer must send
        self.failures: dict[str, tuple[int, str]] = {}  # errors by part of a path: status and X-Error-Code
        self.altered: dict[str, bytes] = {}  # files that are given out with other content
        self.broken = ""  # a file of which only the first half is ever given out
        self.is_full = False  # whether to refuse further large files
        self.outgoing = Outgoing()
        self.uploads: list[str] = []  # SHA-256 of files that were sent to LFS
        self.downloads: list[str] = []

    def make(self, repo_id: str, files: Files | None = None) -> Repository:
        repository = self.repositories[repo_id] = Repository()
        repository.commit({".gitattributes": b"*.safetensors filter=lfs", **(files or {})})
        return repository

    def add(self, repo_id: str, folder: Path, branch: str = "main") -> str:
        """Commit the files of a folder, as those of a model; return the commit."""
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        return self.repositories.setdefault(repo_id, Repository()).commit(files, branch)

    @contextmanager
    def serve(self) -> Iterator[str]:
        with serving_at(type("Handler", (_Handler,), {"hub": self})) as url:
            yield url


@contextmanager
def logged_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetHub]:
    """Let the Hub's client speak to a small Hub that demands a token for writing, as a user who has the token."""
    hub = DatasetHub()
    hub.token = TOKEN
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # Xet is another way to store, and a service of its own
    huggingface_hub.close_session()
    with hub.serve() as url:
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        yield hub
        huggingface_hub.close_session()


def is_large(name: str) -> bool:
    return name.endswith(".safetensors")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    hub: DatasetHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._route()

    def do_HEAD(self) -> None:
        self._route()

    def do_POST(self) -> None:
        self._route()

    def do_PUT(self) -> None:
        self._route()

    def log_message(self, *_: Any) -> None:
        pass

    def _route(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.body = self._chunks()
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        for path, (status, code) in self.hub.failures.items():
            if path in self.path:
                self._answer(status, b"{}", {"X-Error-Code": code, "X-Error-Message": code})
                return
        writes = self.command in ("POST", "PUT") and parts[0] != "lfs"
        if writes and self.hub.token and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            self._answer(401, b"{}", {"X-Error-Message": "Invalid credentials"})
            return
        match parts:
            case ["api", "repos", "create"]:
                self._create()
            case ["api", "validate-yaml"]:
                wrong = [{"message": "no YAML"}] if b"license: [" in self.body else []
                self._json({"errors": wrong, "warnings": []}, 400 if wrong else 200)
            case ["lfs", oid]:
                self.hub.objects[oid] = self.body
                self.hub.uploads.append(oid)
                self._answer(200, b"")
            case ["datasets", owner, name, "info", "lfs", "objects", "batch"]:
                self._batch(f"{owner}/{name.removesuffix('.git')}")
            case ["api", "datasets" | "models", owner, name, *rest]:
                self._api(f"{owner}/{name}", rest)
            case ["datasets", owner, name, "resolve", revision, file] | [owner, name, "resolve", revision, file]:
                self._file(f"{owner}/{name}", revision, file)
            case _:
                self._answer(404, b"{}", {"X-Error-Message": f"unknown path {self.path}"})

    def _create(self) -> None:
        asked = json.loads(self.body)
        assert asked["type"] == "dataset"
        repo_id = f"{asked['organization']}/{asked['name']}"
        existed = repo_id in self.hub.repositories
        if not existed:
            self.hub.make(repo_id).private = asked.get("visibility") == "private"
        self._json({"url": f"{self._base()}/datasets/{repo_id}"}, 409 if existed else 200)

    def _batch(self, repo_id: str) -> None:
        del repo_id
        objects: list[dict[str, Any]] = []
        for asked in json.loads(self.body)["objects"]:
            upload = {"upload": {"href": f"{self._base()}/lfs/{asked['oid']}", "header": {}}}
            known: dict[str, Any] = {} if asked["oid"] in self.hub.objects else {"actions": upload}
            if self.hub.is_full:
                known = {"error": {"code": 403, "message": "storage limit reached"}}
            objects.append({"oid": asked["oid"], "size": asked["size"], **known})
        self._json({"transfer": "basic", "objects": objects})

    def _api(self, repo_id: str, rest: list[str]) -> None:
        repository = self.hub.repositories.get(repo_id)
        if repository is None:
            self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        action, revision = rest if rest else ("revision", "main")
        if action == "branch":
            known = revision in repository.branches
            repository.branches.setdefault(revision, repository.branches["main"])
            self._json({}, 409 if known else 200)
            return
        files = repository.files(revision)
        if files is None:
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        elif action == "revision":
            self._info(repo_id, repository.branches.get(revision, revision), files)
        elif action == "tree":
            self._json(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": git_hash(content)}
                    for name, content in files.items()
                ]
            )
        elif action == "preupload":
            self._preupload(files)
        elif action == "commit":
            self._commit(repo_id, repository, revision, files)

    def _info(self, repo_id: str, commit: str, files: Files) -> None:
        blobs = "blobs" in parse_qs(urlsplit(self.path).query)
        siblings: list[dict[str, Any]] = []
        for name, content in files.items():
            sibling: dict[str, Any] = {"rfilename": name}
            if blobs:
                sibling |= {"size": len(content), "blobId": git_hash(content)}
                if is_large(name):
                    sibling["lfs"] = {"size": len(content), "sha256": sha256(content), "pointerSize": 134}
            siblings.append(sibling)
        self._json({"id": repo_id, "sha": commit, "siblings": siblings})

    def _preupload(self, files: Files) -> None:
        answer: list[dict[str, Any]] = []
        for asked in json.loads(self.body)["files"]:
            name = asked["path"]
            mode = "lfs" if is_large(name) else "regular"
            told = {"path": name, "uploadMode": mode, "shouldIgnore": False}
            if name in files:
                told["oid"] = sha256(files[name]) if mode == "lfs" else git_hash(files[name])
            answer.append(told)
        self._json({"files": answer})

    def _commit(self, repo_id: str, repository: Repository, branch: str, before: Files) -> None:
        header, *operations = (json.loads(line) for line in self.body.splitlines())
        if header["value"].get("parentCommit") not in (None, repository.branches[branch]):
            self._answer(412, b"{}", {"X-Error-Message": "A commit has happened since. Please refresh and try again."})
            return
        files = dict(before)
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "lfsFile":
                files[value["path"]] = self.hub.objects[value["oid"]]
            else:
                del files[value["path"]]
        commit = repository.commit(files, branch, header["value"]["summary"])
        self._json({"commitUrl": f"{self._base()}/datasets/{repo_id}/commit/{commit}", "commitOid": commit})

    def _file(self, repo_id: str, revision: str, name: str) -> None:
        repository = self.hub.repositories.get(repo_id)
        files = repository.files(revision) if repository else None
        if repository is None or files is None or name not in files:
            code = "EntryNotFound" if files is not None else "RevisionNotFound" if repository else "RepoNotFound"
            self._answer(404, b"", {"X-Error-Code": code})
            return
        content = self.hub.altered.get(name, files[name])
        etag = sha256(files[name]) if is_large(name) else git_hash(files[name])
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": repository.branches.get(revision, revision)}
        if is_large(name):
            headers |= {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(files[name]))}
        if self.command == "GET":
            self.hub.downloads.append(name)
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._answer(206 if start else 200, content[start:], headers, name)

    def _json(self, content: Any, status: int = 200) -> None:
        self._answer(status, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None, name: str = "") -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        try:
            self.end_headers()
            breaks = bool(name) and name == self.hub.broken
            if self.command != "HEAD":
                self.hub.outgoing.write(self, name, body[: len(body) // 2] if breaks else body)
            self.close_connection |= breaks
        except (ConnectionError, BrokenPipeError):
            self.close_connection = True

    def _base(self) -> str:
        return f"http://{self.headers['Host']}"

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body
