"""A model's lists from a server: the JSON of its pages (DESIGN section 5), read as the views it was made from."""

import json
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from typing_extensions import TypedDict

from app.library.card import ModelCard
from app.notebook.errors import NeedsIndex, Unreachable, no_such_text
from app.notebook.read_view import read_view
from app.notebook.source import AskedLens, Preset, RunAsk
from app.packed_text import pack
from app.views.direction import DirectionView
from app.views.head import HeadView
from app.views.neuron import NeuronView
from app.views.pairs import PairsView
from app.views.prompt import PromptView
from app.views.search import LONGEST, SearchView
from app.views.seeds import SeedsView
from app.views.subhead import SubheadView
from app.views.token import TokenView
from app.views.tokens import Token
from app.workers.errors import LiveDown, LiveFailed, TooLarge
from precompute.errors import BadRequest, IndexFault, LexiscopeError, NotBuilt, NotFound
from precompute.index.index import Index
from precompute.index.tokens import text_surface
from precompute.live.wire import Lens, Matrix

if TYPE_CHECKING:
    import httpx2

V = TypeVar("V")

_QUOTED = re.compile(r'"[^"]+"')

LONG_TEXT = 1000  # characters of a prompt that go into an address as they are
SECONDS = 60.0  # that an answer may take
LOADING_SECONDS = 180.0  # that a worker may take to start and load its model
PAUSE_SECONDS = 2.0  # between two looks whether it has


