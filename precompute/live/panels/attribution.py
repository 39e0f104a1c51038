"""The panel `attribution`: what every head and every neuron added to one token's logit, at one position of a run.

A logit is a sum over all that was written into the stream, if every norm on the way keeps the scale that it has in this
run; the other step of a LayerNorm, taking the mean away, is linear already. So, if g is the row of W_U carried back
through the norms behind a layer, and z_h are the mixed values of head h:

    logit = g · embedding + Σ heads g · z_h W_O^h + Σ neurons coefficient (g · value) + the biases' terms

- In most decoders only the final norm is on the way. Where what attention or FF writes is normed before it is added to
  the stream (Gemma 2), that norm's scale is fixed as well; in an encoder, every later norm's.
- The head of an encoder has an activation before W_U: the factor by which it changes each of its inputs (activation /
  input) is fixed like a scale.
- A soft cap of logits is not included: it comes after the sum.

These are direct effects: what a head or neuron changes in later layers is part of those layers' terms. A number that is
added to all logits changes no prediction: unless asked otherwise, the mean row is subtracted from the row of W_U, so
that terms sum to the logit less the mean of all logits.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.first_tokens import ListEnd, promoted_end
from lexiscope.precompute.live.panels.panel import Fields, Panel
from lexiscope.precompute.live.panels.records import Record
from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.weights import Norm, Weights
from lexiscope.precompute.live.wire.answers import Attribution, LayerTerms, NamedPart, NamedTerm, PartTerm
from lexiscope.precompute.live.wire.grammar import ComparedWith, Word
from lexiscope.precompute.live.words import Words
from lexiscope.precompute.weights.architectures.family import Part

LISTED = 25  # heads and neurons that raise the logit most, and as many that lower it most
PATH_RAISES, PATH_LOWERS = 5, 2  # heads, and as many neurons, of `path` that raise the logit most, or lower it most
ATTENDED = 3  # positions that a head attends to most, of each listed head


def target(words: Words, word: Word) -> int:
    """Return the token that a word means; raise BadRequest if the word has several tokens, NotFound if the id does not
    exist."""
    if word.token is not None:
        check_number("token", word.token, len(words.writes.W))
        return word.token
    tokens = words.tokens(word.word)
    if len(tokens) > 1:
        pieces = ", ".join(f"{words.tokenizer.decode([token])!r} ({token})" for token in tokens)
        raise BadRequest(f"{word.word!r} is {len(tokens)} tokens, {pieces}: give one of them, by its id")
    return tokens[0]


@dataclass
class Reader:
    """A number that depends linearly on a state x: direction · x. If x is the output of a norm, `through` changes the
    direction so that it applies to the norm's input."""

    direction: Tensor  # (d_model,)

    def through(self, norm: Norm, x: Tensor) -> float:
        """Change the direction from one for the output of a norm to one for its input x (d_model,), with the norm's
        scale fixed; return the term of the norm's bias."""
        bias = 0.0 if norm.bias is None else float(self.direction @ norm.bias)
        direction = self.direction * norm.gain
        direction = direction - direction.mean() if norm.centres else direction
        self.direction = direction * norm.scale(x)
        return bias


@dataclass(frozen=True)
class Terms:
    """The terms of a token's logit at the position."""

    total: float  # the sum of all terms: the logit less the baseline
    baseline: float
    final_bias: float
    unembedding_bias: float
    embedded: Tensor  # (d_model,) the direction whose product with the embedding is its term
    heads: Tensor  # (n_layers, n_heads)
    neurons: Tensor  # (n_layers, d_mlp)
    layers: list[LayerTerms]


