"""Runs of the model for prompts: checks each ask, runs those of like length together, makes the panels asked for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from precompute.errors import BadRequest, LexiscopeError, NotFound
from precompute.live.attribution import attribution, target
from precompute.live.batches import halving, of_like_length
from precompute.live.cost import progress_cost, row_cost, token_cost
from precompute.live.coverage import coverage
from precompute.live.evolution import appears, evolution
from precompute.live.faults import Cancelled
from precompute.live.first_tokens import ListEnd, ends_of_neuron, first_tokens
from precompute.live.neurons import active_neurons, attentions, chosen_neuron
from precompute.live.patterns import Vocabularies, patterns_by_head, patterns_by_token
from precompute.live.records import Record, Recorder, attention_layers
from precompute.live.run import run
from precompute.live.text_neurons import chosen_neurons, strongest_neurons
from precompute.live.token_rows import TokenRows
from precompute.live.vocabulary import likelihoods
from precompute.live.weights import Weights
from precompute.live.wire.panels import Attribution, ComparedWith, NeuronTerm
from precompute.live.wire.prompt import HeadOff, PromptAnswer, PromptAsk
from precompute.live.wire.shared import Likely
from precompute.live.wire.words import Word
from precompute.live.words import Words

Step = Callable[[str, float], None]  # the stage, and which share of all work is done


@dataclass(frozen=True)
class Job:
    ask: PromptAsk
    tokens: tuple[int, ...]
    position: int
    layer: int
    attention: range  # the layers whose heads' weights are answered, if that panel is wanted
    token: int | None = None  # of attribution; None: the one that is predicted
    against: int | ComparedWith = "mean"

    def records(self) -> list[Record]:
        """The run, and beside one with interventions the same without, of which only evolution is shown."""
        ask = self.ask
        kept = self.attention if "attention" in ask.panels else range(0)
        places = tuple((place.layer, place.neuron) for place in ask.rows_of)
        changed = Record(
            self.tokens, ask.interventions, self.position, self.layer, ask.panels, ask.neuron, kept, places
        )
        if not ask.interventions:
            return [changed]
        return [changed, Record(self.tokens, (), self.position, self.layer, ask.panels & {"evolution"})]


class Progress:
    """Adds up the work that is done, in multiplications, and lets a run end when nobody waits for it."""

    def __init__(self, w: Weights, jobs: Sequence[Job], step: Step, cancelled: Callable[[], bool]) -> None:
        self.step, self.cancelled = step, cancelled
        self.layer_cost, self.row_cost = token_cost(w.shape), row_cost(w.shape)
        self.total = 1 + sum(progress_cost(w, job.ask, len(job.tokens)) for job in jobs)
        self.done = 0.0

    def add(self, stage: str, cost: float) -> None:
        if self.cancelled():
            raise Cancelled
        self.done += cost
        self.step(stage, min(self.done / self.total, 1.0))

    def rows(self, stage: str) -> Callable[[float], None]:
        return lambda rows: self.add(stage, rows * self.row_cost)


class Prompts:
    def __init__(self, w: Weights, words: Words) -> None:
        self.w, self.words = w, words

    @cached_property
    def value_norms(self) -> torch.Tensor:
        norms = [torch.linalg.vector_norm(values, dim=1) for values in self.w.every_layer("ff_value")]
        return torch.stack(norms)  # (n_layers, d_mlp)

    @cached_property
    def vocabularies(self) -> Vocabularies:
        """The rows of W_E and W_U."""
        reads = TokenRows.of(self.w, self.w.W_E)
        return reads, reads if self.w.shape.tied else TokenRows.of(self.w, self.w.W_U)

    def answers(
        self, asks: Sequence[PromptAsk], step: Step, cancelled: Callable[[], bool]
    ) -> list[PromptAnswer | LexiscopeError]:
        answers: dict[int, PromptAnswer | LexiscopeError] = {}
        jobs: dict[int, Job] = {}
        for number, ask in enumerate(asks):
            try:
                jobs[number] = self._job(ask)
            except LexiscopeError as error:
                answers[number] = error
        numbers = list(jobs)
        progress = Progress(self.w, list(jobs.values()), step, cancelled)
        lengths = [len(jobs[number].tokens) for number in numbers]
        for group in of_like_length(lengths, [2 if jobs[number].ask.interventions else 1 for number in numbers]):
            together = [numbers[at] for at in group]
            results = halving([jobs[n] for n in together], lambda batch: self._run(batch, progress), self._free)
            answers |= zip(together, results, strict=True)
        return [answers[number] for number in range(len(asks))]

    def _job(self, ask: PromptAsk) -> Job:
        tokens, s = self.words.prompt(ask.text), self.w.shape
        if len(tokens) > self.w.n_positions:
            raise BadRequest(
                f"the prompt has {len(tokens)} tokens, but the model has only {self.w.n_positions} positions"
            )
        position = self.words.usual_position(tokens) if ask.position is None else ask.position
        layer = s.n_layers - 1 if ask.layer is None else ask.layer
        _check("position", position, len(tokens))
        _check("layer", layer, s.n_layers)
        for what, chosen, count in (("neuron", ask.neuron, s.d_mlp), ("head", ask.head, s.n_heads)):
            if chosen is not None:
                _check(what, chosen, count)
        for place in ask.rows_of:
            _check("layer", place.layer, s.n_layers)
            _check("neuron", place.neuron, s.d_mlp)
        for change in ask.interventions:
            _check("layer", change.layer, s.n_layers)
            if change.position is not None:
                _check("position", change.position, len(tokens))
            if isinstance(change, HeadOff):
                _check("head", change.head, s.n_heads)
            else:
                _check("neuron", change.neuron, s.d_mlp)
        token = None if ask.token is None else target(self.words, ask.token)
        against = target(self.words, ask.against) if isinstance(ask.against, Word) else ask.against
        return Job(ask, tokens, position, layer, attention_layers(s, len(tokens), layer), token, against)

    def _run(self, jobs: Sequence[Job], progress: Progress) -> list[PromptAnswer | LexiscopeError]:
        """One pass for all jobs, then each one's panels."""
        w = self.w
        records = [job.records() for job in jobs]
        rows = [record for pair in records for record in pair]
        for record in rows:
            record.value_norms = self.value_norms if "neurons" in record.panels else None
        T = max(len(row.tokens) for row in rows)
        tokens = torch.tensor(
            [row.tokens + (self.words.padding,) * (T - len(row.tokens)) for row in rows], device=w.device
        )
        words = sum(len(row.tokens) for row in rows)
        recorder = Recorder(rows, lambda layer: progress.add("run", words * progress.layer_cost * (layer > 0)))
        last = run(w, tokens, [len(row.tokens) for row in rows], [row.interventions for row in rows], recorder)
        at = torch.tensor([row.position for row in rows], device=w.device)
        k = max(job.ask.k for job in jobs)
        predicted = likelihoods(w, last[torch.arange(len(rows), device=w.device), at], k, None)
        finite = last.square().sum(dim=2).isfinite()  # a norm needs the squares
        likely = list(zip(predicted.ids.tolist(), predicted.p.tolist(), strict=True))
        answers: list[PromptAnswer | LexiscopeError] = []
        row = 0
        for job, pair in zip(jobs, records, strict=True):
            mine = slice(row, row + len(pair))
            row += len(pair)
            if not finite[mine, : len(job.tokens)].all():
                answers.append(BadRequest("the run overflows with these interventions: use smaller coefficients"))
            else:
                answers.append(
                    self._answer(job, pair, [_likely(ids, p, job.ask.k) for ids, p in likely[mine]], progress)
                )
        return answers

    def _answer(
        self, job: Job, records: Sequence[Record], likely: Sequence[tuple[Likely, ...]], progress: Progress
    ) -> PromptAnswer:
        w, ask, record, tick = self.w, job.ask, records[0], progress.rows("patterns")
        rows = [
            evolution(w, run.streams, ask.k, progress.rows("evolution")) for run in records if "evolution" in ask.panels
        ]
        answer = PromptAnswer(
            predicts=w.shape.predicts,
            tokens=job.tokens,
            position=job.position,
            layer=job.layer,
            prediction=likely[0],
            untouched=likely[1] if len(likely) > 1 else (),
            evolution=rows[0] if rows else None,
            evolution_untouched=rows[1] if len(rows) > 1 else None,
            appears=appears(rows[0], job.position) if rows else None,
            attention=attentions(w.shape, record) if "attention" in ask.panels else None,
            patterns=patterns_by_head(w, record, ask, self.vocabularies, tick)
            if "patterns" in ask.panels and ask.rows == "heads"
            else None,
            patterns_by_token=patterns_by_token(w, record, ask, self.vocabularies, tick)
            if "patterns" in ask.panels and ask.rows == "tokens"
            else None,
            neurons=active_neurons(w, self.value_norms, record) if "neurons" in ask.panels else None,
            neuron=chosen_neuron(self.value_norms, record),
            activations=chosen_neurons(self.value_norms, record) if "neurons" in ask.panels else None,
            strongest=strongest_neurons(self.value_norms, record) if "neurons" in ask.panels else None,
            coverage=coverage(w, record, progress.rows("coverage")) if "coverage" in ask.panels else None,
            attribution=self._attribution(job, record, likely[0][0].id),
        )
        shown = _shown_vectors(answer, gated=w.shape.gated)
        lists = first_tokens(w.vectors, self.words.reads, self.words.writes, ask.unbuilt, shown)
        return answer.model_copy(update={"lists": lists}) if lists else answer

    def _attribution(self, job: Job, record: Record, predicted: int) -> Attribution | None:
        if "attribution" not in job.ask.panels:
            return None
        return attribution(self.w, record, predicted if job.token is None else job.token, job.against)

    def _free(self) -> None:
        if self.w.device.type == "cuda":
            torch.cuda.empty_cache()


def _shown_vectors(answer: PromptAnswer, *, gated: bool) -> Iterator[ListEnd]:
    """Whose first tokens stand beside an answer."""
    for neuron in (*(answer.neurons or ()), *(answer.activations or ()), *(answer.strongest or ())):
        yield from ends_of_neuron(neuron)
    if answer.neuron:
        yield from ends_of_neuron(answer.neuron, up=gated)
    if answer.attribution:
        for part in (*answer.attribution.raises, *answer.attribution.lowers):
            if isinstance(part, NeuronTerm):
                yield ListEnd("ff_value", part.layer, part.neuron, "top" if part.coefficient >= 0 else "bottom")


def _check(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise NotFound(f"{what} {number} does not exist here: 0 to {count - 1} do")


def _likely(ids: list[int], p: list[float], k: int) -> tuple[Likely, ...]:
    return tuple(Likely(id=token, p=share) for token, share in list(zip(ids, p, strict=True))[:k])
