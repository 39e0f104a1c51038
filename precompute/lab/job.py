"""Measure one model and keep the results beside its index, each measurement as soon as it is finished."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property

from lexiscope.precompute.build.lock import build_lock
from lexiscope.precompute.build.progress import Progress
from lexiscope.precompute.device import is_out_of_memory, pick_device
from lexiscope.precompute.errors import BadRequest, BuildError, ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.lab_record import (
    LAB,
    MEASUREMENTS,
    CoveragePart,
    InversePart,
    KeepKOfStates,
    LabRecord,
    SimilarityPart,
    TextsUsed,
)
from lexiscope.precompute.lab.coverage import DRAWN, CoverageMeasurement, CoverageSums, Wanted, coverage_part, forget
from lexiscope.precompute.lab.inverse import SAMPLE_SIZE, KeepKScores, ff_value_samples, normal_samples, state_samples
from lexiscope.precompute.lab.runs import LAB_TEXTS, LAB_TOKENS, TextRuns
from lexiscope.precompute.lab.similarity import compared_k, measure_similarity
from lexiscope.precompute.live.panels.coverage import ACTIVE_VECTORS
from lexiscope.precompute.live.texts import Texts
from lexiscope.precompute.weights.difference import Difference, Parameters

SAMPLE_KINDS = ("normal", "ff_value", "hidden")


@dataclass(frozen=True)
class LabOptions:
    only: tuple[str, ...] = MEASUREMENTS
    texts: Texts | None = None  # without texts, coverage and the inverse of hidden states are not measured
    seed: int = 0
    m: int = ACTIVE_VECTORS
    limit: int = LAB_TEXTS  # most texts that run
    length: int = LAB_TOKENS  # most tokens of a text
    device: str = "auto"
    force: bool = False  # whether to repeat measurements that are there


class LabProgress(Progress):
    def begin(self, model: str, unit: str, to_do: str, count: int, ready: int = 0) -> None:
        """Begin to show the progress of one measurement, which counts in its own unit."""
        self.stop()
        self.unit, self.to_do = unit, to_do
        self.start(model, count, ready, count - ready)

    def unit_finished(self) -> None:
        self.units_done(1)


def measure(
    index: Index, find_weights: Callable[[], Parameters], options: LabOptions, progress: LabProgress
) -> LabRecord:
    """Make or complete the lab.json of an index. Weights are looked for only if a measurement needs them."""
    with build_lock(index.folder):
        lab = _Lab(index, find_weights, options, progress)
        try:
            for name in options.only:
                getattr(lab, name)()
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise BuildError(
                f"not enough memory to measure {lab.name}: use a machine with more; finished measurements are kept"
            ) from error
        finally:
            progress.stop()
    return lab.record


class _Lab:
    """The measurements of one model: each is a method with the name of the measurement."""

    def __init__(
        self, index: Index, find_weights: Callable[[], Parameters], options: LabOptions, progress: LabProgress
    ) -> None:
        self.index, self.find_weights, self.options, self.progress = index, find_weights, options, progress
        self.name = index.manifest.model
        self.record = self._known()

    def similarity(self) -> None:
        index, seed, part = self.index, self.options.seed, self.record.similarity
        known = part and (part.seed, part.k, part.layers) == (seed, compared_k(index.stored), index.layers)
        if self._is_known("the similarity of lists", known):
            return
        self.progress.begin(self.name, "layer", "whose lists are to be compared", len(index.layers))
        self._keep(similarity=measure_similarity(index, seed, self.progress.unit_finished))

    def inverse(self) -> None:
        """Measure the inverses (see inverse.py), and keep the result of each kind of samples as soon as it is there."""
        part, kinds = self.record.inverse, SAMPLE_KINDS if self._can_run("hidden states") else SAMPLE_KINDS[:2]
        if part is None or part.seed != self.options.seed or self.options.force:
            part = InversePart(seed=self.options.seed)
        missing = [kind for kind in kinds if kind != "hidden" and getattr(part, kind) is None]
        if "hidden" in kinds and not (part.hidden and part.hidden.texts == self.runs.used):
            missing.append("hidden")
        if self._is_known("the keep-k scores of inverses", not missing):
            return
        scores = KeepKScores(self.model.W_U.numpy())
        self.progress.begin(self.name, "sample", "to score", len(kinds), len(kinds) - len(missing))
        for kind in missing:
            part = part.model_copy(update={kind: self._keep_k(scores, kind)})
            self._keep(inverse=part)
            self.progress.unit_done(kind)

    def coverage(self) -> None:
        if not self._can_run("coverage", required=self.options.only == ("coverage",)):
            return
        index, runs = self.index, self.runs
        wanted, part = Wanted.of(index, self.options.seed, self.options.m), self.record.coverage
        if self._is_known("the coverage of states", part and _same(part, wanted, runs.used)):
            return
        made_from = [asdict(wanted), DRAWN, runs.used.model_dump(), index.manifest.weights_sha256]
        sums = CoverageSums(made_from, (len(wanted.lenses), len(wanted.kinds), index.shape.n_layers))
        if not self.options.force:
            sums.go_on(index.folder)
        measurement = CoverageMeasurement(index, runs, wanted)
        self.progress.begin(self.name, "text", "to draw random states from", len(runs.texts))
        measurement.draw(self.progress.unit_finished)
        self.progress.begin(self.name, "text", "to measure coverage on", len(runs.texts), sums.texts)
        for text in range(sums.texts, len(runs.texts)):
            measurement.add_text(sums, text)
            sums.save(index.folder)
            self.progress.unit_finished()
        self._keep(coverage=coverage_part(runs, wanted, sums))
        forget(index.folder)

    @cached_property
    def model(self) -> Parameters:
        self.progress.say(f"checking the weights from {self.index.manifest.source}")
        return self.find_weights()

    @cached_property
    def runs(self) -> TextRuns:
        assert self.options.texts
        assert not isinstance(self.model, Difference)
        texts = self.options.texts.spread(self.options.limit)
        return TextRuns(self.model, texts, pick_device(self.options.device), self.options.length)

    def _keep_k(self, scores: KeepKScores, kind: str) -> object:
        n, seed = SAMPLE_SIZE, self.options.seed
        if kind == "normal":
            return scores.of(normal_samples(n, self.model.shape.d_model, seed), self.progress.step)
        if kind == "ff_value":
            return scores.of(ff_value_samples(self.model, n, seed), self.progress.step)
        measured = scores.of(state_samples(self.runs, n, seed), self.progress.step)
        return KeepKOfStates(**measured.model_dump(), texts=self.runs.used)

    def _can_run(self, what: str, required: bool = False) -> bool:
        """Return True if there is a model to run and there are texts to run it on. Otherwise say what is missing, or
        raise BadRequest if the run is `required`."""
        if self.index.manifest.minus:
            why = f"{self.name} is the difference of two models, which cannot run: measure one of the two"
        elif self.options.texts is None:
            why = "this needs texts: add --texts FILE, a .txt with a text in each line or a .csv with a column text"
        else:
            return True
        if required:
            raise BadRequest(f"{what} of {self.name}: {why}")
        self.progress.say(f"{self.name}: {what} is left out: {why}")
        return False

    def _is_known(self, what: str, known: object) -> bool:
        if not known or self.options.force:
            return False
        self.progress.say(f"{self.name}: {what} was measured already")
        return True

    def _keep(self, **measured: SimilarityPart | InversePart | CoveragePart) -> None:
        self.record = self.record.model_copy(update=measured)
        self.record.save(self.index.folder)

    def _known(self) -> LabRecord:
        """Return the record of what was measured so far, if it is of these weights."""
        index = self.index
        try:
            record = LabRecord.load(index.folder)
        except ShardDamaged:
            if not self.options.force:
                raise
            record = None
        if record and not record.is_of(index.manifest):
            self.progress.say(f"{index.folder / LAB} is of other weights than this index: all is measured anew")
            record = None
        return record or LabRecord.of(index.manifest)


def _same(measured: CoveragePart, wanted: Wanted, texts: TextsUsed) -> bool:
    lenses = tuple(lens for lens in wanted.lenses if measured.of_lens(lens))
    first = getattr(measured, wanted.kinds[0], None)
    if first is None or first.paper is None:  # an older record lacks what the paper counts
        return False
    known = replace(wanted, k=measured.k, m=measured.m, seed=measured.seed, layers=measured.layers, lenses=lenses)
    return known == wanted and measured.texts == texts
