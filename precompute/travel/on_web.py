"""An index at an address of a static web server: nothing is asked of the server but the files by their names. One that
knows ranges lets a file be gone on with."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from precompute.errors import AlteredFile, ForeignIndex, NotPublished, SourceUnreachable, first_line
from precompute.index.manifest import MANIFEST
from precompute.index.manifest_entries import FileEntry
from precompute.travel.partial_file import PartialFile
from precompute.travel.published import Step

TIMEOUT = httpx2.Timeout(30, connect=10)  # seconds, of which the first is for silence
REDIRECTS = 5
TRIES = 4  # in a row that bring nothing new, or next to nothing
NEW_BYTES = 1 << 16  # that a try has to bring beyond all before it, so as not to count as one of these
WINDOW_SECONDS, LEAST_BYTES = 60.0, 60_000  # that have to arrive within the first: who drips is not waited for
PAUSE = 1.0  # seconds before the second try; each further one waits twice as long
_BROKEN = (httpx2.TransportError, httpx2.DecodingError)
_GONE = (404, 410)


class IndexOnWeb:
    commit = ""

    def __init__(self, address: str) -> None:
        try:
            parts = urlsplit(address)
        except ValueError as error:
            raise NotPublished(f"{address[:80]} is no address of a web server ({error})") from None
        if not parts.hostname or parts.username or parts.query or parts.fragment:
            raise NotPublished(
                f"{parts.scheme}://{parts.hostname or ''}{parts.path} is not the address of a folder on a server: give "
                "one without a name, a password, ? and #, such as https://example.org/indexes/gpt2"
            )
        self.where = address.removesuffix(MANIFEST).rstrip("/")
        self._encrypted = parts.scheme == "https"
        self._client = httpx2.Client(
            follow_redirects=True,
            max_redirects=REDIRECTS,
            timeout=TIMEOUT,
            headers={"Accept-Encoding": "identity", "User-Agent": "lexiscope"},  # ranges count bytes of the file itself
            event_hooks={"request": [self._stay_encrypted]},
        )

    def read(self, name: str, most_bytes: int) -> bytes | None:
        content = bytearray()
        with self._get(name) as response:
            if response.status_code in _GONE:
                return None
            self._check(response, name)
            for piece in self._flowing(response.iter_bytes()):
                content += piece
                if len(content) > most_bytes:
                    raise ForeignIndex(
                        f"{self.where}/{name} is longer than {most_bytes} bytes: it is no file of an index"
                    )
        return bytes(content)

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        partial = PartialFile(entry, folder)
        step(partial.n_bytes / entry.bytes)
        failures, most_bytes = 0, partial.n_bytes
        while not partial.is_whole:
            try:
                self._go_on(entry, partial, step)
                problem = f"it ends after {partial.n_bytes} of {entry.bytes} bytes"
            except SourceUnreachable as error:
                problem = str(error)
            if partial.is_whole:
                break
            if partial.n_bytes >= most_bytes + NEW_BYTES:
                failures, most_bytes = 0, partial.n_bytes
                continue
            failures += 1
            if failures >= TRIES:
                raise SourceUnreachable(f"{self.where}/{entry.file} does not arrive ({problem}): run this again later")
            time.sleep(PAUSE * 2 ** (failures - 1))
        return partial.path

    def close(self) -> None:
        self._client.close()

    def _go_on(self, entry: FileEntry, partial: PartialFile, step: Step) -> None:
        start = partial.n_bytes
        with self._get(entry.file, {"Range": f"bytes={start}-"} if start else {}) as response:
            if start and response.status_code == 416:  # nothing there at this place: what we have is of another file
                partial.remove()
                return
            if response.status_code in _GONE:
                raise AlteredFile(
                    f"{self.where} lists {entry.file} and does not have it: has it been replaced? Try again"
                )
            self._check(response, entry.file)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise ForeignIndex(f"{self.where} gives out {entry.file} compressed: its server must leave it as it is")
            if not (response.status_code == 206 and _first_byte(response) == start):
                start = 0
            partial.write(start, self._flowing(response.iter_raw()), step)

    def _flowing(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces, as long as enough of them arrive."""
        start, n_bytes = time.monotonic(), 0
        for piece in pieces:
            n_bytes += len(piece)
            if time.monotonic() - start > WINDOW_SECONDS:
                if n_bytes < LEAST_BYTES:
                    raise SourceUnreachable(
                        f"{self.where} sends less than {LEAST_BYTES} bytes in {WINDOW_SECONDS:g} seconds: try later"
                    )
                start, n_bytes = time.monotonic(), 0
            yield piece

    @contextmanager
    def _get(self, name: str, headers: dict[str, str] | None = None) -> Iterator[httpx2.Response]:
        try:
            with self._client.stream("GET", f"{self.where}/{name}", headers=headers) as response:
                yield response
        except httpx2.TooManyRedirects:
            raise NotPublished(f"{self.where}/{name} leads on more than {REDIRECTS} times: check the address") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise NotPublished(f"{self.where} is no address of a web server ({error})") from error
        except _BROKEN as error:
            raise SourceUnreachable(
                f"{self.where} does not answer ({first_line(error)}): check the network and the address"
            ) from error

    def _check(self, response: httpx2.Response, name: str) -> None:
        """206 only answers a question for a range."""
        status = response.status_code
        if status in (401, 403):
            raise NotPublished(f"{self.where}/{name} is not open to everybody (status {status})")
        if status >= 500 or status in (408, 429):
            raise SourceUnreachable(f"{self.where} answers with status {status}: try again later")
        if status not in (200, 206):
            raise NotPublished(f"{self.where}/{name} answers with status {status}: check the address")

    def _stay_encrypted(self, request: httpx2.Request) -> None:
        """A hook, called before every request, those that follow a redirect too."""
        if self._encrypted and request.url.scheme != "https":
            raise NotPublished(f"{self.where} leads on to {request.url.host} without encryption, which is not followed")


def _first_byte(response: httpx2.Response) -> int | None:
    """bytes 100-199/200 -> 100"""
    unit, _, span = response.headers.get("Content-Range", "").partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and re.fullmatch("[0-9]{1,15}", first) else None