def is_address(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def split_address(address: str) -> tuple[str, str]:
    """The site, and the model that is named after it or ""; BadRequest for what is neither."""
    parts = urlsplit(address)
    name = parts.path.strip("/")
    if not parts.hostname or "/" in name or parts.query or parts.fragment:
        raise BadRequest(
            f"{address!r}: give the address of a server and the model's name, such as http://127.0.0.1:8000/gpt2"
        )
    return f"{parts.scheme}://{parts.netloc}", name


class _Models(TypedDict):
    """What is read of the home page."""

    models: tuple[ModelCard, ...]


class Site:
    """Asks a server for JSON. One connection is kept, for any number of threads."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()

    def get(self, view: type[V], path: str, query: dict[str, Any], live: bool = False) -> V:
        """`live`: a worker computes it, which may have to load its model first."""
        given = {name: value for name, value in query.items() if value is not None}
        address = f"{self.origin}{path}.json" + (f"?{urlencode(given)}" if given else "")
        deadline = time.monotonic() + LOADING_SECONDS
        while True:
            status, content, retry_after = self._ask(address)
            if status == 200:
                return read_view(view, content, address.partition("?")[0])
            if not (live and status == 503 and retry_after and time.monotonic() < deadline):
                raise _error(status, content, address.partition("?")[0], retry_after, live)
            time.sleep(min(PAUSE_SECONDS, retry_after))

    def models(self) -> tuple[ModelCard, ...]:
        return self.get(_Models, "/index", {})["models"]

    def _ask(self, address: str) -> tuple[int, bytes, int]:
        import httpx2

        with self._lock:
            if self._client is None:
                self._client = httpx2.Client(timeout=SECONDS, headers={"accept": "application/json"})
                weakref.finalize(self, self._client.close)
        try:
            answer = self._client.get(address, follow_redirects=True)
        except httpx2.TimeoutException:
            raise Unreachable(f"{self.origin} does not answer within {SECONDS:.0f} s. Is the server busy?") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(
                f"no server answers at {self.origin} ({error}): `lexiscope serve` starts one, or check the address"
            ) from None
        retry_after = answer.headers.get("retry-after", "")
        return answer.status_code, answer.content, int(retry_after) if retry_after.isdecimal() else 0


class ServerSource:
    def __init__(self, site: Site, name: str) -> None:
        self.name = name
        self.where = f"{site.origin}/{quote(name)}"
        self._site = site

    @property
    def layers(self) -> tuple[int, ...]:
        return next((card.layers for card in self._site.models() if card.model == self.name), ())

    def neuron(self, layer: int, neuron: int, lens: AskedLens, k: int | None, hide_hubs: bool) -> NeuronView:
        return self._get(NeuronView, f"ff/{layer}/{neuron}", hide_hubs, lens=lens, k=k)

    def head(self, layer: int, head: int, lens: AskedLens, preset: Preset, hide_hubs: bool) -> HeadView:
        return self._get(HeadView, f"head/{layer}/{head}", hide_hubs, lens=lens, preset=preset)

    def pairs(
        self, matrix: Matrix, layer: int, head: int, lens: AskedLens, preset: Preset, k: int | None, hide_hubs: bool
    ) -> PairsView:
        return self._get(PairsView, f"head/{layer}/{head}/{matrix}", hide_hubs, lens=lens, preset=preset, k=k)

    def subhead(
        self, layer: int, head: int, subhead: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> SubheadView:
        return self._get(SubheadView, f"head/{layer}/{head}/sub/{subhead}", hide_hubs, lens=lens, k=k)

    def direction(
        self, layer: int, head: int, direction: int, lens: AskedLens, k: int | None, hide_hubs: bool
    ) -> DirectionView:
        return self._get(DirectionView, f"head/{layer}/{head}/svd/{direction}", hide_hubs, lens=lens, k=k)

    def find_token(self, which: str | int, exact: bool) -> Token:
        """The search page tells the tokens that differ in case and space only; of these it is chosen as on the site:
        with a space before it first, then without, then in another case."""
        if isinstance(which, int):
            return self.places(which, None, "all", None, 1, False).token
        groups = self.search(_as_one_word(which), None, None, 1, False).words
        tokens = groups[0].tokens if groups else []
        for wanted in (which,) if exact else (f" {which.strip()}", which.strip()):
            for token in tokens:
                if token["token"] == wanted:
                    return token
        if exact:
            raise no_such_text(which, self.name)
        if not tokens or text_surface(tokens[0]["token"], True) != text_surface(which, True):
            raise NotFound(f"token {which[:100]!r} is none of {self.name}: give a word that is, or an id as #2767")
        return tokens[0]

    def places(
        self, token: int, lens: AskedLens, preset: Preset, kind: str | None, page: int, hide_hubs: bool
    ) -> TokenView:
        return self._get(TokenView, f"token/{token}", hide_hubs, lens=lens, preset=preset, kind=kind, page=page)

    def search(self, q: str, lens: AskedLens, kind: str | None, page: int, hide_hubs: bool) -> SearchView:
        return self._get(SearchView, "search", hide_hubs, q=q, lens=lens, kind=kind, page=page)

    def seeds(
        self, words: str, kinds: Sequence[str], lens: Lens, k: int, exact: bool | None
    ) -> tuple[SeedsView, bool, tuple[int, ...]]:
        if exact is False:
            raise NeedsIndex(
                f"seeds of {self.name} from the stored lists: a server computes them from the weights, so leave out "
                "exact=False, or open the index itself"
            )
        view = self._get(SeedsView, "seeds", False, live=True, words=words, kind=",".join(kinds), lens=lens, k=k)
        return view, True, ()

    def run(self, ask: RunAsk) -> PromptView:
        long = len(quote(ask.text)) > LONG_TEXT
        return self._get(
            PromptView, "prompt", False, live=True,
            text=None if long else ask.text, z=pack(ask.text) if long else None,
            panel=",".join(ask.panels), position=ask.position, layer=ask.layer, head=ask.head, neuron=ask.neuron,
            lens=ask.lens, convention=ask.convention, rows=ask.rows, k=ask.k, off=_joined(ask.off),
            set=_joined(ask.set), token=ask.token, against=ask.against,
        )  # fmt: skip

    def read(self, make: Callable[[Index], V]) -> V:  # noqa: ARG002
        raise NeedsIndex(
            f"lists of {self.name} over layers take the index itself, and this model is read from "
            f"{self._site.origin}. `lexiscope pull` or `lexiscope precompute` brings it here; single neurons, heads, "
            "tokens, searches, seeds and runs work without"
        )

    def _get(self, view: type[V], path: str, hide_hubs: bool, live: bool = False, **query: Any) -> V:
        hubs = {"hubs": "hide" if hide_hubs else None}
        return self._site.get(view, f"/{quote(self.name)}/{path}", query | hubs, live)


def _as_one_word(text: str) -> str:
    """A search whose first word is this text, whatever signs it has; NotFound where no search says it."""
    q = text.strip() if '"' in text else f'"{text}"'  # a word with quotes in it cannot stand in quotes
    is_parted = '"' in text and (any(c.isspace() or c == "," for c in q) or _QUOTED.fullmatch(q))
    if is_parted or "\0" in text or len(q) > LONGEST - 2:
        raise NotFound(f"token {text[:100]!r}: no search of a server says this text. Give the token's id")
    # An arrow would part two words, but not where there is a <.
    return q if "<" in text else f"{q} <" if ">" in text or "→" in text else q


def _joined(values: Iterable[str]) -> str | None:
    return ",".join(values) or None


def _error(status: int, content: bytes, address: str, retry_after: int, live: bool) -> LexiscopeError:
    """What the server says is wrong, as the error that it is here."""
    try:
        detail = str(json.loads(content)["error"]["detail"])
    except (ValueError, KeyError, TypeError):
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
