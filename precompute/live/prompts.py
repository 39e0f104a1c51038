"""Run the model for prompts: check each ask, run those of similar length together, and make the panels that were asked
for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from lexiscope.precompute.errors import BadRequest, LexiscopeError
from lexiscope.precompute.live.batches import halving, of_like_length
from lexiscope.precompute.live.cost import progress_cost, row_cost, token_cost
from lexiscope.precompute.live.first_tokens import first_tokens
from lexiscope.precompute.live.panels import PANELS
from lexiscope.precompute.live.panels.attribution import target
from lexiscope.precompute.live.panels.panel import ModelTables, PanelRun
from lexiscope.precompute.live.panels.records import Keep, Record, Recorder, attention_layers
from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.run import padded, run
from lexiscope.precompute.live.vocabulary import likelihoods, predicted
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import PanelName, Predicted, PromptAnswer
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import ComparedWith, HeadOff, Word
from lexiscope.precompute.live.words import Words

Step = Callable[[str, float], None]  # the stage, and which share of all work is done


@dataclass(frozen=True)
class Job:
    ask: PromptAsk
    tokens: tuple[int, ...]
    position: int
    layer: int
    attention: range  # the layers whose attention weights are answered, if the panel `attention` is wanted
    token: int | None = None  # the token whose logit is explained; None: the predicted one
    against: int | ComparedWith = "mean"

    def records(self) -> list[Record]:
        """Return a record for the run and, if the run has changes, one for the same run without them, which only
        evolution shows."""
        ask = self.ask
        keeps = frozenset[Keep]().union(*(panel.keeps for panel in PANELS if panel.name in ask.panel))
        places = tuple((place.layer, place.neuron) for place in ask.neurons)
        changed = Record(self.tokens, ask.changes, self.position, self.layer, keeps, ask.neuron, self.attention, places)
        if not ask.changes:
            return [changed]
        return [changed, Record(self.tokens, (), self.position, self.layer, keeps & {"streams"})]


class Progress:
    """The progress of a run: adds up the finished work, in multiplications, and ends the run when nobody waits for
    it."""

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

    def rows(self, stage: PanelName) -> Callable[[float], None]:
        return lambda rows: self.add(stage, rows * self.row_cost)


class Prompts:
    def __init__(self, w: Weights, words: Words, tokenizer_file: Path) -> None:
        self.w, self.words, self.tables = w, words, ModelTables(w, words.special, tokenizer_file)

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
        for group in of_like_length(lengths, [2 if jobs[number].ask.changes else 1 for number in numbers]):
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
        check_number("position", position, len(tokens))
        check_number("layer", layer, s.n_layers)
        check_number("neuron", ask.neuron, s.d_mlp)
        check_number("head", ask.head, s.n_heads)
        for place in ask.neurons:
            check_number("layer", place.layer, s.n_layers)
            check_number("neuron", place.neuron, s.d_mlp)
        for change in ask.changes:
            check_number("layer", change.layer, s.n_layers)
            check_number("position", change.position, len(tokens))
            if isinstance(change, HeadOff):
                check_number("head", change.head, s.n_heads)
            else:
                check_number("neuron", change.neuron, s.d_mlp)
        token = None if ask.token is None else target(self.words, ask.token)
        against = target(self.words, ask.against) if isinstance(ask.against, Word) else ask.against
        return Job(ask, tokens, position, layer, attention_layers(s, len(tokens), layer), token, against)

    def _run(self, jobs: Sequence[Job], progress: Progress) -> list[PromptAnswer | LexiscopeError]:
        """Run all jobs in one pass, then make the panels of each."""
        w = self.w
        records = [job.records() for job in jobs]
        rows = [record for pair in records for record in pair]
        for record in rows:
            record.value_norms = self.tables.value_norms if record.keeps & {"neurons", "columns"} else None
        tokens = padded([row.tokens for row in rows], self.words.padding, w.device)
        lengths = [len(row.tokens) for row in rows]
        recorder = Recorder(rows, lambda layer: progress.add("run", sum(lengths) * progress.layer_cost * (layer > 0)))
        last = run(w, tokens, lengths, [row.changes for row in rows], recorder)
        at = torch.tensor([row.position for row in rows], device=w.device)
        k = max(job.ask.k for job in jobs)
        found = likelihoods(w, last[torch.arange(len(rows), device=w.device), at], k, None)
        finite = last.square().sum(dim=2).isfinite()  # even the squares must be finite, because a norm needs them
        likely = list(zip(found.ids.tolist(), found.p.tolist(), strict=True))
        answers: list[PromptAnswer | LexiscopeError] = []
        row = 0
        for job, pair in zip(jobs, records, strict=True):
            mine = slice(row, row + len(pair))
            row += len(pair)
            if not finite[mine, : len(job.tokens)].all():
                answers.append(BadRequest("the run overflows with these interventions: use smaller coefficients"))
            else:
                k = job.ask.k
                first = [predicted(w.shape.predicts, ids[:k], p[:k]) for ids, p in likely[mine]]
                answers.append(self._answer(job, pair, first, progress))
        return answers

    def _answer(
        self, job: Job, records: Sequence[Record], likely: Sequence[Predicted], progress: Progress
    ) -> PromptAnswer:
        w, ask = self.w, job.ask
        token = likely[0][0]["id"] if job.token is None else job.token
        run = PanelRun(w, self.tables, ask, records, token, job.against, progress.rows)
        panels = [panel for panel in PANELS if panel.name in ask.panel]
        fields = {name: field for panel in panels for name, field in panel.answer(run).items()}
        shown = (end for panel in panels for end in panel.vectors(fields, w.shape.gated))
        answer: PromptAnswer = {
            "predicts": w.shape.predicts,
            "tokens": [{"id": token} for token in job.tokens],
            "position": job.position,
            "layer": job.layer,
            "prediction": likely[0],
            "untouched": likely[1] if len(likely) > 1 else [],
            "lists": first_tokens(w.vectors, self.words.reads, self.words.writes, ask.unbuilt, shown),
        }
        answer.update(fields)  # type: ignore[typeddict-item]  # each panel names its own
        return answer

    def _free(self) -> None:
        if self.w.device.type == "cuda":
            torch.cuda.empty_cache()
