"""What can be asked of a model and what it answers, as JSON over HTTP. Tokens are ids: texts are the index's.
Needs no torch, so that the server can import it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from precompute.shape import Predicts

Panel = Literal["evolution", "attention", "patterns", "neurons", "coverage", "attribution"]
Lens = Literal["dot", "cosine"]
Convention = Literal["final", "vocabulary", "exact"]
PatternRows = Literal["heads", "tokens"]
OWN_LISTS = 3  # of a position at a head: pattern, found_by, message
ComparedWith = Literal["mean", "none"]  # what a logit is compared with: the mean over all tokens, or nothing
End = Literal["top", "bottom"]
# Which tokens stand for a seed word: the one with a leading space if there is one, or else the other; or always the
# tokens of the word with a space, or of the word without.
Spelling = Literal["usual", "spaced", "bare"]
Matrix = Literal["vo", "qk"]
Baseline = Literal["pairs", "words"]  # what sources are shuffled with: other pairs' targets, or random words


class Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Scored(Wire):
    id: int
    score: float


# First tokens of vectors that an index does not have yet: the answers to seed words and to prompts carry them


class Unbuilt(Wire):
    """Layers that the index of whoever asks does not have, and the lens under which it would list them."""

    layers: frozenset[int] = Field(min_length=1)
    lens: Lens = "dot"


class FirstTokens(Wire):
    """The beginning of a vector's list, as the index will have it."""

    kind: str
    layer: int
    index: int
    end: End
    tokens: tuple[int, ...]


# Seed words


class Term(Wire):
    word: str = Field(min_length=1, max_length=100)
    weight: float = Field(default=1.0, ge=-1e6, le=1e6)
    spelling: Spelling = "usual"


class VectorPlace(Wire):
    kind: str
    layer: int = Field(ge=0)
    index: int = Field(ge=0)


class SeedsAsk(Wire):
    terms: tuple[Term, ...] = Field(min_length=1)
    kinds: tuple[str, ...] = Field(min_length=1)
    n: int = Field(50, ge=1, le=1000)
    heads: bool = False  # also what every head would do with the average
    lens: Lens = "dot"
    unbuilt: Unbuilt | None = None
    rank_of: VectorPlace | None = None  # also the rank of this vector, however far behind


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
    lists: tuple[FirstTokens, ...] = ()  # of results in layers that are not built
    rank: int | None = None  # from 1, among all vectors of its kind, of the one that was asked for


# Pairs to heads


class WordPair(Wire):
    source: str = Field(min_length=1, max_length=100)
    target: str = Field(min_length=1, max_length=100)


class RelationAsk(Wire):
    pairs: tuple[WordPair, ...] = Field(min_length=1)
    lens: Lens = "dot"
    matrix: Matrix = "vo"  # qk: the source is the query's word, the target the key's


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
    shuffled: float  # the mean rank of other pairs' targets, or of random words
    identity: float  # the mean rank of the sources themselves
    chance: float  # how many heads would reach `rank` if ranks were drawn at random
    shuffled_from_bottom: float
    identity_from_bottom: float
    chance_from_bottom: float


class RelationAnswer(Wire):
    pairs: tuple[PairUsed, ...]
    heads: tuple[HeadRelation, ...]  # all of them, best mean rank first
    shuffled_with: Baseline


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


class Look(Wire):
    """Another end of attention."""

    position: int
    weight: float


class HeadPattern(Wire):
    """One head of the chosen layer at the chosen position, as words."""

    head: int
    pattern: tuple[Scored, ...]  # of the position's own query: what it looks for
    found_by: tuple[Scored, ...]  # of its own key: what would find it
    found_from: Look | None  # the other position that looks at it most; None if no other sees it
    message: tuple[Scored, ...]  # its own, to whoever attends to it
    messages: tuple["Message", ...]  # from the positions it attends to most


class Message(Wire):
    position: int
    weight: float
    tokens: tuple[Scored, ...]


class TokenPattern(Wire):
    """One position of the text at the chosen head, as words."""

    position: int
    pattern: tuple[Scored, ...]
    looks_at: Look  # most
    found_by: tuple[Scored, ...]
    found_from: Look | None
    message: tuple[Scored, ...]


class ActiveNeuron(Wire):
    layer: int
    neuron: int
    coefficient: float
    strength: float  # |coefficient| times the value's norm
    first_only: bool  # fires on the first token much more than anywhere else


class ChosenNeuron(ActiveNeuron):
    rank: int  # of its strength among the neurons of its layer, at the chosen position; 1 is the strongest
    coefficients: tuple[float, ...]  # by position


class TextNeuron(ActiveNeuron):
    """A neuron over the whole text; coefficient and strength are those of its peak."""

    position: int  # of its peak; after the first position, unless it fires there only
    coefficients: tuple[float, ...]  # by position


class CoverageRow(Wire):
    """The paper's R_k at the chosen position: the share of the hidden state's top-k that the active vectors list."""

    layer: int
    kind: str  # ff_key, ff_value, w_v or w_o
    covered: float
    shuffled: float | None  # against the hidden states of other positions, on average; None if there are none
    shuffled_sd: float | None  # how far these are from their mean: the standard deviation; None of fewer than two
    others: int  # how many other positions there are
    as_covered: int  # how many of them are covered at least as much


class Looks(Wire):
    position: int
    weight: float


class HeadTerm(Wire):
    layer: int
    head: int
    term: float
    attends: tuple[Looks, ...]  # the positions it attends to most


class NeuronTerm(Wire):
    layer: int
    neuron: int
    term: float
    coefficient: float
    first_only: bool  # fires on the first token much more than anywhere else


class LayerTerms(Wire):
    layer: int
    heads: tuple[float, ...]  # of each head
    attention_bias: float  # of what adds the heads together, with that of a norm behind it
    neurons: float  # of all neurons together
    ff_bias: float


class Attribution(Wire):
    """What each part of a run added to a token's logit at the position; without norms in between, all scales fixed.

    The terms (embedding, positions, those of the layers, biases) sum to logit - baseline.
    """

    token: int
    against: int | ComparedWith
    logit: float  # before a soft cap; the cosine, where the model predicts no tokens
    baseline: float  # the logit of `against`: of another token, the mean of all; 0
    embedding: float
    positions: float | None  # learned ones of a decoder; an encoder's are part of the embedding
    layers: tuple[LayerTerms, ...]
    final_bias: float  # of the final norm, or of an encoder's head before W_U
    unembedding_bias: float
    raises: tuple[HeadTerm | NeuronTerm, ...]  # the largest of all heads and neurons
    lowers: tuple[HeadTerm | NeuronTerm, ...]  # the most negative


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
    matrix: Matrix
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


# A sentence in two models: states of a run, and states of any origin as tokens


class StatesAsk(Wire):
    text: str
    layer: int | None = None  # the stream after it; the last one
    k: int = Field(5, ge=1, le=50)


class _States(Wire):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    states: bytes  # (positions, d_model) float32, little-endian, row after row


class StatesAnswer(_States):
    predicts: Predicts  # what `cells` tell
    tokens: tuple[int, ...]
    layer: int
    cells: tuple[tuple[Likely, ...], ...]  # of every position: what the model itself makes of its state


class StatesReadingAsk(_States):
    k: int = Field(5, ge=1, le=50)


class StatesReadingAnswer(Wire):
    predicts: Predicts
    cells: tuple[tuple[Likely, ...], ...]  # of every state
