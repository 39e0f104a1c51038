"""Define what a worker answers, as plain data: each answer is a part of a page's JSON. A worker knows tokens by their
ids; the server adds their texts, and what else an index stores (the fields that are NotRequired)."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypeVar, get_args

from pydantic import Base64UrlBytes, Field
from typing_extensions import TypedDict

from lexiscope.precompute.live.wire.fields import End
from lexiscope.precompute.shape import Predicts, Side

PanelName = Literal[
    "evolution", "attention", "patterns", "sheet", "updates", "neurons", "heads", "positions",
    "coverage", "attribution", "sweep",
]  # fmt: skip
Baseline = Literal["pairs", "words"]  # what shuffled targets are: other pairs' targets, or random words

CHANCE: Any = Field(description="How many of all heads would reach such a mean rank if ranks were drawn at random")
CHANCE_OF_FIT: Any = Field(
    description="The best fit that as many random words of like frequency reach: 95 % of 200 draws stay below. null "
    "where vectors are not ranked by fit"
)
CHANCE_OF_SCORE: Any = Field(description="What the best neuron stays under for 95 % of random words of like frequency")
COMPUTED: Any = Field(description="Whether the worker made its tokens now, because its layer is not built yet")
COSINE_WITH_WORDS: Any = Field(description="Of the vector with the average of the words; null where the vector is 0")
FIT: Any = Field(
    description="Of the words with their nearest tokens (`widen=1`): the dot product with the vector over the standard "
    "deviation of the vector's scores of all tokens; null where that is 0"
)
LOGIT: Any = Field(description="By the model's own last steps, soft cap included; null where it predicts no tokens")
NOT_STORED: Any = Field(description="null where the index was built without it (`--kinds`, `--pairs 0`)")
RANK: Any = Field(description="Only where hubs are left out of the list: the place among all its entries, from 1")
SHARE: Any = Field(description="Of the sum of all terms; null where that is not positive")
UP: Any = Field(description="Of gated neurons: from the bottom of `up` where z is negative; null for others")

T = TypeVar("T")


# Tokens


class Token(TypedDict):
    id: int
    token: NotRequired[str]  # its text, which the server adds from the index


COSINE: Any = Field(
    description="Of stored lists of vectors under the lens cosine: the cosine of the vector with the token's centred "
    "embedding, score / norm, to four decimals"
)


class ScoredToken(Token):
    score: float
    cosine: Annotated[NotRequired[float], COSINE]
    rank: Annotated[NotRequired[int], RANK]


class LikelyToken(Token):
    p: float


TokenPair = TypedDict(
    "TokenPair", {"from": Token, "to": Token, "score": float, "rank": Annotated[NotRequired[int], RANK]}
)

# Probabilities; or cosines, where the model predicts no tokens. Those are called scores, as cosines are on other pages.
Predicted = Annotated[list[LikelyToken] | list[ScoredToken], Field(union_mode="left_to_right")]


def put_words(answer: T, texts: Sequence[str]) -> T:
    """Put the text of each token beside its id, everywhere in the answer, and return the answer."""
    parts: list[Any] = [answer]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if "id" in part:
                part["token"] = texts[part["id"]]
            parts += part.values()
        elif isinstance(part, list) and part and isinstance(part[0], dict | list):  # not a list of numbers
            parts += part
    return answer


class FirstTokens(TypedDict):
    """The first tokens of a vector in a layer that is not built, as the index will list them; the server puts them
    beside the vector."""

    kind: str
    layer: int
    index: int
    end: End
    tokens: list[int]


# Panels of a run


HeadList = Literal["looks_for", "found_by", "sends"]  # the lists of one position at one head
HEAD_LISTS: tuple[HeadList, ...] = get_args(HeadList)
OWN_LISTS = len(HEAD_LISTS)


class WordStep(TypedDict):
    """What the stream after one step of a run predicts of the chosen word, at the chosen position."""

    p: NotRequired[float]
    score: NotRequired[float]  # the cosine, where the model predicts no tokens
    rank: int
    logit: Annotated[float | None, LOGIT]


class Truth(TypedDict):
    """What the model predicts of the token that the text goes on with or, if it predicts masked tokens, has there."""

    position: int
    token: Token
    probability: float
    rank: int


class Right(TypedDict):
    hits: int  # how many of the true tokens were the likeliest
    of: int
    mean_log_p: float | None  # the mean natural logarithm of their probabilities; None if there are none


class FirstToken(TypedDict):
    """The token that stands first in every text of the model, and who put it in front of this one."""

    token: Token | None  # None where neither the tokenizer nor the checkpoint's files name one
    by: Literal["tokenizer", "asked", "nobody"]


class EvolutionRow(TypedDict):
    """What the stream after one step of a run predicts at every position, through the final norm and W_U."""

    layer: int
    after: Literal["embedding", "attention", "ff"]
    cells: list[Predicted]  # by position
    answer: list[float]  # by position: the probability, or cosine, of the token that the run ends with there
    answer_rank: list[int]  # by position: the rank of that token, 1 is the best
    word: WordStep


class HeadAttention(TypedDict):
    """The attention weights of one head."""

    layer: int
    head: int
    weights: list[list[float]]  # by query position: to all positions up to it; in an encoder to all


class Look(TypedDict):
    """Another position, which attends to this one or is attended to, and the attention weight."""

    position: int
    weight: float


class Message(Look):
    """What another position sends to this one, which attends to it, as tokens."""

    tokens: list[ScoredToken]


class HeadPattern(TypedDict):
    """What one head of the chosen layer looks for, is found by and sends at the chosen position, as words."""

    head: int
    pattern: list[ScoredToken]  # what the position's own query looks for
    found_by: list[ScoredToken]  # what would find the position's own key
    found_from: Look | None  # the other position that looks at this one most; None if no other sees it
    message: list[ScoredToken]  # what the position sends to those that attend to it
    messages: list[Message]  # what arrives from the positions that it attends to most


class TokenPattern(TypedDict):
    """What one position of the text looks for, is found by and sends at the chosen head, as words."""

    position: int
    pattern: list[ScoredToken]
    looks_at: Look  # the position that it attends to most
    found_by: list[ScoredToken]
    found_from: Look | None
    message: list[ScoredToken]


class SheetHead(TypedDict):
    """One head at one position of the text."""

    layer: int
    head: int
    position: int
    looks_for: list[ScoredToken]  # the pattern of `HeadPattern`
    found_by: list[ScoredToken]
    attends: Look  # the position that it attends to most
    sends: list[ScoredToken]  # the message of this position
    message: float  # the length of this position's message
    moved: float  # the length of the message of the position that it attends to, times the weight


class SheetNeuron(TypedDict):
    """One of the strongest neurons of a layer, over the whole text."""

    layer: int
    neuron: int
    end: End  # the end of its value's list that its coefficient at the peak promotes
    coefficients: list[float]  # by position
    peak: int  # where the coefficient is largest; not the first position, unless it fires only there
    strength: float  # |coefficient| there, times the value's norm
    adds: float  # what it adds to the logit of the chosen word at the chosen position
    key: Annotated[NotRequired[list[Token] | None], NOT_STORED]
    value: Annotated[NotRequired[list[Token] | None], NOT_STORED]  # the first tokens at that end


class Sheet(TypedDict):
    """Every head at every position, and the strongest neurons of every layer."""

    heads: list[SheetHead]  # by layer, head and position
    neurons: list[SheetNeuron]  # by layer, strongest first
    total: dict[Literal["heads", "neurons"], int]  # how many rows there are


class ActiveNeuron(TypedDict):
    layer: int
    neuron: int
    coefficient: float
    strength: float  # |coefficient| times the value's norm
    first_only: bool  # fires on the first token much more than anywhere else
    end: End  # the end of its value's list that has the tokens which this coefficient promotes
    key: Annotated[NotRequired[list[Token] | None], NOT_STORED]
    value: Annotated[NotRequired[list[Token] | None], NOT_STORED]  # the first tokens at that end
    computed: Annotated[NotRequired[bool], COMPUTED]


class UpTokens(TypedDict):
    """A gated neuron's second input: the tokens on which it turns positive, and those on which it turns negative."""

    top: Annotated[list[Token] | None, NOT_STORED]
    bottom: Annotated[list[Token] | None, NOT_STORED]


