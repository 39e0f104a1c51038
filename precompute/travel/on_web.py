"""Read an index at an address of a static web server, by downloading whole files by their names and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from lexiscope.precompute.errors import AlteredFile, ForeignIndex, NotPublished, SourceUnreachable, first_line
from lexiscope.precompute.index.manifest import MANIFEST, FileEntry
from lexiscope.precompute.travel.published import Step, write_file

TIMEOUT = httpx2.Timeout(30, connect=10)  # seconds; the first number limits silence
REDIRECTS = 5
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

    def read(self, name: str, most_bytes: int) -> bytes | None:
        content = bytearray()
        with self._get(name) as response:
            if response.status_code in _GONE:
                return None
            self._check(response, name)
            for piece in response.iter_bytes():
                content += piece
                if len(content) > most_bytes:
                    raise ForeignIndex(
                        f"{self.where}/{name} is longer than {most_bytes} bytes: it is no file of an index"
                    )
        return bytes(content)

    def fetch(self, entry: FileEntry, folder: Path, step: Step) -> Path:
        with self._get(entry.file) as response:
            if response.status_code in _GONE:
                raise AlteredFile(
                    f"{self.where} lists {entry.file} and does not have it: has it been replaced? Try again"
                )
            self._check(response, entry.file)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise ForeignIndex(f"{self.where} gives out {entry.file} compressed: its server must leave it as it is")
            return write_file(entry, folder, response.iter_raw(), step)

    @contextmanager
    def _get(self, name: str) -> Iterator[httpx2.Response]:
        client = httpx2.Client(
            follow_redirects=True,
            max_redirects=REDIRECTS,
            timeout=TIMEOUT,
            headers={"Accept-Encoding": "identity", "User-Agent": "lexiscope"},
            event_hooks={"request": [self._stay_encrypted]},
        )
        try:
            with client, client.stream("GET", f"{self.where}/{name}") as response:
                yield response
        except httpx2.TooManyRedirects:
            raise NotPublished(f"{self.where}/{name} leads on more than {REDIRECTS} times: check the address") from None
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise NotPublished(f"{self.where} is no address of a web server ({error})") from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise SourceUnreachable(
                f"{self.where} does not answer ({first_line(error)}): check the network and the address"
            ) from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise SourceUnreachable(
                f"{self.where}/{name} does not arrive ({first_line(error)}): run this again later"
            ) from error

    def _check(self, response: httpx2.Response, name: str) -> None:
        status = response.status_code
        if status in (401, 403):
            raise NotPublished(f"{self.where}/{name} is not open to everybody (status {status})")
        if status >= 500 or status in (408, 429):
            raise SourceUnreachable(f"{self.where} answers with status {status}: try again later")
        if status != 200:
            raise NotPublished(f"{self.where}/{name} answers with status {status}: check the address")

    def _stay_encrypted(self, request: httpx2.Request) -> None:
        """Refuse to go from https to http. This hook is called before every request, including redirected ones."""
        if self._encrypted and request.url.scheme != "https":
            raise NotPublished(f"{self.where} leads on to {request.url.host} without encryption, which is not followed")
