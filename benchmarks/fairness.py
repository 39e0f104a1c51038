"""One visitor floods live pages of the demo with long prompts: how long another one waits for a seed search meanwhile.
Visitors are told apart by the address they come from, so each of them has one of 127.0.0.x."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path
from statistics import median
from urllib.parse import quote

from benchmarks.figures import Figure
from benchmarks.server import serving
from lexiscope.precompute.index.origin import DEMO_NAME

FLOODER, VISITOR = "127.0.0.2", "127.0.0.3"
PROMPTS = 64  # of the flooder, all at once; each is asked again when it has an answer
PANELS = "evolution,attention,patterns,neurons,coverage"
REFUSED_PAUSE = 1.0  # seconds until a visitor who was refused asks again
FLOOD_SECONDS = 60.0
SEARCH_PAUSE = 0.2  # seconds between two seed searches
WORDS = ("horse", "dog", "lion", "river", "music", "green", "seven", "Paris", "winter", "bread", "engine", "doctor")


def figures(index: Path) -> Iterator[Figure]:
    with serving(index.parent) as (_, port):
        _until_it_answers(port)
        searches = [_search(port, n) for n in range(30)]
        yield Figure("fairness: a seed search alone, median", median(searches), unit="s")
        for words in (30, 250):
            flood = _Flood(port, words)
            with flood:
                searches = _search_again_and_again(port)
            name = f"fairness: the same beside {PROMPTS} prompts of {words} words"
            yield Figure(f"{name}, median", median(searches), 1, unit="s")
            yield Figure(f"{name}, worst of {len(searches)}", max(searches), 3, unit="s")
            for status, count in sorted(flood.answers.items()):
                yield Figure(f"fairness: prompts of {words} words answered with {status}", count, unit="")


def _search_again_and_again(port: int) -> list[float]:
    searches: list[float] = []
    end = time.monotonic() + FLOOD_SECONDS
    while time.monotonic() < end:
        searches.append(_search(port, len(searches)))
        time.sleep(SEARCH_PAUSE)
    return searches


def _search(port: int, number: int) -> float:
    """Return the seconds until there is an answer, to other words each time. A visitor who is refused asks again."""
    other, first = divmod(number, len(WORDS))
    words = f"{WORDS[first]},{WORDS[(first + other + 1) % len(WORDS)]}"
    started = time.perf_counter()
    while _get(port, f"/{DEMO_NAME}/seeds?words={words}", VISITOR) != 200:
        time.sleep(REFUSED_PAUSE)
    return time.perf_counter() - started


def _until_it_answers(port: int) -> None:
    """Wait until the worker has loaded the model, which it does when it is first asked."""
    for _ in range(120):
        if _get(port, f"/{DEMO_NAME}/seeds?words=dog", VISITOR) == 200:
            return
        time.sleep(0.5)
    raise TimeoutError("the worker of the demo does not answer")


class _Flood:
    """Asks for pages of different prompts with all panels, from one address, as long as the block lasts."""

    def __init__(self, port: int, words: int) -> None:
        self.answers: Counter[int] = Counter()  # by status
        self._port, self._words = port, words
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(PROMPTS)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()
        time.sleep(2)

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, number: int) -> None:
        text = " ".join(WORDS[(number + n) % len(WORDS)] for n in range(self._words))
        for turn in takewhile(lambda _: not self._end.is_set(), count()):  # never the same text, whose answer is kept
            path = f"/{DEMO_NAME}/prompt?panel={PANELS}&text={quote(f'{number} {turn} {text}')}"
            status = _get(self._port, path, FLOODER)
            self.answers[status] += 1
            if status != 200:
                self._end.wait(REFUSED_PAUSE)


def _get(port: int, path: str, source: str) -> int:
    """Return the status of the answer after reading all of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120, source_address=(source, 0))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()