def terms_of(w: Weights, record: Record, token: int, against: int | ComparedWith) -> Terms:
    last = record.steps[-1]
    reader, final_bias, unembedding_bias = _unembedding(w, last, token, against)
    total = float(reader.direction @ last) + final_bias + unembedding_bias
    baseline = 0.0
    if against != "none":
        plain, *biases = _unembedding(w, last, token, "none")
        baseline = float(plain.direction @ last) + sum(biases) - total
    heads, neurons = [], []
    layers: list[LayerTerms] = []
    for layer in reversed(range(w.shape.n_layers)):
        before = record.steps[2 * layer : 2 * layer + 2]  # the stream before attention, and before FF
        of_neurons, ff_bias = _part_terms(w, reader, layer, "ff", record.coefficients[layer], before[1])
        channels, attention_bias = _part_terms(w, reader, layer, "attention", record.mixed[layer].flatten(), before[0])
        of_heads = channels.view(w.shape.n_heads, w.shape.d_head).sum(dim=1)
        heads.append(of_heads)
        neurons.append(of_neurons)
        sum_of_neurons = float(of_neurons.sum())
        layers.append({
            "layer": layer, "heads": of_heads.tolist(), "attention_bias": attention_bias, "neurons": sum_of_neurons,
            "ff_bias": ff_bias, "attention": sum(of_heads.tolist()) + attention_bias, "ff": sum_of_neurons + ff_bias,
        })  # fmt: skip
    layers.reverse()
    by_layer = torch.stack(heads[::-1]), torch.stack(neurons[::-1])
    return Terms(total, baseline, final_bias, unembedding_bias, reader.direction, *by_layer, layers)


def attribution(w: Weights, record: Record, token: int, against: int | ComparedWith) -> Attribution:
    terms = terms_of(w, record, token, against)
    embedded, positions = float(terms.embedded @ record.steps[0]), None
    if w.shape.causal and w.shape.positions == "learned":
        of_token = float(terms.embedded @ w.W_E[record.tokens[record.position]]) * w.model.embedding_scale
        embedded, positions = of_token, embedded - of_token
    layers = terms.layers
    sums = {
        "embedding": embedded,
        "positions": positions,
        "heads": sum(sum(row["heads"]) for row in layers),
        "attention_bias": sum(row["attention_bias"] for row in layers),
        "neurons": sum(row["neurons"] for row in layers),
        "ff_bias": sum(row["ff_bias"] for row in layers),
        "final_bias": terms.final_bias,
        "unembedding_bias": terms.unembedding_bias,
    }
    raises, lowers = (_largest(record, terms, sign, LISTED)[:LISTED] for sign in (1, -1))
    path = [
        part for sign, each in ((1, PATH_RAISES), (-1, PATH_LOWERS)) for part in _largest(record, terms, sign, each)
    ]
    return {
        "token": {"id": token},
        "against": {"id": against} if isinstance(against, int) else against,
        "logit": terms.total + terms.baseline,
        "baseline": terms.baseline,
        "sums": [NamedTerm(part=part, term=term) for part, term in sums.items() if term is not None],
        "layers": layers,
        "raises": raises,
        "lowers": lowers,
        "path": path,
    }


def _unembedding(w: Weights, x: Tensor, token: int, against: int | ComparedWith) -> tuple[Reader, float, float]:
    """Return the reader that computes a token's logit from the last layer's stream x (d_model,), and the terms of two
    biases: of those before W_U, and of W_U's own."""
    row, bias = w.unembedding(token)
    if against != "none":
        other, its_bias = w.mean_unembedding if against == "mean" else w.unembedding(against)
        row, bias = row - other, bias - its_bias
    reader, transform = Reader(row), w.transform()
    if not w.model.predicts:
        reader.direction = row / torch.linalg.vector_norm(x).clamp(min=1e-30)
        return reader, 0.0, bias
    if transform is None:
        return reader, reader.through(w.norm_numbers("final"), x), bias
    linear, activation, norm = transform
    read = linear(x)
    active = activation(read)
    before = reader.through(norm, active)
    gated = reader.direction * torch.where(read == 0, 0.0, active / read)
    reader.direction = gated @ linear.weight
    return reader, before + float(gated @ linear.bias), bias