class ChosenNeuron(ActiveNeuron):
    """The neuron that was asked about."""

    rank: int  # among the neurons of its layer by strength at the chosen position; 1 is the strongest
    coefficients: list[float]  # by position
    up: NotRequired[UpTokens | None]  # None where neurons are not gated


class TextNeuron(ActiveNeuron):
    """The activity of a neuron over the whole text; its coefficient, strength and end are those at its peak."""

    position: int  # where it is largest; not the first position, unless it fires only there
    coefficients: list[float]  # by position


class Update(TypedDict):
    """What attention, FF or one head added to the stream at the chosen position; in an encoder, before the norm."""

    layer: int
    of: Literal["attention", "ff", "head"]
    head: int | None
    position: int
    norm: float
    share: float  # of the length of the stream before it
    cosine: float  # with the stream before it
    top: list[ScoredToken]
    bottom: list[ScoredToken]
    changes: bool | None  # whether another token leads at the position after this step; None for heads
    changed: int | None  # at how many positions another token leads
    before: Token | None  # the token that leads at the position before this step
    after: Token | None


class HeadSummary(TypedDict):
    """Where a head looked in a run, how much it moved the stream, and of what kind its lists are: means over the text
    without its first position."""

    layer: int
    head: int
    first: float  # the share of attention on the first position
    entropy: float  # of the attention weights, in nats
    distance: float  # how many positions away the head looks
    moves: float  # the length of what it wrote, as a share of that of the stream before
    rests: bool  # moves next to nothing
    self: dict[HeadList, float]  # the share of positions whose own word is in the list
    repeats: dict[HeadList, float]  # the share of the list that is also in those of half of the other positions
    letter: dict[HeadList, float]  # the share of the list that begins with the letter of the position's own word
    repeated: dict[HeadList, list[Token]]  # the words that repeat most, if there are any


