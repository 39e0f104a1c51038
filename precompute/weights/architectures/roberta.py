"""RoBERTa: BERT's blocks, a prediction head of its own, and position numbers that begin after the id of the padding
token."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.architectures.bert import Bert
from lexiscope.precompute.weights.architectures.config import Config


class Roberta(Bert):
    model_types = {"roberta": "RoBERTa", "xlm-roberta": "XLM-RoBERTa"}
    prefixes = ("roberta.", "")
    unembeddings = ("lm_head.decoder",)
    mlm_head = "lm_head.dense"
    mlm_norm = "lm_head.layer_norm"

    def adapt(self, config: Config) -> None:
        """Count positions from the row after that of the padding token."""
        padding = config.values.get("pad_token_id", 1)
        self.first_position = padding + 1 if isinstance(padding, int) else 0

    def logits(self, stream: Tensor) -> Tensor:
        logits: Tensor = self.net.lm_head(stream)
        return logits

    def transform(self) -> tuple[Any, Callable[[Tensor], Tensor], Any] | None:
        """Return the modules of the prediction head. Their activation is always the same, whatever activation the
        config names for the layers."""
        made = super().transform()
        return made and (made[0], functional.gelu, made[2])

    def n_positions(self, net: Any) -> int:
        padding, stored = net.config.pad_token_id, super().n_positions(net)
        if not isinstance(padding, int) or not 0 <= padding < stored - 1:
            raise BadWeights(
                f"{self.checkpoint.folder}/config.json gives pad_token_id as {padding!r}: RoBERTa counts positions "
                f"from it, and has {stored}. Get the checkpoint's config.json again."
            )
        return stored - padding - 1


MODEL = Roberta
