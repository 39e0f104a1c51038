"""Gemma 1: Llama's matrices, with W_U equal to W_E, norms that add one to their gain, and embeddings that are
scaled."""

from lexiscope.precompute.weights.architectures.llama import Llama


class Gemma(Llama):
    model_types = {"gemma": "Gemma"}
    default_d_head = {"gemma": 256}
    tied_by_default = True
    gain_offset = 1.0
    gguf = None


MODEL = Gemma
