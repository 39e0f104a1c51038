"""Parse the address of a label, which says what the label is about: gpt2-medium/vo/16/6, gpt2/ff/10/2361,
gpt2/sub/3/5/12, or a model's name alone."""

import re
from dataclasses import dataclass
from typing import Literal

from lexiscope.precompute.index.origin import MODEL_NAME
from lexiscope.precompute.rebuild_command import COMPARISONS
from lexiscope.precompute.shape import DIRECTION_KINDS, GROUPED_KINDS, Shape

HEADS = ("head", "vo", "qk")  # a head, or one of its matrices: layer, head
NEURONS = ("ff", "ff_key", "ff_up", "ff_value")  # a neuron, or one of its vectors: layer, neuron
SUBHEADS = ("sub", "w_q", "w_k", "w_v", "w_o")  # a subhead, or one of its vectors: layer, head, subhead
DIRECTIONS = ("svd", *DIRECTION_KINDS)  # a direction, or one of its sides: layer, head, number of the direction
KINDS = (*HEADS, *NEURONS, *SUBHEADS, *DIRECTIONS)

NO_MODELS = (COMPARISONS, "labels")  # folders in the data folder that belong to no model
LONGEST_MODEL = 255  # characters, as in the name of a folder
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)

Parameter = Literal["", "layer", "head", "neuron", "subhead", "direction"]


@dataclass(frozen=True, slots=True)
class LabelAddress:
    """The address of a label. `kind` is "" if the label is about the whole model, and numbers that a kind does not have
    are None. A name that people type (parameter_names.py) may also be that of a `layer`, which has no labels."""

    model: str
    kind: str = ""
    layer: int | None = None
    index: int | None = None  # a neuron or a head
    sub: int | None = None  # a subhead or a direction of the head

    def __str__(self) -> str:
        numbers = (self.layer, self.index, self.sub)
        return "/".join([self.model, *([self.kind] if self.kind else ()), *(str(n) for n in numbers if n is not None)])

    @property
    def parameter(self) -> Parameter:
        """Return the parameter with a page of its own that the address names, or whose vector or matrix it names."""
        for parameter, kinds in _PARAMETERS.items():
            if self.kind in kinds:
                return parameter
        return ""

    def in_shape(self, shape: Shape) -> "LabelAddress":
        """Return the same address; if grouped heads share the vector, return the address of the first of them."""
        if self.kind in GROUPED_KINDS and self.index is not None and self.sub is not None:
            head, _ = shape.head_and_subhead(self.kind, shape.row(self.kind, self.index, self.sub))
            return LabelAddress(self.model, self.kind, self.layer, head, self.sub)
        return self

    def what_is_wrong(self, shape: Shape) -> str | None:
        """Say why a model of this shape has no such parameter, and which parameters it has; return None if it has this
        one."""
        if self.kind == "ff_up" and not shape.gated:
            return f"neurons of {self.model} are not gated, so they have no ff_up: write ff, ff_key or ff_value"
        counts = {"layer": shape.n_layers}
        if self.parameter not in ("", "layer"):
            counts |= {"neuron": shape.d_mlp} if self.parameter == "neuron" else {"head": shape.n_heads}
        if self.parameter in ("subhead", "direction"):
            counts[self.parameter] = shape.d_head
        for (what, count), number in zip(counts.items(), (self.layer, self.index, self.sub), strict=False):
            if number is not None and number >= count:
                return f"{what} {number}: {self.model} has {what}s 0 to {count - 1}"
        return None


_PARAMETERS: dict[Parameter, tuple[str, ...]] = {
    "layer": ("layer",), "head": HEADS, "neuron": NEURONS, "subhead": SUBHEADS, "direction": DIRECTIONS,
}  # fmt: skip


def parse_label_address(text: str) -> LabelAddress:
    """Parse the address of a label; raise ValueError with a text that says what would work."""
    model, *rest = text.split("/")
    if not MODEL_NAME.fullmatch(model) or len(model) > LONGEST_MODEL or model in NO_MODELS:
        raise ValueError("it begins with a model's name, as on the home page, such as gpt2-medium/vo/16/6")
    if not rest:
        return LabelAddress(model)
    kind, *numbers = rest
    if kind not in KINDS:
        raise ValueError(f"after the model stands one of {', '.join(KINDS)}, as in {model}/vo/16/6")
    three = kind in SUBHEADS or kind in DIRECTIONS
    if len(numbers) != 2 + three or not all(map(_NUMBER.fullmatch, numbers)):
        what = "neuron" if kind in NEURONS else "head"
        more = f"/{'subhead' if kind in SUBHEADS else 'direction'}" if three else ""
        raise ValueError(f"it is {model}/{kind}/layer/{what}{more}, with whole numbers from 0")
    return LabelAddress(model, kind, *map(int, numbers))
