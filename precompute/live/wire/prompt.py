"""A run of a prompt: which panels are asked for, what is changed in it, and the answer, with all panels."""

from typing import Annotated, Literal

from pydantic import Field

from precompute.live.wire.panels import (
    ActiveNeuron,
    Attribution,
    ChosenNeuron,
    ComparedWith,
    CoverageRow,
    EvolutionRow,
    HeadAttention,
    HeadPattern,
    TextNeuron,
    TokenPattern,
)
from precompute.live.wire.shared import FirstTokens, Lens, Likely, Unbuilt, Wire
from precompute.live.wire.words import Word
from precompute.shape import Predicts

Panel = Literal["evolution", "attention", "patterns", "neurons", "coverage", "attribution"]
Convention = Literal["final", "vocabulary", "exact"]
PatternRows = Literal["heads", "tokens"]


class NeuronSet(Wire):
    """A neuron's coefficient is set for this run; 0 switches it off."""

    kind: Literal["neuron"] = "neuron"
    layer: int
    neuron: int
    value: float = 0.0
    position: int | None = None  # None: all of them


class HeadOff(Wire):
    """A head adds nothing in this run."""

    kind: Literal["head"] = "head"
    layer: int
    head: int
    position: int | None = None  # None: all of them


Intervention = Annotated[NeuronSet | HeadOff, Field(discriminator="kind")]


class NeuronPlace(Wire):
    layer: int
    neuron: int


class PromptAsk(Wire):
    text: str = Field(min_length=1)
    panels: frozenset[Panel] = frozenset()
    position: int | None = None  # None: the last; of an encoder the mask, if there is one
    layer: int | None = None  # of `patterns`; None: the last
    neuron: int | None = None  # of that layer: `neurons` tells of it, however weak it is
    head: int | None = None  # of that layer: `patterns` has more of its messages, or is all about it
    interventions: tuple[Intervention, ...] = ()
    k: int = Field(5, ge=1, le=50)  # tokens of each cell
    convention: Convention = "vocabulary"  # of `patterns`
    lens: Lens = "dot"  # of `patterns`
    rows: PatternRows = "heads"  # of `patterns`: all heads at the position, or all tokens at the head (or head 0)
    spare: int = Field(0, ge=0, le=100)  # more tokens of each list of `patterns`, for those that will be left out
    unbuilt: Unbuilt | None = None
    rows_of: tuple[NeuronPlace, ...] = ()  # of `neurons`: whose coefficients at all positions are wanted
    token: Word | None = None  # of `attribution`; None: the one that is predicted
    against: Word | ComparedWith = "mean"  # of `attribution`: what its logit is compared with


class PromptAnswer(Wire):
    predicts: Predicts  # what prediction and evolution tell, and with it what every `p` is
    tokens: tuple[int, ...]
    position: int
    layer: int
    prediction: tuple[Likely, ...]  # at the position
    untouched: tuple[Likely, ...]  # the same without the interventions; empty if there are none
    evolution: tuple[EvolutionRow, ...] | None = None
    evolution_untouched: tuple[EvolutionRow, ...] | None = None
    appears: int | None = None  # the first layer after which the answer leads at the position, to the end
    attention: tuple[HeadAttention, ...] | None = None
    patterns: tuple[HeadPattern, ...] | None = None
    patterns_by_token: tuple[TokenPattern, ...] | None = None
    neurons: tuple[ActiveNeuron, ...] | None = None  # of the chosen position, strongest first, some of each layer
    neuron: ChosenNeuron | None = None  # the one that was asked about
    activations: tuple[TextNeuron, ...] | None = None  # those whose rows were asked for
    strongest: tuple[TextNeuron, ...] | None = None  # of the whole text; then those that fire on its first token only
    coverage: tuple[CoverageRow, ...] | None = None
    lists: tuple[FirstTokens, ...] = ()  # of neurons in layers that are not built
    attribution: Attribution | None = None
