"""RoBERTa: BERT's blocks, its own head, and positions that are counted from behind the padding's."""

from typing import Any

from torch import Tensor

from precompute.weights.architectures.bert import Bert


class Roberta(Bert):
    model_types = {"roberta": "RoBERTa", "xlm-roberta": "XLM-RoBERTa"}
    prefixes = ("roberta.", "")
    unembeddings = ("lm_head.decoder",)
    mlm_head = "lm_head.dense"

    def logits(self, net: Any, stream: Tensor) -> Tensor:
        logits: Tensor = net.lm_head(stream)
        return logits

    def n_positions(self, net: Any) -> int:
        return super().n_positions(net) - int(net.config.pad_token_id) - 1


MODEL = Roberta
