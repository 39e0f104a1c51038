"""What a worker answers, as JSON over HTTP. Tokens are ids: their texts are the index's."""

from typing import Literal

from pydantic import ConfigDict

from lexiscope.precompute.live.wire.fields import End, Wire
from lexiscope.precompute.live.wire.grammar import ComparedWith
from lexiscope.precompute.shape import Predicts

PanelName = Literal["evolution", "attention", "patterns", "neurons", "coverage", "attribution"]
Baseline = Literal["pairs", "words"]  # what sources are shuffled with: other pairs' targets, or random words


class Scored(Wire):
    id: int
    score: float


class Likely(Wire):
    id: int
    p: float


class FirstTokens(Wire):
    """The beginning of a vector's list, as the index will have it: seed words and prompts are answered with those of
    layers that are not built."""

    kind: str
    layer: int
    index: int
    end: End
    tokens: tuple[int, ...]


# Panels of a run


OWN_LISTS = 3  # of a position at a head: pattern, found_by, message


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


class Message(Wire):
    position: int
    weight: float
    tokens: tuple[Scored, ...]


class HeadPattern(Wire):
    """One head of the chosen layer at the chosen position, as words."""

    head: int
    pattern: tuple[Scored, ...]  # of the position's own query: what it looks for
    found_by: tuple[Scored, ...]  # of its own key: what would find it
    found_from: Look | None  # the other position that looks at it most; None if no other sees it
    message: tuple[Scored, ...]  # its own, to whoever attends to it
    messages: tuple[Message, ...]  # from the positions it attends to most


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


class HeadTerm(Wire):
    layer: int
    head: int
    term: float
    attends: tuple[Look, ...]  # the positions it attends to most


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


# Words


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


class WordUsed(Wire):
    word: str
    tokens: tuple[int, ...]


class ThroughHeadsAnswer(Wire):
    groups: tuple[tuple[WordUsed, ...], ...]
    heads: tuple[tuple[HeadReading, ...], ...]  # by group: all heads, in the order of the layers asked for


# Readings


class ReadingAnswer(Wire):
    top: tuple[Scored, ...]
    bottom: tuple[Scored, ...]


class ScoredPair(Wire):
    source: int
    target: int
    score: float


class PairsReadingAnswer(Wire):
    top: tuple[ScoredPair, ...]
    bottom: tuple[ScoredPair, ...]


# States


class StatesAnswer(Wire):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    states: bytes  # (positions, d_model) float32, little-endian, row after row
    predicts: Predicts  # what `cells` tell
    tokens: tuple[int, ...]
    layer: int
    cells: tuple[tuple[Likely, ...], ...]  # of every position: what the model itself makes of its state


class StatesReadingAnswer(Wire):
    predicts: Predicts
    cells: tuple[tuple[Likely, ...], ...]  # of every state
