"""Define a model's dimensions and the names of its parameters, which every other module uses. No weights are here."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal, TypeAlias, get_args

LENSES = ("dot", "cosine")
ENDS = ("top", "bottom")
Preset: TypeAlias = Literal["all", "distinct", "words"]
PRESETS: tuple[Preset, ...] = get_args(Preset)
MATRICES = ("vo", "qk")
PartName: TypeAlias = Literal["vocabulary", "classifier", "neighbours", "chance", "lists", "stats", "heads"]
PART_NAMES: tuple[PartName, ...] = get_args(PartName)  # the parts of an index, in the order in which a build makes them
GROUPED_KINDS = ("w_k", "w_v")  # grouped heads share them
# What a model's last step tells. next: probabilities of the next token; masked: of the token at the position itself, by
# an encoder's MLM head; nearest: an encoder without such a head: cosines of the stream with the nearest tokens.
Predicts = Literal["next", "masked", "nearest"]
HUB_FACTOR = 10  # a hub is a token in this many times more lists than if tokens were drawn at random

# The kinds of vectors whose matrices a head's matrix is the product of: W_V W_O and W_Q W_Kᵀ.
FACTORS: dict[str, tuple[str, str]] = {"vo": ("w_v", "w_o"), "qk": ("w_q", "w_k")}

# Whose lists are compared with each other: what a neuron reads and writes, and the two sides of a subhead.
COMPARED: dict[str, tuple[str, str]] = {"ff": ("ff_key", "ff_value")} | FACTORS

# The singular vectors of a head's matrix M = Σ σ_j in_jᵀ out_j, by falling σ_j: the directions that it reads and
# writes, or its queries and keys. They are computed from the weights; all other kinds are rows or columns of weights.
DIRECTIONS: dict[str, tuple[str, str]] = {"vo": ("vo_in", "vo_out"), "qk": ("qk_query", "qk_key")}
DIRECTION_KINDS = tuple(kind for kinds in DIRECTIONS.values() for kind in kinds)

# What each kind of vector does: it reads from the residual stream (compared with W_E) or writes to it (with W_U).
Side: TypeAlias = Literal["reads", "writes"]
SIDES: dict[str, Side] = {
    "ff_key": "reads",
    "ff_up": "reads",
    "ff_value": "writes",
    "w_q": "reads",
    "w_k": "reads",
    "w_v": "reads",
    "w_o": "writes",
    "vo_in": "reads",
    "vo_out": "writes",
    "qk_query": "reads",
    "qk_key": "reads",
}

MOST_LAYERS = 1 << 12  # that a record may name: far above what any model has
SEED_KIND = "ff_value"  # the vectors that seed words find, unless somebody says otherwise
# The vectors of a classification head, which read, too; they belong to no layer.
HEAD_KINDS = ("classifier", "dense")


@dataclass(frozen=True)
class Shape:
    architecture: str  # the model_type of config.json: "gpt2", "llama"
    n_layers: int
    n_heads: int
    n_kv_heads: int  # fewer than n_heads where heads share keys and values
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    gated: bool  # SwiGLU: a neuron has a second input vector, ff_up
    tied: bool  # the unembedding W_U is the embedding W_E
    positions: Literal["learned", "rotary"]
    causal: bool = True  # a position sees only those before it; False: an encoder
    name: str = ""  # the architecture's name for people: "GPT-2", "Llama"
    left_out: tuple[str, ...] = ()  # what the model does with q and k that lists of QK do not show
    left_out_writing: tuple[str, ...] = ()  # what it does with what heads and neurons write that lists do not show
    d_rotary: int | None = None  # how many channels of a head turn with the position, if it is not all or none
    predicts: Predicts = "next"

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of vectors that a layer has, in the order in which files number them."""
        return tuple(kind for kind in SIDES if kind != "ff_up" or self.gated)

    @cached_property
    def weight_kinds(self) -> tuple[str, ...]:
        """Return the kinds whose vectors are rows or columns of weights: all except directions."""
        return tuple(kind for kind in self.kinds if kind not in DIRECTION_KINDS)

    def identity(self) -> dict[str, object]:
        """Return the fields that decide what lists hold, without fields that have their default value and texts for
        people."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        for_people = ("name", "left_out", "left_out_writing", "d_rotary", "predicts")
        return {name: value for name, (value, default) in values.items() if value != default and name not in for_people}

    def count(self, kind: str) -> int:
        """Return how many vectors of a kind one layer has."""
        if kind.startswith("ff_"):
            return self.d_mlp
        heads = self.n_kv_heads if kind in GROUPED_KINDS else self.n_heads
        return heads * self.d_head

    def row(self, kind: str, head: int, subhead: int) -> int:
        """Return the number of a head's subhead among all vectors of a kind in the layer; grouped heads share w_k and
        w_v."""
        if kind in GROUPED_KINDS:
            head = head * self.n_kv_heads // self.n_heads
        return head * self.d_head + subhead

    def rows(self, kind: str) -> list[int]:
        """Return the rows of all neurons' vectors, or of all subheads' (head after head), among those of a kind."""
        if kind.startswith("ff_"):
            return [*range(self.d_mlp)]
        return [self.row(kind, head, subhead) for head in range(self.n_heads) for subhead in range(self.d_head)]

    def head_and_subhead(self, kind: str, row: int) -> tuple[int, int]:
        """Return the head and the subhead of the vector with this number; if heads share w_k and w_v, the first of
        them."""
        head, subhead = divmod(row, self.d_head)
        if kind in GROUPED_KINDS:
            head *= self.n_heads // self.n_kv_heads
        return head, subhead
