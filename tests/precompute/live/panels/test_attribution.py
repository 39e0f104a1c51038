"""What heads and neurons added to a logit: terms sum to the logits of `transformers`, each equals what its own output
gives through the modules behind it, with their scales fixed."""

from typing import Any

import pytest
import torch
from torch import Tensor

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.panels.records import FIRST_ONLY_FACTOR
from lexiscope.precompute.live.wire.answers import Attribution
from lexiscope.precompute.live.wire.asks import PromptAsk
from lexiscope.precompute.live.wire.grammar import Word
from tests.precompute.live.reference import TEXT, Case, changed
from tests.precompute.live.test_run import TOUCHES, touched

TOLERANCE = 1e-3


def sum_of(found: Attribution) -> float:
    """Add up the terms, those of layers from their rows."""
    rows = [row["attention"] + row["ff"] for row in found["layers"]]
    assert rows == pytest.approx(
        [sum(row["heads"]) + row["attention_bias"] + row["neurons"] + row["ff_bias"] for row in found["layers"]]
    )
    of_layers = ("heads", "attention_bias", "neurons", "ff_bias")
    terms = {each["part"]: each["term"] for each in found["sums"]}
    assert sum(terms[part] for part in of_layers) == pytest.approx(sum(rows), abs=1e-6)
    return sum(term for part, term in terms.items() if part not in of_layers) + sum(rows)


def asked(case: Case, text: str = TEXT, **fields: Any) -> tuple[Attribution, int]:
    answer = case.ask(text, panel=("attribution",), **fields)
    assert answer["attribution"] is not None
    return answer["attribution"], answer["position"]


def scores(case: Case, tokens: tuple[int, ...], position: int) -> Tensor:
    """What a model's last step gives at a position (d_vocab,): logits, or cosines where it predicts no tokens."""
    run = case.net.run(tokens)
    if run.logits is not None:
        return run.logits[position]
    x, W = run.streams[case.engine.shape.n_layers - 1, "ff"][position], case.model.W_U
    return torch.cosine_similarity(x, W - W.mean(dim=0), dim=1)


def capped(case: Case, logit: float) -> float:
    cap = getattr(case.net.net.config, "final_logit_softcapping", None)
    return logit if cap is None else float(cap * torch.tanh(torch.tensor(logit / cap)))


@pytest.mark.parametrize("position", [0, 4, None])
def test_the_terms_sum_to_the_logit(every: Case, position: int | None) -> None:
    found, at = asked(every, position=position, against="none")
    expected = scores(every, every.engine.words.prompt(TEXT), at)
    assert found["token"]["id"] == int(expected.argmax())
    assert found["baseline"] == 0
    assert sum_of(found) == pytest.approx(found["logit"], abs=TOLERANCE)
    assert capped(every, sum_of(found)) == pytest.approx(float(expected[found["token"]["id"]]), abs=TOLERANCE)


@pytest.mark.parametrize("against", ["mean", 7])
def test_compared_with_others(every: Case, against: str | int) -> None:
    """A difference of logits is a sum of differences; of another token than the predicted one, in a changed run."""
    other = Word(word="#7", token=7) if against == 7 else against
    found, at = asked(every, token=Word(word="#11", token=11), against=other, **changed(TOUCHES))
    with touched(every.net, TOUCHES):
        expected = scores(every, every.engine.words.prompt(TEXT), at)
    assert (found["token"], found["against"]) == ({"id": 11}, {"id": 7} if against == 7 else against)
    assert capped(every, found["logit"]) == pytest.approx(float(expected[11]), abs=TOLERANCE)
    if not getattr(every.net.net.config, "final_logit_softcapping", None):
        baseline = expected.mean() if against == "mean" else expected[7]
        assert found["baseline"] == pytest.approx(float(baseline), abs=TOLERANCE)
    assert sum_of(found) == pytest.approx(found["logit"] - found["baseline"], abs=TOLERANCE)


HEAD_NORMS = {
    "bert": ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm"),
    **dict.fromkeys(("roberta", "xlm-roberta"), ("lm_head.dense", "lm_head.layer_norm")),
    "distilbert": ("vocab_transform", "vocab_layer_norm"),
}  # of encoders: what stands before and behind the activation of the head


