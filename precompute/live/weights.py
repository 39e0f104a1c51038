"""Hold a model in memory that can run: the net of `transformers`, whose parameters are also available under their usual
names (W_E, w_q, ...), without a copy. The net is float32, with attention written out in torch; its files are
safetensors, and no code of a checkpoint runs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from lexiscope.precompute.errors import BadWeights, first_line
from lexiscope.precompute.live.parameters import LoadedParameters
from lexiscope.precompute.project.embedding import Float64
from lexiscope.precompute.weights.architectures.base import Model
from lexiscope.precompute.weights.architectures.family import NormName, Part
from lexiscope.precompute.weights.checkpoint import read_json

BLOCK_ROWS = 4096
LEAST_DIVISOR = 1e-30  # least length that something is divided by
CLASSIFIER = "AutoModelForSequenceClassification"


@dataclass(frozen=True)
class Norm:
    """The parameters of one LayerNorm or RMSNorm of the model."""

    gain: Tensor  # (d_model,)
    bias: Tensor | None  # (d_model,)
    eps: float
    centres: bool  # True for a LayerNorm; an RMSNorm does not subtract the mean

    def scaled(self, x: Float64) -> Float64:
        """Return vectors x (..., d_model) as the norm makes them but for its divisor and its bias."""
        return self._centred(x) * _float64(self.gain)

    def folded(self, v: Float64) -> Float64:
        """Return vectors (..., d_model) whose products with x are those of v with `scaled` x."""
        return self._centred(v * _float64(self.gain))

    def divisors(self, x: Float64) -> Float64:
        """Return the number by which the norm divides each of x (..., d_model)."""
        return np.asarray(np.sqrt(np.square(self._centred(x)).mean(axis=-1) + self.eps))

    def gained(self, x: Tensor) -> Tensor:
        """Return x (..., d_model) as `scaled` does, in its own precision."""
        return (x - x.mean(dim=-1, keepdim=True) if self.centres else x) * self.gain

    def scale(self, x: Tensor) -> Tensor:
        """Return the inverse (..., 1) of the number by which the norm divides each of x (..., d_model)."""
        centred = x - x.mean(dim=-1, keepdim=True) if self.centres else x
        return (centred.square().mean(dim=-1, keepdim=True) + self.eps).rsqrt()

    @property
    def exact_bias(self) -> Float64 | None:
        return None if self.bias is None else _float64(self.bias)

    def _centred(self, x: Float64) -> Float64:
        return np.asarray(x - x.mean(axis=-1, keepdims=True) if self.centres else x)


class Weights(LoadedParameters):
    """The parameters of a model that can run. All tensors are the net's own, or views of them: float32, on the
    device."""

    def __init__(self, model: Model, net: Any, device: torch.device) -> None:
        self.shape = model.shape
        self.device, self.net, self.model = device, net, model.in_memory(net)
        self.W_E, self.W_U = self.model.W_E, self.model.W_U  # (d_vocab, d_model); one tensor where tied
        self.n_positions = model.n_positions(net)
        padding = net.config.pad_token_id
        self.padding = padding if isinstance(padding, int) and 0 <= padding < self.shape.d_vocab else 0

    def bos(self, tokenizer: Tokenizer) -> int | None:
        named = []
        if (path := self.model.checkpoint.folder / "tokenizer_config.json").is_file():
            token = read_json(path).get("bos_token")
            text = token.get("content") if isinstance(token, dict) else token
            named.append(tokenizer.token_to_id(text) if isinstance(text, str) else None)
        for config in (self.net.config, getattr(self.net, "generation_config", None)):
            named.append(getattr(config, "bos_token_id", None))
        return next((token for token in named if isinstance(token, int) and 0 <= token < self.shape.d_vocab), None)

    @classmethod
    def load(cls, model: Model, device: torch.device) -> "Weights":
        return cls(model, load_net(model, device), device)

    def vectors(self, kind: str, layer: int) -> Tensor:
        """Return the vectors of a kind in a layer, (count, d_model)."""
        return self.model.read(layer, kind)

    def lacks(self, kind: str, layer: int) -> bool:
        return self.model.directions.lacks(layer, kind)

    def bias(self, kind: str, layer: int) -> Tensor | None:
        """Return the bias of a kind of vectors: (count,) if they read, (d_model,) if they write."""
        return self.model.bias(layer, kind)

    def every_head(self, kind: str, layer: int) -> Tensor:
        """Return the vectors of every head, (n_heads, d_head, d_model); those that heads share are repeated."""
        heads = self.heads(kind, layer)
        shared_by = self.shape.n_heads // len(heads)
        return heads if shared_by == 1 else heads.repeat_interleave(shared_by, dim=0)

    def every_bias(self, kind: str, layer: int) -> Tensor | None:
        """Return the biases of every head, (n_heads, d_head); those that heads share are repeated."""
        bias = self.bias(kind, layer)
        if bias is None:
            return None
        heads = bias.view(-1, self.shape.d_head)
        return heads.repeat_interleave(self.shape.n_heads // len(heads), dim=0)

    def norm(self, x: Tensor, name: NormName, layer: int = 0) -> Tensor:
        """Send x (..., d_model) through a norm of the model; the layer of the final norm is 0."""
        normed: Tensor = self.model.norm(name, layer)(x)
        return normed

    def norm_numbers(self, name: NormName, layer: int = 0) -> Norm:
        return self._numbers(self.model.norm(name, layer))

    def norm_of_written(self, layer: int, part: Part) -> Norm | None:
        """Return the norm of what attention or FF writes, before it is added to the stream, where the model has one
        (Gemma 2)."""
        module = self.model.norm_of_written(layer, part)
        return None if module is None else self._numbers(module)

    def norm_of_sum(self, layer: int, part: Part) -> Norm | None:
        """Return the norm of the stream after attention or FF was added, where the model has one (encoders)."""
        module = self.model.norm_of_sum(layer, part)
        return None if module is None else self._numbers(module)

    def written(self, layer: int, part: Part, weights: Tensor) -> Tensor:
        """Return what attention's channels, or FF's neurons, write with these weights (..., count), before any norm."""
        kind = "ff_value" if part == "ff" else "w_o"
        written, bias = weights @ self.vectors(kind, layer), self.bias(kind, layer)
        return written if bias is None else written + bias

    def transform(self) -> "tuple[Any, Callable[[Tensor], Tensor], Norm] | None":
        """Return what an encoder's prediction head has before W_U: a linear module, an activation and a norm."""
        made = self.model.transform()
        return made and (made[0], made[1], self._numbers(made[2]))

    def unembedding(self, token: int) -> tuple[Tensor, float]:
        """Return the vector (d_model,) whose product with the last state is a token's logit, and the bias that is
        added. If the model predicts no tokens, the vector is the token's centred row of W_U, of length one, and the
        product with a state of length one is the cosine."""
        if not self.model.predicts:
            mean, inverse = self._centred
            return (self.W_U[token] - mean) * inverse[token], 0.0
        bias = getattr(self.net.get_output_embeddings(), "bias", None)
        return self.W_U[token], 0.0 if bias is None else float(bias[token])

    @cached_property
    def mean_unembedding(self) -> tuple[Tensor, float]:
        """Return the mean over all tokens of the vectors and of the biases that `unembedding` returns."""
        mean, inverse = self._centred
        if not self.model.predicts:
            return inverse @ self.W_U / len(inverse) - mean * inverse.mean(), 0.0
        bias = getattr(self.net.get_output_embeddings(), "bias", None)
        return mean, 0.0 if bias is None else float(bias.mean())

    def _numbers(self, module: Any) -> Norm:
        eps = module.variance_epsilon if hasattr(module, "variance_epsilon") else module.eps
        gain, centres = module.weight + self.model.gain_offset, isinstance(module, torch.nn.LayerNorm)
        return Norm(gain, getattr(module, "bias", None), float(eps), centres)

    def head_states(self, kind: str, layer: int, x: Tensor) -> Tensor:
        """Return queries (w_q) or keys (w_k) of states x (n, d_model) as the model computes them, with biases and norms
        but without the rotation by position: (n_heads, n, d_head), with the keys of grouped heads repeated."""
        return self.model.head_states(layer, kind, x)

    def head_norm(self, kind: str, layer: int) -> Norm | None:
        """Return the norm of queries (w_q) or keys (w_k), where the model has one. Its gain is (n_heads, d_head), or
        (1, d_head) if heads share it."""
        norms = [self._numbers(module) for module in self.model.head_norms(layer, kind)]
        if not norms:
            return None
        gain = torch.stack([norm.gain for norm in norms])
        repeats = 1 if len(norms) == 1 else self.shape.n_heads // len(norms)
        return replace(norms[0], gain=gain.repeat_interleave(repeats, dim=0))

    def capped(self, scores: Tensor, layer: int) -> Tensor:
        """Return attention scores after the soft cap, where the model has one."""
        return self.model.capped(layer, scores)

    def cosines(self, stream: Tensor) -> Tensor:
        """Return the cosines (n, d_vocab) of a stream (n, d_model) with the centred rows of W_U."""
        mean, inverse = self._centred
        lengths: Tensor = torch.linalg.vector_norm(stream, dim=1, keepdim=True).clamp(min=LEAST_DIVISOR)
        return (stream @ self.W_U.T - (stream @ mean)[:, None]) * inverse / lengths

    @cached_property
    def _centred(self) -> tuple[Tensor, Tensor]:
        return mean_and_inverse_lengths(self.W_U)

    def neurons(self, x: Tensor, layer: int) -> Tensor:
        """Return the coefficients (..., d_mlp), by which neurons multiply their values, for states (..., d_model) after
        the norm."""
        read = {
            kind: functional.linear(x, self.vectors(kind, layer), self.bias(kind, layer))
            for kind in self.shape.kinds
            if kind in ("ff_key", "ff_up")
        }
        coefficients = self.model.activation()(read["ff_key"])
        return coefficients * read["ff_up"] if self.shape.gated else coefficients

    def after_first_mlp(self, e: Tensor) -> Tensor:
        """Return embeddings e (n, d_model) as they would be after the first layer's FF, without its attention."""
        return self.model.add_ff(self.model.stream_of(e), self._first_ff, 0)

    def _first_ff(self, x: Tensor) -> Tensor:
        return self.written(0, "ff", self.neurons(x, 0))