def _part_terms(
    w: Weights, reader: Reader, layer: int, part: Part, weights: Tensor, before: Tensor
) -> tuple[Tensor, float]:
    """Return the terms of attention's channels or of FF's neurons (count,), which wrote their vectors times `weights`
    (count,), and the term of their biases. `before` (d_model,) is the stream to which these vectors were added. If the
    sum goes through a norm, the reader is changed to read the stream before that norm."""
    kind = "ff_value" if part == "ff" else "w_o"
    vectors, bias = w.vectors(kind, layer), w.bias(kind, layer)
    after_sum, of_written = w.norm_of_sum(layer, part), w.norm_of_written(layer, part)
    written = w.written(layer, part, weights) if after_sum or of_written else torch.empty(0)
    constant = reader.through(after_sum, before + written) if after_sum else 0.0
    local = Reader(reader.direction)
    if of_written:
        constant += local.through(of_written, written)
    if bias is not None:
        constant += float(local.direction @ bias)
    return weights * (vectors @ local.direction), constant


def _largest(record: Record, terms: Terms, sign: int, most: int) -> list[PartTerm]:
    """Return up to `most` heads, and as many neurons, with the largest terms, or with the most negative ones."""
    every = [_head_term(record, *term, terms.total) for term in _largest_terms(terms.heads, sign, most)]
    every += [_neuron_term(record, *term, terms.total) for term in _largest_terms(terms.neurons, sign, most)]
    return sorted(every, key=lambda part: -sign * part["term"])


def _largest_terms(terms: Tensor, sign: int, most: int) -> Iterator[tuple[int, int, float]]:
    """Yield layer, number and term of the largest terms of this sign; terms (n_layers, count)."""
    best = (sign * terms.flatten()).topk(min(most, terms.numel()))
    for size, position in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        if size > 0:
            layer, number = divmod(position, terms.shape[1])
            yield layer, number, sign * size


def _head_term(record: Record, layer: int, head: int, term: float, total: float) -> PartTerm:
    weights = record.looks[layer][head]
    best = weights.topk(min(ATTENDED, len(weights)))
    looks = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "layer": layer, "head": head, "neuron": None, "term": term, "share": _share(term, total),
        "attends": [{"position": position, "weight": weight} for position, weight in looks if weight > 0],
        "coefficient": None, "end": None, "first_only": None,
    }  # fmt: skip


def _neuron_term(record: Record, layer: int, neuron: int, term: float, total: float) -> PartTerm:
    coefficient = float(record.coefficients[layer][neuron])
    return {
        "layer": layer, "head": None, "neuron": neuron, "term": term, "share": _share(term, total), "attends": None,
        "coefficient": coefficient, "end": promoted_end(coefficient),
        "first_only": bool(record.first_only(layer)[neuron]),
    }  # fmt: skip


def _share(term: float, total: float) -> float | None:
    return term / total if total > 0 else None


def cost(w: Weights, *_: object) -> float:
    """Return the cost: every vector that writes is multiplied once."""
    return w.shape.n_layers * (w.shape.count("w_o") + w.shape.count("ff_value")) * w.shape.d_model


def _vectors(answer: Fields, _: bool) -> Iterator[ListEnd]:
    found: Attribution = answer["attribution"]
    yield from ends_of_values((*found["raises"], *found["lowers"], *found["path"]))


def ends_of_values(parts: Iterable[NamedPart]) -> Iterator[ListEnd]:
    """Yield the lists that show what the neurons among these parts write."""
    for part in parts:
        if part["neuron"] is not None and part["end"]:
            yield ListEnd("ff_value", part["layer"], part["neuron"], part["end"])


PANEL = Panel(
    name="attribution",
    keeps=frozenset({"steps", "mixed", "looks", "coefficients", "peaks"}),
    answer=lambda run: {"attribution": attribution(run.w, run.record, run.token, run.against)},
    cost=cost,
    vectors=_vectors,
)
