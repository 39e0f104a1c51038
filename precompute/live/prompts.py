"""Run the model for prompts: check each ask, run those of similar length together, and make the panels that were asked
for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from lexiscope.precompute.errors import BadRequest, LexiscopeError
from lexiscope.precompute.live.batches import free_memory, halving, of_like_length
from lexiscope.precompute.live.changes import MeansOfTexts, check_replaced, given_values
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
from lexiscope.precompute.live.wire.answers import PanelName, PromptAnswer
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.errors import Cancelled
from lexiscope.precompute.live.wire.grammar import ComparedWith, Word
from lexiscope.precompute.live.words import Words

Step = Callable[[str, float], None]  # the stage, and which share of all work is done


@dataclass(frozen=True)
class Job:
    ask: PromptAsk
    tokens: tuple[int, ...]
    position: int
    layer: int
    attention: range  # the layers whose attention weights are answered, if the panel `attention` is wanted
    second: tuple[int, ...]  # the tokens of the second text, if there is one
    second_position: int
    token: int | None = None  # the token whose logit is explained; None: the predicted one
    against: int | ComparedWith = "mean"

    def records(self) -> list[Record]:
        """Return a record for the run; if it has changes, one for the same run without them; and one for the second
        text, if there is one. Of the last two only evolution shows something, and changes may take values of them."""
        ask = self.ask
        keeps = frozenset[Keep]().union(*(panel.keeps for panel in PANELS if panel.name in ask.panel))
        places = tuple((place.layer, place.neuron) for place in ask.neurons)
        records = [Record(self.tokens, (), self.position, self.layer, keeps, ask.neuron, self.attention, places)]
        streams = keeps & {"streams"}
        if ask.changes:
            means = ask.mean if ask.means == "prompt" else ()
            records.append(Record(self.tokens, (), self.position, self.layer, streams, replaced=means))
        if self.second:
            records.append(Record(self.second, (), self.second_position, self.layer, streams, replaced=ask.patch))
        return records

    @property
    def longest(self) -> int:
        return max(len(self.tokens), len(self.second))


class Progress:
    """The progress of a run: adds up the finished work, in multiplications, and ends the run when nobody waits for
    it."""

    def __init__(self, w: Weights, jobs: Sequence[Job], step: Step, cancelled: Callable[[], bool]) -> None:
        self.step, self.cancelled = step, cancelled
        self.layer_cost, self.row_cost = token_cost(w.shape), row_cost(w.shape)
        self.total = 1 + sum(progress_cost(w, job.ask, job.longest) for job in jobs)
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
        self.means = MeansOfTexts(w, words)

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
        lengths = [jobs[number].longest for number in numbers]
        free = partial(free_memory, self.w.device)
        for group in of_like_length(lengths, [jobs[number].ask.runs for number in numbers]):
            together = [numbers[at] for at in group]
            results = halving([jobs[n] for n in together], lambda batch: self._run(batch, progress), free)
            answers |= zip(together, results, strict=True)
        return [answers[number] for number in range(len(asks))]

    def _job(self, ask: PromptAsk) -> Job:
        tokens, s = self._tokens(ask.text, ask.bos), self.w.shape
        second = self._tokens(ask.from_, ask.bos) if ask.from_ else ()
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
            check_number("head", change.head, s.n_heads)
            check_number("neuron", change.neuron, s.d_mlp)
        check_replaced(ask, len(tokens), len(second))
        second_position = self.words.usual_position(second) if second else 0
        if ask.position is not None and ask.position < len(second):
            second_position = ask.position
        token = None if ask.token is None else target(self.words, ask.token)
        against = target(self.words, ask.against) if isinstance(ask.against, Word) else ask.against
        attention = attention_layers(s, len(tokens), layer)
        return Job(ask, tokens, position, layer, attention, second, second_position, token, against)

    def _tokens(self, text: str, bos: int) -> tuple[int, ...]:
        tokens = self.words.prompt(text, bos)
        if len(tokens) > self.w.n_positions:
            raise BadRequest(
                f"the prompt has {len(tokens)} tokens, but the model has only {self.w.n_positions} positions"
            )
        return tokens

    def _run(self, jobs: Sequence[Job], progress: Progress) -> list[PromptAnswer | LexiscopeError]:
        """Run all jobs in one pass, and in a second one the changed runs that take values of others; then make the
        panels of each."""
        if any(job.ask.mean and job.ask.means == "texts" for job in jobs):
            self.means.make(lambda: progress.add("run", 0))
        records = [job.records() for job in jobs]
        k = max(job.ask.k for job in jobs)
        for second_pass in (False, True):
            rows: list[Record] = []
            for job, of_job in zip(jobs, records, strict=True):
                if any(record.replaced for record in of_job) == second_pass:
                    of_job[0].changes = given_values(job.ask, of_job, self.means)
                    rows.append(of_job[0])
                rows += [] if second_pass else of_job[1:]
            if rows:
                self._pass(rows, k, progress)
        answers: list[PromptAnswer | LexiscopeError] = []
        for job, of_job in zip(jobs, records, strict=True):
            try:
                answers.append(self._answer(job, of_job, progress))
            except LexiscopeError as error:
                answers.append(error)
        return answers

    def _pass(self, rows: Sequence[Record], k: int, progress: Progress) -> None:
        """Run what the records describe, and put into each what it keeps and the k most likely tokens at its
        position."""
        w, lengths = self.w, [len(row.tokens) for row in rows]
        for row in rows:
            row.value_norms = self.tables.value_norms if "peaks" in row.keeps else None
        tokens = padded([row.tokens for row in rows], self.words.padding, w.device)
        recorder = Recorder(rows, lambda layer: progress.add("run", sum(lengths) * progress.layer_cost * (layer > 0)))
        last = run(w, tokens, lengths, [row.changes for row in rows], recorder)
        at = torch.tensor([row.position for row in rows], device=w.device)
        found = likelihoods(w, last[torch.arange(len(rows), device=w.device), at], k, None)
        finite = last.square().sum(dim=2).isfinite()  # even the squares must be finite, because a norm needs them
        for row, ids, p, of_row in zip(rows, found.ids.tolist(), found.p.tolist(), finite, strict=True):
            row.prediction = predicted(w.shape.predicts, ids, p)
            row.is_finite = bool(of_row[: len(row.tokens)].all())

    def _answer(self, job: Job, records: Sequence[Record], progress: Progress) -> PromptAnswer:
        if not all(record.is_finite for record in records):
            raise BadRequest("the run overflows with these interventions: use smaller coefficients")
        w, ask = self.w, job.ask
        token = records[0].prediction[0]["id"] if job.token is None else job.token
        run = PanelRun(w, self.tables, ask, records, token, job.against, progress.rows)
        panels = [panel for panel in PANELS if panel.name in ask.panel]
        fields = {name: field for panel in panels for name, field in panel.answer(run).items()}
        shown = (end for panel in panels for end in panel.vectors(fields, w.shape.gated))
        put = self.words.put_first
        first = self.words.bos if put is None else put
        answer: PromptAnswer = {
            "predicts": w.shape.predicts,
            "tokens": [{"id": token} for token in job.tokens],
            "bos": {
                "token": None if first is None else {"id": first},
                "by": "tokenizer" if put is not None else "asked" if ask.bos else "nobody",
            },
            "position": job.position,
            "layer": job.layer,
            "prediction": records[0].prediction[: ask.k],
            "untouched": records[1].prediction[: ask.k] if ask.changes else [],
            "mean_over": None,
            "lists": first_tokens(w.vectors, self.words.reads, self.words.writes, ask.unbuilt, shown),
        }
        if ask.mean:
            positions = self.means.positions if ask.means == "texts" else len(job.tokens)
            answer["mean_over"] = {"means": ask.means, "positions": positions}
        second = fields.pop("evolution_from", None)
        if job.second:
            answer["from"] = {
                "tokens": [{"id": token} for token in job.second],
                "position": job.second_position,
                "prediction": records[-1].prediction[: ask.k],
                "evolution": second,
            }
        answer.update(fields)  # type: ignore[typeddict-item]  # each panel names its own
        return answer
