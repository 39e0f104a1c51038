"""A model in memory, ready for questions: the one door to everything in this room."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer

from precompute.device import pick_device
from precompute.errors import BadWeights, LexiscopeError
from precompute.index.tokenizer import parse_tokenizer
from precompute.live.cost import ask_cost, row_cost
from precompute.live.faults import Cancelled
from precompute.live.head_readings import HeadReadings
from precompute.live.prompts import Prompts, Step
from precompute.live.readings import Readings
from precompute.live.records import attention_layers
from precompute.live.relation import relation
from precompute.live.seeds import SeedSearch
from precompute.live.through_heads import through_heads
from precompute.live.vocabulary import count_above, sums_of_exponentials, top_tokens
from precompute.live.weights import Weights
from precompute.live.wire import (
    PairsReadingAnswer,
    PairsReadingAsk,
    PromptAnswer,
    PromptAsk,
    ReadingAnswer,
    ReadingAsk,
    RelationAnswer,
    RelationAsk,
    SeedsAnswer,
    SeedsAsk,
    Term,
    ThroughHeadsAnswer,
    ThroughHeadsAsk,
    Wire,
)
from precompute.live.words import Words
from precompute.weights.architectures import describe
from precompute.weights.checkpoint import Checkpoint

SPEED_ROWS, SPEED_TRIES = 32, 5  # that are multiplied with the vocabulary to measure how fast this machine is
SHORTEST_SECONDS = 1e-6  # that such a product is taken to last


class Engine:
    """For two threads at once, of which one only asks for what runs no part of the model (see `runs_model`)."""

    speed: float  # multiplications a second, measured when it was loaded

    def __init__(self, weights: Weights, tokenizer: Tokenizer, tokenizer_file: Path) -> None:
        self.weights = weights
        self.shape, self.device, self.n_positions = weights.shape, weights.device, weights.n_positions
        self.words = Words.of(weights, tokenizer)
        self.longest_token = max(map(len, tokenizer.get_vocab()), default=1)  # characters; of bytes, where it has bytes
        self.seed_search, self._prompts = SeedSearch(weights, self.words), Prompts(weights, self.words)
        self.readings = Readings(weights, self.words)
        self._head_readings = HeadReadings(weights, self.readings, tokenizer_file)

    @classmethod
    def load(cls, checkpoint: Checkpoint, device: str = "auto", threads: int | None = None) -> "Engine":
        """Weights in float32 on the device; `threads` of torch on the CPU, its own choice if None."""
        if threads is not None:
            torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = False
        chosen, model = pick_device(device), describe(checkpoint)
        path = checkpoint.tokenizer_file()
        try:
            tokenizer = parse_tokenizer(path.read_bytes())
        except Exception as error:  # the library raises nothing more special
            raise BadWeights(f"{path} is not a tokenizer ({error}). Get the checkpoint again.") from None
        with torch.inference_mode():
            engine = cls(Weights.load(model, chosen), tokenizer, path)
        engine._warm_up()
        return engine

    @torch.inference_mode()
    def _warm_up(self) -> None:
        """Kernels are compiled when first called: now, rather than while a visitor waits."""
        scores = torch.zeros(1, 2, device=self.device)
        highest = top_tokens(scores, 1).values[0]
        count_above(scores, highest)
        sums_of_exponentials(scores, highest)
        self.seed_search.answers([SeedsAsk(terms=(Term(word="a"),), kinds=("ff_value",), n=1)])
        self.speed = self._measured_speed()

    def _measured_speed(self) -> float:
        """By rows of a product with the vocabulary, and finding their first tokens: most of what is computed here.

        On a CPU by the time that one thread computed, so that it does not depend on what else the machine does.
        """
        on_cpu, threads = self.device.type == "cpu", torch.get_num_threads()
        clock = time.thread_time if on_cpu else time.perf_counter
        rows, seconds = self.weights.W_U[:SPEED_ROWS], []
        try:
            torch.set_num_threads(1 if on_cpu else threads)
            for _ in range(SPEED_TRIES):
                started = clock()
                scores = rows @ self.weights.W_U.T
                sums_of_exponentials(scores, top_tokens(scores, 1).values[:, 0]).cpu()
                seconds.append(clock() - started)
        finally:
            torch.set_num_threads(threads)
        return (threads if on_cpu else 1) * len(rows) * row_cost(self.shape) / max(min(seconds), SHORTEST_SECONDS)

    def cost(self, ask: Wire, tokens: int = 0) -> float:
        """In multiplications; `tokens` are those of a prompt."""
        return ask_cost(self.weights, ask, tokens, has_mlp_vocabulary=self.readings.has_mlp_vocabulary)

    @staticmethod
    def runs_model(ask: Wire) -> bool:
        """Whether modules of the model run for it, so that no other such ask may be computed at the same time."""
        return isinstance(ask, PromptAsk) or getattr(ask, "reading", "") == "mlp"

    def token_count(self, text: str) -> int:
        """How many tokens a prompt has; BadRequest for what is no text."""
        return len(self.words.prompt(text))

    def attention_heads(self, tokens: int) -> int:
        """How many heads' attention the answer to a prompt of so many tokens holds."""
        return len(attention_layers(self.shape, tokens, 0)) * self.shape.n_heads

    @torch.inference_mode()
    def seeds(self, asks: Sequence[SeedsAsk]) -> list[SeedsAnswer | LexiscopeError]:
        """One product for all asks; a wrong one gets its error, the others their answers."""
        return self.seed_search.answers(asks)

    @torch.inference_mode()
    def prompts(
        self,
        asks: Sequence[PromptAsk],
        step: Step = lambda *_: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[PromptAnswer | LexiscopeError]:
        """One pass for prompts of like length. `cancelled` is asked between layers; if true, faults.Cancelled."""
        return self._prompts.answers(asks, step, cancelled)

    @torch.inference_mode()
    def relation(self, ask: RelationAsk, cancelled: Callable[[], bool] = lambda: False) -> RelationAnswer:
        """Every head's rank of the targets; NotFound or BadRequest for what is no word."""
        return relation(self.weights, self.words, ask, _check(cancelled))

    @torch.inference_mode()
    def through_heads(self, ask: ThroughHeadsAsk, cancelled: Callable[[], bool] = lambda: False) -> ThroughHeadsAnswer:
        """What heads look for and write; NotFound or BadRequest for what is no word, layer or head."""
        return through_heads(self.weights, self.words, ask, _check(cancelled))

    @torch.inference_mode()
    def reading(self, ask: ReadingAsk) -> ReadingAnswer:
        """NotFound for a vector that does not exist. The first `mlp` takes some seconds, later ones do not."""
        return self.readings.answer(ask)

    @torch.inference_mode()
    def pairs_reading(
        self, ask: PairsReadingAsk, step: Step = lambda *_: None, cancelled: Callable[[], bool] = lambda: False
    ) -> PairsReadingAnswer:
        """NotFound for a head that does not exist. The search itself, some tenths of a second, does not stop midway."""

        def checked(stage: str, share: float) -> None:
            if cancelled():
                raise Cancelled
            step(stage, share)

        return self._head_readings.answer(ask, checked)


def _check(cancelled: Callable[[], bool]) -> Callable[[], None]:
    def check() -> None:
        if cancelled():
            raise Cancelled

    return check