class PositionShares(TypedDict):
    """Where a head looks: mean shares of its weights over all positions but the first."""

    first: float  # on the first position
    previous: float  # on the position before
    same: float  # on the position itself
    next: float | None  # on the position after; a last one counts 0. None in a decoder, which sees none


class ScoreParts(TypedDict):
    """What a head's scores consist of where positions are learned: products of the query's part, named first, with the
    key's. Their sum is the score."""

    position_position: float
    position_content: float
    content_position: float
    content_content: float
    biases: float  # all terms with a bias of queries or keys


class PositionsOfHead(PositionShares):
    """Where one head would look by position alone, and where it looks in this run."""

    layer: int
    head: int
    words: str | None  # which of these has at least half: "previous token", ...; None: none
    attention: PositionShares  # in this run
    parts: ScoreParts | None  # shares of the variance of its scores over keys, sum 1; None: positions are not learned


class DistanceScore(TypedDict):
    """A head at one distance between query and key."""

    distance: int
    score: float  # of the mean query with the mean key
    alone: float  # the mean weight at this distance by position alone
    attention: float  # in this run


class KeyScore(ScoreParts):
    """The score of one key for the chosen position."""

    position: int  # the key's
    score: float
    weight: float  # of attention


class ChosenPositions(TypedDict):
    """The head that was asked about."""

    layer: int
    head: int
    distances: list[DistanceScore] | None  # from 0 on, where positions are rotary
    keys: list[KeyScore] | None  # of all positions that the chosen one sees, where positions are learned


class Positions(TypedDict):
    by: Literal["position", "distance"]  # whether positions are learned, or rotary
    even: float | None  # each share if attention were spread evenly; None: the text has one token
    heads: list[PositionsOfHead]  # of all layers; none where the text has one token
    chosen: ChosenPositions | None  # None unless a head was asked about


class CoverageRow(TypedDict):
    """The paper's R_k at the chosen position: the share of the hidden state's first k tokens that are also among the
    first tokens of an active vector."""

    layer: int
    kind: str  # ff_key, ff_value, w_v or w_o
    covered: float
    shuffled: float | None  # mean share with the hidden states of other positions; None if there are none
    shuffled_sd: float | None  # standard deviation of those shares; None if there are fewer than two
    others: int  # how many other positions there are
    as_covered: int  # how many of them are covered at least as much


class NamedPart(TypedDict):
    """A head or a neuron, with its words."""

    layer: int
    head: int | None
    neuron: int | None
    end: End | None  # the end of a neuron's value that has the tokens which its coefficient at the position promotes
    pairs: Annotated[NotRequired[list[TokenPair] | None], NOT_STORED]  # the first pairs of words of a head's VO
    value: Annotated[NotRequired[list[Token] | None], NOT_STORED]  # the first tokens of a neuron's value
    computed: Annotated[NotRequired[bool], COMPUTED]


class PartTerm(NamedPart):
    """A head or a neuron, and what it added to the logit."""

    term: float
    share: Annotated[float | None, SHARE]
    attends: list[Look] | None  # the positions that a head attends to most; None for a neuron
    coefficient: float | None  # the neuron's coefficient; None for a head
    first_only: bool | None  # whether a neuron fires on the first token much more than anywhere else


class LayerTerms(TypedDict):
    layer: int
    heads: list[float]  # the term of each head
    attention_bias: float  # the term of the bias of W_O, and of the bias of a norm behind it
    neurons: float  # the sum of all neurons' terms
    ff_bias: float
    attention: float  # the sum of the terms of all heads and of the bias
    ff: float  # the sum of the terms of all neurons and of the bias


