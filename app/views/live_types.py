"""The shapes of live pages: what a worker answered, with its token ids turned into tokens and links' numbers.
Filling them is for views/; what a worker is asked and answers is in wire.py."""

from typing_extensions import TypedDict

from app.views.view_types import ScoredView, TokenView, View


class WordView(View):
    """A word as the model has it: one token, or several pieces."""

    word: str
    tokens: tuple[TokenView, ...]


class SeedTerm(WordView):
    weight: float


class SeedPlace(TypedDict):
    """A vector that the seed words found."""

    kind: str
    layer: int
    index: int
    head: int | None
    subhead: int | None
    score: float  # with the average
    scores: tuple[float, ...]  # with each word by itself
    top: tuple[TokenView, ...]  # empty while its layer is not built


class SeedHead(TypedDict):
    """What a head would do with the average: write it as, and look for."""

    layer: int
    head: int
    writes: tuple[ScoredView, ...]
    seeks: tuple[ScoredView, ...]


class SeedsPageView(View):
    model: str
    words: str
    kind: str
    seeds: tuple[SeedTerm, ...]
    nearest: tuple[ScoredView, ...]
    results: tuple[SeedPlace, ...]
    heads: tuple[SeedHead, ...]  # empty unless asked for


class RelationPair(View):
    source: WordView
    target: WordView
    ranked: TokenView  # the token whose rank counts: of a target of several pieces, the first


class RelationHead(TypedDict):
    layer: int
    head: int
    rank: float  # mean over the pairs; 1 is the best
    score: float
    ranks: tuple[int, ...]
    scores: tuple[float, ...]
    rank_from_bottom: float


class RelationView(View):
    model: str
    lens: str
    pairs: tuple[RelationPair, ...]
    heads: tuple[RelationHead, ...]  # best mean rank first


class LikelyView(TokenView):
    p: float


class EvolutionView(TypedDict):
    """The stream after a step, at every position, read as a prediction."""

    layer: int
    after: str  # embedding, attention or ff
    cells: tuple[tuple[LikelyView, ...], ...]  # by position
    answer: tuple[float, ...]  # by position: how likely the token is that the run ends up with there
    answer_rank: tuple[int, ...]


class AttentionView(TypedDict):
    layer: int
    head: int
    weights: tuple[tuple[float, ...], ...]  # by position that attends, up to itself


class MessageView(TypedDict):
    position: int
    weight: float
    tokens: tuple[ScoredView, ...]


class PatternView(TypedDict):
    head: int
    pattern: tuple[ScoredView, ...]
    messages: tuple[MessageView, ...]


class ActiveView(TypedDict):
    layer: int
    neuron: int
    coefficient: float
    strength: float
    first_only: bool
    key: tuple[TokenView, ...]
    value: tuple[TokenView, ...]  # of the end to which its coefficient pushes
    end: str


class UpView(TypedDict):
    """A gated neuron's second input: on what it turns positive, and on what negative."""

    top: tuple[TokenView, ...]
    bottom: tuple[TokenView, ...]


class ChosenView(ActiveView):
    """A neuron that was asked about."""

    up: UpView | None  # None where neurons are not gated
    rank: int  # among the neurons of its layer, by strength
    coefficients: tuple[float, ...]  # by position


class CoverageView(TypedDict):
    """R_k: of the hidden state's first tokens, the share that the active vectors of a kind list."""

    layer: int
    kind: str
    covered: float
    shuffled: float | None  # the same vectors, the hidden states of other positions; None of a single token


class ChangeView(TypedDict):
    """What was changed in a run: a neuron's coefficient, or a head switched off."""

    layer: int
    neuron: int | None
    head: int | None
    value: float


class PromptView(View):
    model: str
    text: str
    panel: str
    convention: str
    position: int | None  # None while there is no text
    layer: int | None
    head: int | None  # of that layer, if one was asked about
    changes: tuple[ChangeView, ...]
    tokens: tuple[TokenView, ...]
    prediction: tuple[LikelyView, ...]
    untouched: tuple[LikelyView, ...]  # without the changes; empty if there are none
    appears: int | None  # the layer from which on the answer leads
    evolution: tuple[EvolutionView, ...] | None = None
    evolution_untouched: tuple[EvolutionView, ...] | None = None
    attention: tuple[AttentionView, ...] | None = None
    patterns: tuple[PatternView, ...] | None = None
    neurons: tuple[ActiveView, ...] | None = None
    neuron: ChosenView | None = None  # if one was asked about
    coverage: tuple[CoverageView, ...] | None = None
