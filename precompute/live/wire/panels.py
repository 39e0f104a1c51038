"""What the panels of a run answer: evolution, attention, patterns, neurons, coverage, attribution."""

from typing import Literal

from precompute.live.wire.shared import Likely, Scored, Wire

ComparedWith = Literal["mean", "none"]  # what a logit is compared with: the mean over all tokens, or nothing
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