class Frozen:
    """A net in which every norm keeps its scale, an encoder's head what its activation multiplies with, and attention
    and FF write what they wrote in one run: what is left is linear, and the path is direct."""

    def __init__(self, case: Case, tokens: tuple[int, ...], position: int) -> None:
        self.case, self.tokens, self.position = case, tokens, position
        net = case.net.net
        self.norms = [
            module for module in net.modules() if hasattr(module, "eps") or hasattr(module, "variance_epsilon")
        ]
        self.writes = [case.net.module(layer, part) for layer in range(3) for part in ("w_o", "ff_value")]
        head = HEAD_NORMS.get(net.config.model_type, ()) if case.engine.shape.predicts == "masked" else ()
        self.head = [net.get_submodule(name) for name in head]
        self.kept: dict[Any, tuple[Tensor, Tensor]] = {}

        def keep(module: Any, given: Any, output: Any) -> None:
            self.kept[module] = given[0].clone(), output.clone()

        self.plain = self._scores([(module, keep) for module in (*self.norms, *self.writes, *self.head)])

    def without(self, layer: int, part: str, written: Tensor) -> Tensor:
        """The scores (d_vocab,) if a part of a layer had not written this (d_model,) at the position."""
        left_out = self.case.net.module(layer, part)

        def frozen(module: Any, _: Any, __: Any) -> Tensor:
            output = self.kept[module][1].clone()
            if module is left_out:
                output.view(len(self.tokens), -1)[self.position] -= written
            return output

        def fixed_scale(module: Any, given: Any, output: Tensor) -> Tensor:
            bias = getattr(module, "bias", None)
            moved = output if bias is None else output - bias
            moved = moved * self._scale(module, given[0]) / self._scale(module, self.kept[module][0])
            return moved if bias is None else moved + bias

        hooks: list[tuple[Any, Any]] = [(module, frozen) for module in self.writes]
        hooks += [(module, fixed_scale) for module in self.norms]
        before = []
        if self.head:
            linear, norm = self.head
            ratio = self.kept[norm][0] / self.kept[linear][1]
            reads: list[Tensor] = []
            hooks.append((linear, lambda _, __, output: reads.append(output)))
            before.append((norm, lambda _, __: (reads[-1] * ratio,)))
        return self._scores(hooks, before)

    def _scale(self, module: Any, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True) if isinstance(module, torch.nn.LayerNorm) else x
        eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
        scale: Tensor = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
        return scale

    def _scores(self, after: list[tuple[Any, Any]], before: list[tuple[Any, Any]] = []) -> Tensor:  # noqa: B006
        handles = [module.register_forward_hook(hook) for module, hook in after]
        handles += [module.register_forward_pre_hook(hook) for module, hook in before]
        try:
            out = self.case.net.net(torch.tensor([self.tokens]))
        finally:
            for handle in handles:
                handle.remove()
        if hasattr(out, "logits"):
            scores: Tensor = out.logits[0, self.position]
            cap = getattr(self.case.net.net.config, "final_logit_softcapping", None)
            return scores if cap is None else torch.atanh(scores / cap) * float(cap)
        x, W = out.last_hidden_state[0, self.position], self.case.model.W_U
        self.length = getattr(self, "length", x.norm())
        cosines: Tensor = torch.nn.functional.normalize(W - W.mean(dim=0)) @ x / self.length
        return cosines


def test_each_term_is_the_direct_effect_of_its_part(every: Case) -> None:
    s, tokens = every.engine.shape, every.engine.words.prompt(TEXT)
    found, at = asked(every, against="none")
    run, net = every.run(tokens), Frozen(every, tokens, at)

    def effect(layer: int, part: str, written: Tensor) -> float:
        return float((net.plain - net.without(layer, part, written))[found["token"]["id"]])

    for layer, row in enumerate(found["layers"]):
        W_O, z = every.model.vectors(layer, "w_o"), run.mixed[layer][at]
        for head, term in list(enumerate(row["heads"]))[:2]:
            of_head = slice(head * s.d_head, (head + 1) * s.d_head)
            assert effect(layer, "w_o", z[of_head] @ W_O[of_head]) == pytest.approx(term, abs=TOLERANCE)
        values = every.model.vectors(layer, "ff_value")
        assert effect(layer, "ff_value", run.coefficients[layer][at] @ values) == pytest.approx(
            row["neurons"], abs=TOLERANCE
        )
    for part in [part for part in (*found["raises"][:3], *found["lowers"][:3]) if part["neuron"] is not None]:
        layer, neuron = part["layer"], part["neuron"]
        coefficient = run.coefficients[layer][at, neuron]
        value = every.model.vectors(layer, "ff_value")[neuron]
        assert part["coefficient"] == pytest.approx(float(coefficient), abs=1e-4)
        first, *others = run.coefficients[layer][:, neuron].abs().tolist()
        assert part["first_only"] == (first > 0 and first >= FIRST_ONLY_FACTOR * max(others))
        assert effect(layer, "ff_value", coefficient * value) == pytest.approx(part["term"], abs=TOLERANCE)


