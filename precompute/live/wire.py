"""What can be asked of a model and what it answers, as JSON over HTTP. Tokens are ids: texts are the index's.
Needs no torch, so that the server can import it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from precompute.shape import Predicts

Panel = Literal["evolution", "attention", "patterns", "neurons", "coverage"]
Lens = Literal["dot", "cosine"]
Convention = Literal["final", "vocabulary", "exact"]
End = Literal["top", "bottom"]


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Scored(Wire):
    id: int
    score: float


# Seed words


class Term(Wire):
    word: str = Field(min_length=1, max_length=100)
    weight: float = Field(default=1.0, ge=-1e6, le=1e6)


class SeedsAsk(Wire):
    terms: tuple[Term, ...] = Field(min_length=1)
    kinds: tuple[str, ...] = Field(min_length=1)
    n: int = Field(50, ge=1, le=1000)
    heads: bool = False  # also what every head would do with the average


class TermUsed(Wire):
    word: str
    weight: float
    tokens: tuple[int, ...]


class SeedResult(Wire):
    kind: str
    layer: int
    index: int
    score: float  # of the average
    scores: tuple[float, ...]  # of each term by itself


class HeadReading(Wire):
    layer: int
    head: int
    writes: tuple[Scored, ...]  # W_V W_O
    seeks: tuple[Scored, ...]  # W_Q W_Kᵀ
    writes_alike: float | None  # the mean cosine between the tokens' centred embeddings; None if there are not two
    seeks_alike: float | None


class SeedsAnswer(Wire):
    terms: tuple[TermUsed, ...]
    nearest: tuple[Scored, ...]  # tokens, by cosine with the average
    results: tuple[SeedResult, ...]
    heads: tuple[HeadReading, ...]  # empty unless asked for


# Pairs to heads


class WordPair(Wire):
    source: str = Field(min_length=1, max_length=100)
    target: str = Field(min_length=1, max_length=100)


class RelationAsk(Wire):
    pairs: tuple[WordPair, ...] = Field(min_length=1)
    lens: Lens = "dot"


class PairUsed(Wire):
    source: str
    source_tokens: tuple[int, ...]
    target: str
    target_tokens: tuple[int, ...]


class HeadRelation(Wire):
    layer: int
    head: int
    rank: float  # mean over the pairs of the target's rank among all tokens, 1 is the best
    score: float  # mean
    ranks: tuple[int, ...]  # of each pair
    scores: tuple[float, ...]
    rank_from_bottom: float  # mean; small where the head suppresses the target


class RelationAnswer(Wire):
    pairs: tuple[PairUsed, ...]
    heads: tuple[HeadRelation, ...]  # all of them, best mean rank first


# Words through heads


class Word(Wire):
    word: str = Field(min_length=1, max_length=100)
    token: int | None = Field(None, ge=0)  # this token, whatever else stands for the word


Group = Annotated[tuple[Word, ...], Field(min_length=1)]  # stands for the mean of its words


class ThroughHeadsAsk(Wire):
    groups: tuple[Group, ...] = Field(min_length=1)
    layers: tuple[int, ...] = Field(min_length=1)
    head: int | None = None  # of each layer; None: all of them
    lens: Lens = "dot"
    end: End = "top"
    k: int = Field(8, ge=1, le=50)  # tokens of each list


class WordUsed(Wire):
    word: str
    tokens: tuple[int, ...]


class ThroughHeadsAnswer(Wire):
    groups: tuple[tuple[WordUsed, ...], ...]
    heads: tuple[tuple[HeadReading, ...], ...]  # by group: all heads, in the order of the layers asked for


# Prompts


class NeuronSet(Wire):
    """A neuron's coefficient is set for this run, at all positions; 0 switches it off."""

    kind: Literal["neuron"] = "neuron"
    layer: int
    neuron: int
    value: float = 0.0


class HeadOff(Wire):
    """A head adds nothing in this run."""

    kind: Literal["head"] = "head"
    layer: int
    head: int


Intervention = Annotated[NeuronSet | HeadOff, Field(discriminator="kind")]


class PromptAsk(Wire):
    text: str = Field(min_length=1)
    panels: frozenset[Panel] = frozenset()
    position: int | None = None  # None: the last; of an encoder the mask, if there is one
    layer: int | None = None  # of `patterns`; None: the last
    neuron: int | None = None  # of that layer: `neurons` tells of it, however weak it is
    head: int | None = None  # of that layer: `patterns` has more of its messages
    interventions: tuple[Intervention, ...] = ()
    k: int = Field(5, ge=1, le=50)  # tokens of each cell
    convention: Convention = "final"


class Likely(Wire):
    id: int
    p: float


class EvolutionRow(Wire):
    """The stream after one step, at every position: through the final norm and W_U."""

    layer: int
    after: Literal["embedding", "attention", "ff"]
    cells: tuple[tuple[Likely, ...], ...]  # by position
    answer: tuple[float, ...]  # by position: probability of the token that the model ends up with there
    answer_rank: tuple[int, ...]  # by position, 1 is the best


class HeadAttention(Wire):
    layer: int
    head: int
    weights: tuple[tuple[float, ...], ...]  # by query position, up to it; of an encoder to all positions


class HeadPattern(Wire):
    """One head of the chosen layer at the chosen position, as words."""

    head: int
    pattern: tuple[Scored, ...]  # of the position's own query
    messages: tuple["Message", ...]  # from the positions it attends to most


class Message(Wire):
    position: int
    weight: float
    tokens: tuple[Scored, ...]


class ActiveNeuron(Wire):
    layer: int
    neuron: int
    coefficient: float
    strength: float  # |coefficient| times the value's norm
    first_only: bool  # fires on the first token much more than anywhere else


class ChosenNeuron(ActiveNeuron):
    rank: int  # of its strength among the neurons of its layer, at the chosen position; 1 is the strongest
    coefficients: tuple[float, ...]  # by position


class CoverageRow(Wire):
    """The paper's R_k at the chosen position: the share of the hidden state's top-k that the active vectors list."""

    layer: int
    kind: str  # ff_key, ff_value, w_v or w_o
    covered: float
    shuffled: float | None  # against the hidden states of other positions; None if there are none


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
    neurons: tuple[ActiveNeuron, ...] | None = None  # of the chosen position, strongest first, some of each layer
    neuron: ChosenNeuron | None = None  # the one that was asked about
    coverage: tuple[CoverageRow, ...] | None = None


# Other readings of a stored parameter

Reading = Literal["norm", "mlp"]  # the layer's norm folded in; the first MLP applied to the vocabulary


class ReadingAsk(Wire):
    kind: str  # a kind of vector
    layer: int
    index: int
    reading: Reading
    lens: Lens = "dot"
    k: int = Field(25, ge=1, le=100)


class ReadingAnswer(Wire):
    top: tuple[Scored, ...]
    bottom: tuple[Scored, ...]


class PairsReadingAsk(Wire):
    matrix: Literal["vo", "qk"]
    layer: int
    head: int
    reading: Reading
    lens: Lens = "dot"
    preset: Literal["all", "distinct", "words"] = "all"
    n: int = Field(50, ge=1, le=1000)


class ScoredPair(Wire):
    source: int
    target: int
    score: float


class PairsReadingAnswer(Wire):
    top: tuple[ScoredPair, ...]
    bottom: tuple[ScoredPair, ...]