def _float64(x: Tensor) -> Float64:
    return np.asarray(x.cpu().numpy(), np.float64)


def mean_and_inverse_lengths(W: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean row of W (d_model,), and for every row 1 / its length after the mean is subtracted (d_vocab,).
    They are computed block by block, because a second vocabulary would be a large part of a worker's memory."""
    mean = W.mean(dim=0)
    lengths = [torch.linalg.vector_norm(rows - mean, dim=1) for rows in torch.split(W, BLOCK_ROWS)]
    return mean, 1 / torch.cat(lengths).clamp(min=LEAST_DIVISOR)


def load_net(model: Model, device: torch.device, net_class: str | None = None) -> Any:
    """Load the net on the device, ready to run; raise BadWeights if `transformers` cannot load the files.

    `net_class` is the class of transformers to use, such as CLASSIFIER, if it is not the usual one of the model's
    family.
    """
    import transformers as untyped

    transformers: Any = untyped  # most of its functions carry no types
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder, chosen_class = model.checkpoint.folder, getattr(transformers, net_class or model.net_class)
    fields = {name: value for name, value in model.checkpoint.config.items() if name != "model_type"}
    try:
        config = transformers.AutoConfig.for_model(model.model_type, **fields)
        net, info = chosen_class.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            attn_implementation="eager",  # other implementations do not return their attention weights
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # damaged files can cause errors of any kind
        raise BadWeights(f"transformers cannot load {folder} as {model.shape.name}: {first_line(error)}") from error
    if missing := sorted(name for name in info["missing_keys"] if not name.startswith(model.unused)):
        raise BadWeights(
            f"{folder} has no tensor {missing[0]}, which a run needs. The checkpoint is incomplete: get it again."
        )
    return net.eval().requires_grad_(False).to(device)
