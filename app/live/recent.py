"""Keep recent answers of runs, as bytes of JSON, so that another page, filter or format of a run is made
without the model. Bytes take less memory than what is read from them, and no page can change them."""

from hashlib import blake2b

from lexiscope.precompute.live.wire.asks import PromptAsk


def key_of(model: str, build: str, ask: PromptAsk) -> bytes:
    """Return a key that is equal for equal asks about the same build of a model's index, which names its weights and
    its tokenizer."""
    return blake2b("\0".join((model, build, ask.model_dump_json())).encode()).digest()


class RecentAnswers:
    """Answers by key, up to so many bytes of them; the one unused longest makes room. The event loop alone uses it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._answers: dict[bytes, bytes] = {}  # the last used one last

    def find(self, key: bytes) -> bytes | None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._answers[key] = answer
        return answer

    def keep(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, unless it alone has too many bytes: it would drive out all others for nothing."""
        if len(answer) > self._most_bytes:
            return
        self._bytes += len(answer) - len(self._answers.pop(key, b""))
        self._answers[key] = answer
        while self._bytes > self._most_bytes:
            self._bytes -= len(self._answers.pop(next(iter(self._answers))))