class NamedTerm(TypedDict):
    part: str
    term: float


class Attribution(TypedDict):
    """What each part of a run added to a token's logit at the position, with the scales of all norms fixed. The terms
    sum to logit - baseline."""

    token: Token
    against: Token | Literal["mean", "none"]
    logit: float  # before a soft cap; the cosine, where the model predicts no tokens
    baseline: float  # the logit of `against`: that of another token, the mean of all tokens, or 0
    sums: list[NamedTerm]  # all terms, added up by kind of part
    layers: list[LayerTerms]
    raises: list[PartTerm]  # the largest terms of heads and neurons
    lowers: list[PartTerm]  # the most negative terms
    path: list[PartTerm]  # the heads and neurons with the largest and the most negative terms, some of each kind


SWEEP_NAMED = 50  # parts of a sweep that have their words: those with the largest changes


class SweptPart(NamedPart):
    """A head or a neuron that was switched off at all positions."""

    change: float  # of the log probability of the token, without this part
    direct: float  # its term of the attribution
    strength: float | None  # of a neuron, over the text


class Sweep(TypedDict):
    """What switching heads or neurons off, one by one, changes at the position, beside their direct effects."""

    token: Token
    against: Token | Literal["mean", "none"]  # what direct effects are compared with
    log_p: float  # with all parts; the cosine, where the model predicts no tokens, as in all changes
    over: Literal["heads", "neurons"]
    of: int  # how many parts were switched off
    cut: float | None  # the least strength of the neurons; None for heads
    spearman: float | None  # the rank correlation of changes and direct effects: near -1 if these told importance
    parts: list[SweptPart]  # the largest change first


class SecondText(TypedDict):
    """The run of the second text, without changes."""

    tokens: list[Token]
    position: int  # the chosen position or, where the text has none such, the one that is usually shown
    prediction: Predicted
    evolution: NotRequired[list[EvolutionRow] | None]


class MeanOver(TypedDict):
    """What the means of replaced heads and neurons are over."""

    means: Literal["prompt", "texts"]
    positions: int


Beside = TypedDict("Beside", {"from": NotRequired[SecondText | None], "mean_over": NotRequired[MeanOver | None]})


class PromptAnswer(Beside):
    predicts: Predicts  # what the numbers `p` of prediction and evolution are
    tokens: list[Token]
    bos: FirstToken
    position: int
    layer: int
    prediction: Predicted  # the prediction at the chosen position
    untouched: Predicted  # the same without the interventions; empty if there are none
    lists: list[FirstTokens]  # first tokens of neurons in layers that are not built
    evolution: NotRequired[list[EvolutionRow] | None]
    evolution_untouched: NotRequired[list[EvolutionRow] | None]
    word: NotRequired[Token | None]  # the word of each step: the one asked about, or the answer
    truth: NotRequired[list[Truth] | None]  # None where the model predicts no tokens
    right: NotRequired[Right | None]
    appears: NotRequired[int | None]  # the first layer after which the answer leads at the position, to the end
    attention: NotRequired[list[HeadAttention] | None]
    looks: NotRequired[list[list[list[float]]] | None]  # by layer and head: attention weights from the position
    patterns: NotRequired[list[HeadPattern] | None]
    patterns_by_token: NotRequired[list[TokenPattern] | None]
    sheet: NotRequired[Sheet | None]
    neurons: NotRequired[list[ActiveNeuron] | None]  # neurons at the position, some of each layer, strongest first
    neuron: NotRequired[ChosenNeuron | None]  # the neuron that was asked about, if there is one
    activations: NotRequired[list[TextNeuron] | None]  # the neurons whose rows were asked for
    strongest: NotRequired[list[TextNeuron] | None]  # of the whole text; then those that fire on its first token
    updates: NotRequired[list[Update] | None]
    heads: NotRequired[list[HeadSummary] | None]  # of all layers
    letter_chance: NotRequired[float | None]  # what `letter` of the heads would be with lists of random tokens
    first_even: NotRequired[float | None]  # what `first` of the heads would be if attention were spread evenly
    positions: NotRequired[Positions | None]
    coverage: NotRequired[list[CoverageRow] | None]
    attribution: NotRequired[Attribution | None]
    sweep: NotRequired[Sweep | None]


# Words


class WordUsed(TypedDict):
    """A word, and the tokens by which the model writes it."""

    word: str
    tokens: list[Token]  # one token, or several pieces


class TermUsed(WordUsed):
    weight: float


