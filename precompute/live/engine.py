"""Hold a model in memory and answer asks (requests) about it. Other packages use precompute/live through this
module."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from tokenizers import Tokenizer

from lexiscope.precompute.device import pick_device
from lexiscope.precompute.errors import LexiscopeError, NotFound
from lexiscope.precompute.index.tokens import token_bytes, whole_words
from lexiscope.precompute.live.beforehand import Beforehand
from lexiscope.precompute.live.by_words.relation import Ids, relation
from lexiscope.precompute.live.by_words.seeds import SeedSearch
from lexiscope.precompute.live.by_words.source import Source
from lexiscope.precompute.live.by_words.through_heads import through_heads
from lexiscope.precompute.live.by_words.transition import TransitionSearch
from lexiscope.precompute.live.cost import ask_cost, row_cost, sentences_cost
from lexiscope.precompute.live.panels.records import attention_layers
from lexiscope.precompute.live.parameters import LoadedDifference, LoadedParameters
from lexiscope.precompute.live.prompts import Prompts, Step
from lexiscope.precompute.live.readings import Readings
from lexiscope.precompute.live.states import count_states, read_states, text_states
from lexiscope.precompute.live.texts import tokenizer_of
from lexiscope.precompute.live.vocabulary import count_above, sums_of_exponentials, top_tokens
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import PromptAnswer, SeedsAnswer
from lexiscope.precompute.live.wire.asks import (
    BeforehandAsk,
    PairsReadingAsk,
    PromptAsk,
    ReadingAsk,
    RelationAsk,
    SeedsAsk,
    SeedSource,
    StatesAsk,
    StatesReadingAsk,
    ThroughHeadsAsk,
    TransitionAsk,
)
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.fields import A, Ask
from lexiscope.precompute.live.wire.grammar import Term
from lexiscope.precompute.live.words import Words
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.difference import Difference

SPEED_ROWS, SPEED_TRIES = 32, 5  # vectors that are multiplied, and how often, to measure the machine's speed
SHORTEST_SECONDS = 1e-6  # least time that such a product is assumed to take
NO_RUN = (
    "a difference of two models cannot run: ask one of the two for prompts and other readings. Seeds, relations and "
    "words through heads are there of differences, too"
)


class Engine:
    """A model in memory that answers asks. Two threads may use it at once if one of them only asks for things that run
    no part of the model (see `runs_model`)."""

    speed: float  # multiplications a second, measured when it was loaded

    def __init__(self, parameters: LoadedParameters, tokenizer: Tokenizer, tokenizer_file: Path) -> None:
        self.parameters = parameters
        self.shape, self.device, self.n_positions = parameters.shape, parameters.device, parameters.n_positions
        self.tokenizer_file = tokenizer_file
        self.words = Words.of(parameters, tokenizer)
        self.longest_token = max(map(len, tokenizer.get_vocab()), default=1)  # in characters, or in bytes
        self.seed_search = SeedSearch(parameters, self.words, lambda: self._word_tokens)
        self._seed_searches: dict[str, SeedSearch] = {}  # with words of other sources than the embedding
        self.transition_search = TransitionSearch(self.seed_search)

    @classmethod
    def load(cls, source: Checkpoint | Difference, device: str = "auto", threads: int | None = None) -> "Engine":
        """Load weights in float32 on the device. `threads` is how many threads torch uses on the CPU; None leaves the
        choice to torch."""
        if threads is not None:
            torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = False
        chosen, model = pick_device(device), source if isinstance(source, Difference) else describe(source)
        tokenizer = tokenizer_of(model)
        with torch.inference_mode():
            parameters = (
                LoadedDifference(model, chosen) if isinstance(model, Difference) else Weights.load(model, chosen)
            )
            engine = cls(parameters, tokenizer, model.tokenizer_file())
        engine._warm_up()
        return engine

    @property
    def weights(self) -> Weights:
        """Return the weights of a model that can run; raise NotFound if this is a difference of two models."""
        if not isinstance(self.parameters, Weights):
            raise NotFound(NO_RUN)
        return self.parameters

    @cached_property
    def _prompts(self) -> Prompts:
        return Prompts(self.weights, self.words, self.tokenizer_file)

    @cached_property
    def _beforehand(self) -> Beforehand:
        return Beforehand(self.weights, self.words)

    @cached_property
    def readings(self) -> Readings:
        return Readings(self.weights, self.words, self.tokenizer_file)

    @torch.inference_mode()
    def _warm_up(self) -> None:
        """Compile the kernels now, because they would otherwise be compiled at their first call, while a visitor
        waits."""
        scores = torch.zeros(1, 2, device=self.device)
        highest = top_tokens(scores, 1).values[0]
        count_above(scores, highest)
        sums_of_exponentials(scores, highest)
        self.seed_search.answers([SeedsAsk(words=(Term(word="a"),), k=1)])
        self.speed = self._measured_speed()

    def _measured_speed(self) -> float:
        """Return how many multiplications a second this machine makes in the most frequent work: to multiply rows with
        the vocabulary and find their first tokens.

        On a CPU, count the time that one thread computed, which does not depend on what else the machine does.
        """
        on_cpu, threads = self.device.type == "cpu", torch.get_num_threads()
        clock = time.thread_time if on_cpu else time.perf_counter
        rows, seconds = self.parameters.W_U[:SPEED_ROWS], []
        try:
            torch.set_num_threads(1 if on_cpu else threads)
            for _ in range(SPEED_TRIES):
                started = clock()
                scores = rows @ self.parameters.W_U.T
                sums_of_exponentials(scores, top_tokens(scores, 1).values[:, 0]).cpu()
                seconds.append(clock() - started)
        finally:
            torch.set_num_threads(threads)
        return (threads if on_cpu else 1) * len(rows) * row_cost(self.shape) / max(min(seconds), SHORTEST_SECONDS)

    def cost(self, ask: Ask[Any], tokens: int = 0) -> float:
        """Return the cost of an ask in multiplications; `tokens` is the length of its prompt."""
        made = self.readings.made if isinstance(self.parameters, Weights) else ()
        cost = ask_cost(self.parameters, ask, tokens, made)
        if isinstance(ask, PromptAsk) and ask.mean and ask.means == "texts" and not self._prompts.means.positions:
            return cost + sentences_cost(self.shape)
        if isinstance(ask, TransitionAsk):
            return cost + self.seed_search.cost_of_spreads(self.transition_search.kinds, ask.lens)
        if not isinstance(ask, SeedsAsk):
            return cost
        return cost + self._seed_searches.get(ask.source, self.seed_search).cost_of_fit(ask)

    def check(self, ask: Ask[Any]) -> None:
        """Raise NotFound for an ask that needs norms or a run, if this is a difference of two models, which has
        neither."""
        runs = isinstance(ask, PromptAsk | ReadingAsk | PairsReadingAsk | StatesAsk | StatesReadingAsk | BeforehandAsk)
        if (runs or getattr(ask, "source", "raw") != "raw") and not isinstance(self.parameters, Weights):
            raise NotFound(NO_RUN)

    @staticmethod
    def runs_model(ask: Ask[Any]) -> bool:
        """Return True if this ask runs modules of the model, so that no other such ask may be computed at the same
        time."""
        makes = getattr(ask, "reading", "") in ("first", "mlp") or getattr(ask, "source", "") == "first"
        return makes or isinstance(ask, PromptAsk | StatesAsk | StatesReadingAsk | BeforehandAsk)

    def token_count(self, text: str, bos: int = 0) -> int:
        """Return how many tokens a prompt has; raise BadRequest if the prompt is not valid text."""
        return len(self.words.prompt(text, bos))

    def state_count(self, ask: StatesReadingAsk) -> int:
        """Return how many states an ask gives; raise BadRequest if they cannot be states of this model."""
        return count_states(self.shape, ask)

    def attention_heads(self, tokens: int) -> int:
        """Return the number of heads whose attention weights are in the answer to a prompt of this many tokens."""
        return len(attention_layers(self.shape, tokens, 0)) * self.shape.n_heads

    @torch.inference_mode()
    def seeds(self, asks: Sequence[SeedsAsk]) -> list[SeedsAnswer | LexiscopeError]:
        """Answer all asks by one product. A wrong ask gets an error as its answer; the others are answered all the
        same."""
        answers: dict[int, SeedsAnswer | LexiscopeError] = {}
        for source in dict.fromkeys(ask.source for ask in asks):
            some = [at for at, ask in enumerate(asks) if ask.source == source]
            found = self._seed_search(source).answers([asks[at] for at in some])
            answers |= zip(some, found, strict=True)
        return [answers[at] for at in range(len(asks))]

    @torch.inference_mode()
    def prompts(
        self, asks: Sequence[PromptAsk], step: Step = lambda *_: None, cancelled: Callable[[], bool] = lambda: False
    ) -> list[PromptAnswer | LexiscopeError]:
        """Run prompts of similar length in one pass. `cancelled` is called between layers; if it returns True,
        Cancelled is raised."""
        return self._prompts.answers(asks, step, cancelled)

    @torch.inference_mode()
    def answer(self, ask: Ask[A], step: Step = lambda *_: None, cancelled: Callable[[], bool] = lambda: False) -> A:
        """Answer an ask that is computed by itself; raise NotFound or BadRequest for what this model does not have.

        `cancelled` is called between products; if it returns True, Cancelled is raised. A search for pairs, which takes
        some tenths of a second, does not stop midway. The first reading `first` or `mlp` takes some seconds, later ones
        do not.
        """

        def check() -> None:
            if cancelled():
                raise Cancelled

        def checked(stage: str, share: float) -> None:
            check()
            step(stage, share)

        answer: Any
        match ask:
            case RelationAsk():
                answer = relation(self.parameters, self.words, ask, self._source(ask, check), self._word_tokens, check)
            case TransitionAsk():
                answer = self.transition_search.answer(ask, check)
            case ThroughHeadsAsk():
                answer = through_heads(self.parameters, self.words, ask, self._source(ask, check), check)
            case ReadingAsk():
                answer = self.readings.answer(ask, checked)
            case PairsReadingAsk():
                answer = self.readings.pairs(ask, checked)
            case StatesAsk():
                answer = text_states(self.weights, self.words, ask, check)
            case BeforehandAsk():
                answer = self._beforehand.answer(ask, check)
            case StatesReadingAsk():
                answer = read_states(self.weights, ask)
            case _:
                raise TypeError(f"{type(ask).__name__} is answered together with others")
        return cast(A, answer)

    def _seed_search(self, source: SeedSource) -> SeedSearch:
        """Return the search with words of this source. One of another than the embedding is made when first asked for,
        and kept."""
        if source == "raw":
            return self.seed_search
        if source not in self._seed_searches:
            words = self.readings.words_of(source)
            self._seed_searches[source] = SeedSearch(self.parameters, words, lambda: self._word_tokens, self.words)
        return self._seed_searches[source]

    def _source(self, ask: RelationAsk | ThroughHeadsAsk, check: Callable[[], None]) -> Source:
        if ask.source == "first":
            return Source(self.readings.vocabularies["first"].get(lambda _: check()), ask.lens)
        norm = partial(self.weights.norm_numbers, "attention") if ask.source == "norm" else None
        return Source(self.words.reads, ask.lens, norm)

    @cached_property
    def _word_tokens(self) -> Ids:
        """Return the tokens that are words, or all tokens of a vocabulary without words."""
        words = whole_words(token_bytes(self.tokenizer_file, self.shape.d_vocab))
        return np.flatnonzero(words if words.any() else np.ones_like(words))
