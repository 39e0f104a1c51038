"""BERT and RoBERTa (MiniLM, MultiBERTs, gte, bge, e5), with or without the head that predicts a masked token."""

from typing import Any

from torch import Tensor

from lexiscope.precompute.errors import UnsupportedArchitecture
from lexiscope.precompute.shape import Shape
from lexiscope.precompute.weights.architectures.config import Config
from lexiscope.precompute.weights.architectures.encoder import Encoder


class Bert(Encoder):
    model_types = {"bert": "BERT"}
    prefixes = ("bert.", "")
    embedding = "embeddings.word_embeddings"
    unembeddings = ("cls.predictions.decoder",)
    block = "encoder.layer.{}"
    linears = {
        "ff_key": "intermediate.dense",
        "ff_value": "output.dense",
        "w_q": "attention.self.query",
        "w_k": "attention.self.key",
        "w_v": "attention.self.value",
        "w_o": "attention.output.dense",
    }
    attention = "attention"
    embedding_norm = "embeddings.LayerNorm"
    norms = {"ff": "attention.output.LayerNorm"}
    output_norm = "output.LayerNorm"
    mlm_head = "cls.predictions.transform.dense"
    mlm_norm = "cls.predictions.transform.LayerNorm"

    def read_shape(self, config: Config) -> Shape:
        decodes = any(config.flag(name, default=False) for name in ("is_decoder", "add_cross_attention"))
        if decodes or (config.values.get("position_embedding_type") or "absolute") != "absolute":
            raise UnsupportedArchitecture(
                f"{self.checkpoint.source} is a BERT used as a decoder, or one with relative positions. "
                "Encoders with learned positions can be read."
            )
        return super().read_shape(config)

    def attention_of(self, layer: int) -> Any:
        return super().attention_of(layer).self

    def logits(self, stream: Tensor) -> Tensor:
        logits: Tensor = self.net.cls(stream)
        return logits


MODEL = Bert