class SeedResult(TypedDict):
    kind: str
    layer: int
    index: int
    score: float  # the score with the mean of the terms
    scores: list[float]  # the score with each term by itself
    fit: Annotated[float | None, FIT]
    cosine: Annotated[float | None, COSINE_WITH_WORDS]


class HeadReading(TypedDict):
    layer: int
    head: int
    writes: list[ScoredToken]  # first tokens of the words times W_V W_O
    seeks: list[ScoredToken]  # first tokens of the words times W_Q W_Kᵀ
    writes_alike: float | None  # the mean cosine between the tokens' centred embeddings; None if there are not two
    seeks_alike: float | None


class SeedsAnswer(TypedDict):
    terms: list[TermUsed]
    nearest: list[ScoredToken]  # tokens, by cosine with the average
    results: list[SeedResult]
    heads: list[HeadReading]  # what heads make of the average; empty unless asked for
    lists: list[FirstTokens]  # first tokens of results in layers that are not built
    rank: int | None  # rank of the vector that was asked for among all of its kind, from 1
    near: dict[Side, list[int]]  # for vectors that read or write, the tokens nearest to the words, nearest first
    chance: Annotated[float | None, CHANCE_OF_FIT]


class PairUsed(TypedDict):
    source: WordUsed
    target: WordUsed
    ranked: Token  # the token whose rank counts: of a target of several pieces, the first


class HeadRelation(TypedDict):
    layer: int
    head: int
    rank: float  # mean over the pairs of the target's rank among all tokens, 1 is the best
    score: float  # mean score over the pairs
    ranks: list[int]  # the rank of each pair's target
    scores: list[float]
    rank_from_bottom: float  # mean rank from the bottom: small where the head suppresses the target
    shuffled: float  # the mean rank of other pairs' targets, or of random words
    identity: float  # the mean rank of the sources themselves
    chance: Annotated[float, CHANCE]  # how many heads would reach this mean rank by chance
    shuffled_from_bottom: float
    identity_from_bottom: float
    chance_from_bottom: Annotated[float, CHANCE]


class RelationAnswer(TypedDict):
    pairs: list[PairUsed]
    heads: list[HeadRelation]  # all of them, best mean rank first
    shuffled_with: Baseline


class NeuronTransition(TypedDict):
    layer: int
    neuron: int
    end: End  # top: having read the sources, the neuron adds the targets; bottom: it takes them away
    score: float  # mean over the pairs of the smallest z of what the neuron reads and writes
    shuffled: float  # the same with other pairs' targets, or with random words
    key_rank: float  # mean over the pairs of the source's rank in the key, among all tokens, 1 is the best
    up_rank: Annotated[float | None, UP]
    value_rank: float  # of the target's in the value, from the bottom where the neuron adds or takes away the bottom
    key_ranks: list[int]  # the rank of each pair's source
    up_ranks: Annotated[list[int] | None, UP]
    value_ranks: list[int]
    key_z: list[float]
    up_z: Annotated[list[float] | None, UP]
    value_z: list[float]


class TransitionAnswer(TypedDict):
    pairs: list[PairUsed]
    neurons: list[NeuronTransition]  # the best of either end, largest score first
    shuffled_with: Baseline
    chance: Annotated[float | None, CHANCE_OF_SCORE]


class ThroughHeadsAnswer(TypedDict):
    groups: list[list[WordUsed]]
    heads: list[list[HeadReading]]  # by group: all heads, in the order of the layers asked for


# Readings


class ReadingAnswer(TypedDict):
    top: list[ScoredToken]
    bottom: list[ScoredToken]


class PairsReadingAnswer(TypedDict):
    top: list[TokenPair]
    bottom: list[TokenPair]


# States


class StatesAnswer(TypedDict):
    states: Base64UrlBytes  # (positions, d_model) float32, little-endian, row after row
    predicts: Predicts  # what the numbers `p` of `cells` are
    tokens: list[Token]
    layer: int
    cells: list[Predicted]  # by position: what the model itself predicts from its state


class Ranked(TypedDict):
    score: float
    rank: int  # among all tokens; 1 is the largest


class BeforehandAnswer(TypedDict):
    bias: Annotated[Ranked | None, Field(description="b · W_U, b the final norm's bias; null where it has none")]
    mean_state: Annotated[
        Ranked | None, Field(description="The logit at the mean final state of some sentences; null in an encoder")
    ]
    positions: int  # of how many positions the mean is


class StatesReadingAnswer(TypedDict):
    predicts: Predicts
    cells: list[Predicted]  # by state: what the model predicts from it
