"""Ask a server for the JSON of its pages. Memory and time are limited whatever answers; Unreachable says what is
wrong."""

import json
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

from pydantic import ValidationError
from typing_extensions import TypedDict

from lexiscope.app.library.library import ModelCard
from lexiscope.app.notebook.errors import Unreachable
from lexiscope.precompute.errors import BadRequest, IndexFault, LexiscopeError, NotBuilt, NotFound
from lexiscope.precompute.live.wire.errors import LiveDown, LiveFailed, TooLarge
from lexiscope.precompute.live.wire.fields import adapter
from lexiscope.precompute.live.wire.protocol import MOST_ANSWER_BYTES, MOST_RETRY_SECONDS
from lexiscope.precompute.plain_text import file_size, plain

if TYPE_CHECKING:
    import httpx2

V = TypeVar("V")

SECONDS = 60.0  # longest time for an answer
LOADING_SECONDS = 180.0  # longest time for a worker to start and load its model
ASK_AGAIN_SECONDS = 2.0  # pause before the server is asked again whether the worker is ready
REDIRECTS = 5  # most redirects that are followed
LONGEST_DETAIL = 2000  # most characters of a server's message that are shown


def is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def split_address(address: str) -> tuple[str, str]:
    """Split an address into that of the site and the model's name after it, or ""; raise BadRequest for any other
    address."""
    try:
        parts = urlsplit(address)
    except ValueError:  # the address has brackets that hold no IPv6 address
        parts = urlsplit("")
    name = parts.path.strip("/")
    if not parts.hostname or "/" in name or parts.query or parts.fragment:
        raise BadRequest(
            f"{address!r}: give the address of a server and the model's name, such as http://127.0.0.1:8000/gpt2"
        )
    return f"{parts.scheme}://{parts.netloc}", name


class _Models(TypedDict):
    """The part of the home page's JSON that is read."""

    models: tuple[ModelCard, ...]


class Site:
    """A server whose pages are read as JSON. It has one HTTP client, which any number of threads may use."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()

    def get(self, view: type[V], path: str, query: dict[str, Any], live: bool = False) -> V:
        """Return the data of a page. With `live=True` a worker computes it, which may have to load its model first."""
        given = {name: value for name, value in query.items() if value is not None}
        address = f"{self.origin}{path}.json" + (f"?{urlencode(given)}" if given else "")
        deadline = time.monotonic() + LOADING_SECONDS
        while True:
            status, content, retry_after = self._ask(address)
            if status == 200:
                return _read_view(view, content, address.partition("?")[0])
            if not (live and status == 503 and retry_after and time.monotonic() < deadline):
                raise _error(status, content, address.partition("?")[0], retry_after, live)
            time.sleep(min(ASK_AGAIN_SECONDS, retry_after))

    def models(self) -> tuple[ModelCard, ...]:
        return self.get(_Models, "/index", {})["models"]

    def _ask(self, address: str) -> tuple[int, bytes, int]:
        import httpx2

        headers = {"accept": "application/json", "accept-encoding": "identity"}
        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(timeout=SECONDS, headers=headers)
                weakref.finalize(self, self._client.close)
        try:
            # redirects are followed here, because the client would read the whole body of each
            for _ in range(REDIRECTS + 1):
                with self._client.stream("GET", address) as answer:
                    if answer.next_request is None:
                        retry_after = answer.headers.get("retry-after", "")
                        return answer.status_code, self._content(answer), _seconds(retry_after)
                    address = str(answer.next_request.url)
        except httpx2.TimeoutException:
            raise Unreachable(f"{self.origin} does not answer within {SECONDS:.0f} s. Is the server busy?") from None
        # UnicodeError comes from a redirect to http://a..b
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise Unreachable(
                f"no server answers at {self.origin} ({plain(str(error))[:200]}): `lexiscope serve` starts one, or "
                "check the address"
            ) from None
        raise Unreachable(f"{self.origin} redirects more than {REDIRECTS} times: check the address")

    def _content(self, answer: "httpx2.Response") -> bytes:
        """Return the body; raise Unreachable if it is longer than any page, or compressed, since it may unpack to any
        length."""
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise Unreachable(f"{self.origin} packs its answer, which was asked for as it is: check the address")
        deadline = time.monotonic() + SECONDS
        content = bytearray()
        for chunk in answer.iter_raw():
            content += chunk
            if len(content) > MOST_ANSWER_BYTES:
                raise Unreachable(
                    f"{self.origin} answers with more than {file_size(MOST_ANSWER_BYTES)}: check the address"
                )
            if time.monotonic() > deadline:
                raise Unreachable(f"{self.origin} does not end its answer within {SECONDS:.0f} s. Is the server busy?")
        return bytes(content)


def _read_view(view: type[V], content: bytes, address: str) -> V:
    """Make the data of a page from its JSON. Fields that JSON leaves out get their defaults. Raise Unreachable if the
    JSON is not that of such a page: another program or another version answers."""
    try:
        read: V = adapter(view).validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = plain(".".join(map(str, first["loc"]))[:200])
        raise Unreachable(
            f"{address} answers with something else than this version of Lexiscope expects ({where or 'it'}: "
            f"{plain(first['msg'])}). Is the server of the same version?"
        ) from None
    return read


def _seconds(retry_after: str) -> int:
    """Return a Retry-After header in seconds: 0 if there is none, and at most MOST_RETRY_SECONDS."""
    digits = retry_after if retry_after.isascii() and retry_after.isdecimal() else "0"
    return min(int(digits[:9]), MOST_RETRY_SECONDS)


def _error(status: int, content: bytes, address: str, retry_after: int, live: bool) -> LexiscopeError:
    """Return the error that an index in this process would raise, made from the server's error answer."""
    try:
        detail = plain(str(json.loads(content)["error"]["detail"])[:LONGEST_DETAIL])
    except (ValueError, KeyError, TypeError, RecursionError):  # RecursionError comes from deeply nested brackets
        return Unreachable(f"{address} answers with status {status}, and not as Lexiscope does: check the address")
    match status:
        case 404:
            return NotBuilt(detail) if retry_after else NotFound(detail)
        case 413:
            return TooLarge(detail)
        case 503:
            return LiveDown(detail, retry_after or 5) if live else IndexFault(detail)
        case _ if 400 <= status < 500:
            return BadRequest(detail)
        case _:
            return LiveFailed(detail)
