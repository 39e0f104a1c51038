"""Visit the explorer over the two small indexes of the fixture `site_data`, and list addresses of its pages."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from starlette.testclient import TestClient

GPT2, LLAMA = "tiny-gpt2", "tiny-llama"  # layer 0 of the first is not built
DIFFERENCE = "tuned-minus-base"  # layer 0, some neurons and head 3 of layer 1 did not change
BEST = "?lens=cosine"  # the lens that reads best in tiny-gpt2: links of pages without a lens of their own have it
K, PAIRS = 30, 60
AWAY = f"{GPT2}=http://127.0.0.1:9,{LLAMA}=http://127.0.0.1:9,{DIFFERENCE}=http://127.0.0.1:9"  # where nobody listens
SCRIPT = 473  # the token <script>
TEXT = "the dog and the lion"
SEEDS = f"/{GPT2}/seeds?words=dog,lion"
RELATION = f"/{GPT2}/relation?pairs=dog%3Edogs,lion%3Ehorse"
TRANSITION = f"/{GPT2}/transition?pairs=dog%3Edogs,lion%3Ehorse"
HEADS = f"/{GPT2}/heads?words=dog,lion%2Bhorse&layers=0-2&k=4"
PROMPT = f"/{GPT2}/prompt?text=the+dog+and+the+lion"
# One address of every kind of stored page; short lists, because axe looks at every element.
PAGES = {
    "home": "/",
    "model": f"/{LLAMA}",
    "model-unfinished": f"/{GPT2}?lens=cosine&preset=words",
    "layer": f"/{LLAMA}/layer/1?sort=coherence&token={SCRIPT}",
    "neuron": f"/{GPT2}/ff/1/3?k=8",
    "neuron-gated": f"/{LLAMA}/ff/1/3?lens=cosine&k=8",
    "head": f"/{LLAMA}/head/1/2",
    "pairs": f"/{LLAMA}/head/1/2/vo?preset=distinct&k=10",
    "pairs-grouped": f"/{LLAMA}/head/1/2/qk?group=from&k=10",
    "subhead": f"/{LLAMA}/head/1/2/sub/0?k=8",
    "direction": f"/{LLAMA}/head/1/2/svd/0?k=8",
    "beside": f"/{LLAMA}/beside?a=L1N3&b=L1H2&k=8",
    "beside-nothing": f"/{LLAMA}/beside",
    "neuron-pinned": f"/{LLAMA}/ff/1/3?k=8&pin=L1N3,L1H2",
    "token": f"/{LLAMA}/token/{SCRIPT}",
    "token-kind": f"/{LLAMA}/token/{SCRIPT}?kind=ff_key",
    "comparison": f"/{GPT2}/vs/{LLAMA}?kind=ff_value",
    "lab": f"/{LLAMA}/lab",
    "lab-nothing": f"/{GPT2}/lab",
    "lab-difference": f"/{DIFFERENCE}/lab",
    "vectors": f"/{LLAMA}/vectors?lens=cosine&kind=ff_key&min_similarity=0.01",
    "sample": f"/{LLAMA}/sample?n=5",
    "sample-judged": f"/{DIFFERENCE}/sample?n=5&good=2,4&kind=w_o",
    "search": f"/{LLAMA}/search?q=e",
    "search-nothing": f"/{LLAMA}/search?q=d%C3%B6g%20%3Cscript%3E",
    "difference": f"/{DIFFERENCE}?map=change",
    "difference-layer": f"/{DIFFERENCE}/layer/1?sort=change",
    "difference-layer-unchanged": f"/{DIFFERENCE}/layer/0",
    "difference-neuron": f"/{DIFFERENCE}/ff/1/3?k=8",
    "difference-neuron-unchanged": f"/{DIFFERENCE}/ff/1/0",
    "difference-head": f"/{DIFFERENCE}/head/1/2",
    "difference-head-unchanged": f"/{DIFFERENCE}/head/1/3",
    "difference-pairs": f"/{DIFFERENCE}/head/1/2/vo?k=10",
    "difference-subhead": f"/{DIFFERENCE}/head/1/2/sub/0?k=8",
    "difference-direction": f"/{DIFFERENCE}/head/1/2/svd/1?k=8",
    "difference-direction-unchanged": f"/{DIFFERENCE}/head/1/3/svd/0",
    "classifier": f"/{DIFFERENCE}/classifier?k=8",
    "classifier-vector": f"/{DIFFERENCE}/classifier/classifier/1?k=8",
    "difference-prompt": f"/{DIFFERENCE}/prompt?text=the+dog",
    "labels": f"/{LLAMA}/labels",
    "paper": f"/{GPT2}/paper",
    "paper-as": f"/{LLAMA}/paper?as=gpt2-medium",
    "paper-list": f"/{GPT2}/paper?as=gpt2-medium&list=vo/16/6",
    "difference-paper": f"/{DIFFERENCE}/paper?as=gpt2",
    "search-labels": f"/{LLAMA}/search?q=greyhounds",
    "help": "/-/help",
    "help-page": "/-/help/sharing",
    "help-glossary": "/-/help/glossary",
    "settings": "/-/settings",
    "docs": "/docs",
    "error": f"/{LLAMA}/ff/1/999999",
}


@contextmanager
def visit(data: Path, **settings: Any) -> Iterator["TestClient"]:
    """Visit the explorer over a data folder: the client sees what a browser would, also after an internal error."""
    from starlette.testclient import TestClient

    from lexiscope.app.settings import Settings
    from lexiscope.app.site.server import create_app

    app = create_app(Settings(data=data, **settings))
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as visitor:
        yield visitor


def copied(site_data: Path, folder: Path) -> Path:
    return Path(shutil.copytree(site_data, folder / "data"))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(client: "TestClient", target: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request whose target reaches the app as it is: clients tidy dots away and refuse long addresses."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"testserver"), *((name.lower().encode(), at.encode()) for name, at in headers.items())],
        "server": ("testserver", 80),
        "client": ("127.0.0.1", 1),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))  # type: ignore[arg-type]
    start, *bodies = sent
    fields = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], fields, b"".join(part["body"] for part in bodies))