def test_the_largest_terms_are_listed_with_what_heads_look_at(every: Case) -> None:
    found, at = asked(every)
    run, s = every.run(every.engine.words.prompt(TEXT)), every.engine.shape
    heads = {(row["layer"], head): term for row in found["layers"] for head, term in enumerate(row["heads"])}
    for listed, sign in ((found["raises"], 1), (found["lowers"], -1)):
        terms = [sign * each["term"] for each in listed]
        assert terms == sorted(terms, reverse=True)
        assert min(terms) > 0
        of_heads = {(each["layer"], each["head"]): each for each in listed if each["head"] is not None}
        for where, each in of_heads.items():
            assert each["term"] == pytest.approx(heads[where])
            weights = run.attentions[where[0]][where[1], at]
            looks = each["attends"] or []
            for look in looks:
                assert look["weight"] == pytest.approx(float(weights[look["position"]]), abs=1e-5)
            assert looks[0]["weight"] == pytest.approx(float(weights.max()), abs=1e-5)
            assert not s.causal or all(look["position"] <= at for look in looks)
        missing = [sign * term for where, term in heads.items() if where not in of_heads]
        assert max(missing, default=0) <= min(terms)


def test_the_path_has_the_largest_heads_and_neurons(every: Case) -> None:
    """The path has the largest terms of either kind, however small beside the other, and where each head looks most."""
    found, at = asked(every)
    heads = {(row["layer"], head): term for row in found["layers"] for head, term in enumerate(row["heads"])}
    run = every.run(every.engine.words.prompt(TEXT))
    for sign, most in ((1, 5), (-1, 2)):
        of_heads = [part for part in found["path"] if part["head"] is not None and sign * part["term"] > 0]
        expected = sorted((term for term in heads.values() if sign * term > 0), key=lambda term: -sign * term)[:most]
        assert [part["term"] for part in of_heads] == pytest.approx(expected, abs=TOLERANCE)
        for part in of_heads:
            look = (part["attends"] or [])[0]
            assert part["term"] == pytest.approx(heads[part["layer"], part["head"] or 0])
            assert look["weight"] == pytest.approx(
                float(run.attentions[part["layer"]][part["head"], at].max()), abs=1e-5
            )
        of_neurons = [part for part in found["path"] if part["neuron"] is not None and sign * part["term"] > 0]
        listed = [part for part in found["raises" if sign > 0 else "lowers"] if part["neuron"] is not None]
        assert of_neurons[: len(listed)] == listed[:most]
        assert len(of_neurons) == most


def test_words_for_a_token(case: Case) -> None:
    by_word, _ = asked(case, token=Word(word="dog"), against=Word(word="lion"))
    dog, lion = (case.engine.words.tokens(word)[0] for word in ("dog", "lion"))
    assert (by_word["token"], by_word["against"]) == ({"id": dog}, {"id": lion})
    for field, kind, said in (
        ({"token": Word(word="dog horse")}, BadRequest, "by its id"),
        ({"against": Word(word="#", token=10**6)}, NotFound, "token 1000000 does not exist"),
    ):
        (error,) = case.engine.prompts([PromptAsk(text=TEXT, panel=("attribution",), **field)])
        assert isinstance(error, kind)
        assert said in str(error)


def test_the_rows_are_those_of_the_layers(case: Case) -> None:
    found, _ = asked(case)
    s = case.engine.shape
    assert [row["layer"] for row in found["layers"]] == list(range(s.n_layers))
    assert all(len(row["heads"]) == s.n_heads for row in found["layers"])
    assert any(each["part"] == "positions" for each in found["sums"]) == (s.positions == "learned" and s.causal)
