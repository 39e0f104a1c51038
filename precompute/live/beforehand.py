"""Tell what a model makes of a token before it knows the text: the token's logit at the mean final state, and the part
of all its logits that comes from the final norm's bias."""

from collections.abc import Callable

import torch
from torch import Tensor

from lexiscope.precompute.live.parameters import check_number
from lexiscope.precompute.live.states import states_after
from lexiscope.precompute.live.weights import Weights
from lexiscope.precompute.live.wire.answers import BeforehandAnswer, Ranked
from lexiscope.precompute.live.wire.asks import BeforehandAsk
from lexiscope.precompute.live.words import Words

SENTENCES = (
    "The old man walked slowly down the road to the village.",
    "She opened the letter, read it twice, and laughed.",
    "In 1998 the company moved its head office to London.",
    "What time does the next train to the coast leave?",
    "Add the flour, stir well, and bake it for an hour.",
    "The results of the study were published in a medical journal.",
    "He scored two goals in the second half of the game.",
    "If the value is zero, the function returns an error.",
)  # the mean final state is that of their positions, without the first ones, whose states are unlike all others
SENTENCE_TOKENS = 14  # about so many has each


class Beforehand:
    def __init__(self, w: Weights, words: Words) -> None:
        self.w, self.words = w, words
        self._mean_logits: tuple[Tensor, int] | None = None  # of all tokens, and of how many positions

    def answer(self, ask: BeforehandAsk, check: Callable[[], None]) -> BeforehandAnswer:
        """Return both numbers of a token with their ranks; null where the model does not predict the next token, or its
        final norm has no bias. The sentences are run once; `check` may end that by raising an error."""
        w = self.w
        check_number("token", ask.token, w.shape.d_vocab)
        if w.shape.predicts != "next":
            return {"bias": None, "mean_state": None, "positions": 0}
        if self._mean_logits is None:
            self._mean_logits = self._run(check)
        logits, positions = self._mean_logits
        bias = w.norm_numbers("final").bias
        return {
            "bias": None if bias is None else _ranked(w.W_U @ bias, ask.token),
            "mean_state": _ranked(logits, ask.token),
            "positions": positions,
        }

    def _run(self, check: Callable[[], None]) -> tuple[Tensor, int]:
        w, states = self.w, []
        for sentence in SENTENCES:
            tokens = torch.tensor([self.words.prompt(sentence)[: w.n_positions]], device=w.device)
            states.append(states_after(w, tokens, w.shape.n_layers - 1, check)[0, 1:])
        final = w.model.before_unembedding(torch.cat(states))  # (positions, d_model)
        return w.net.get_output_embeddings()(final.mean(dim=0)), len(final)


def _ranked(scores: Tensor, token: int) -> Ranked:
    return {"score": float(scores[token]), "rank": 1 + int((scores > scores[token]).sum())}
