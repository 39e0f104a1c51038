"""DistilBERT: BERT with modules of other names."""

from torch import Tensor

from lexiscope.precompute.weights.architectures.encoder import Encoder


class DistilBert(Encoder):
    model_types = {"distilbert": "DistilBERT"}
    config_names = {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
    }
    prefixes = ("distilbert.", "")
    embedding = "embeddings.word_embeddings"
    unembeddings = ("vocab_projector",)
    block = "transformer.layer.{}"
    linears = {
        "ff_key": "ffn.lin1",
        "ff_value": "ffn.lin2",
        "w_q": "attention.q_lin",
        "w_k": "attention.k_lin",
        "w_v": "attention.v_lin",
        "w_o": "attention.out_lin",
    }
    attention = "attention"
    embedding_norm = "embeddings.LayerNorm"
    norms = {"ff": "sa_layer_norm"}
    output_norm = "output_layer_norm"
    mlm_head = "vocab_transform"
    mlm_norm = "vocab_layer_norm"
    activation_field = "activation"

    def logits(self, stream: Tensor) -> Tensor:
        transformed = self.net.vocab_layer_norm(self.net.activation(self.net.vocab_transform(stream)))
        logits: Tensor = self.net.vocab_projector(transformed)
        return logits


MODEL = DistilBert
