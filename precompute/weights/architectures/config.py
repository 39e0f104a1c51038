"""Read the sizes that config.json gives, and check them; a field may have several names."""

import re
from collections.abc import Iterable
from typing import Any

from lexiscope.precompute.errors import BadWeights
from lexiscope.precompute.weights.checkpoint import Checkpoint

# LlamaForCausalLM, GPT2LMHeadModel, BertModel: what stands before the last part is the model_type, but for case and _
_CLASS_NAME = re.compile(r"(\w+?)(For\w+|LMHeadModel|DoubleHeadsModel|Model)")


def find_model_type(config: dict[str, Any], known: Iterable[str]) -> str | None:
    """Return which of the known model_types a config.json describes; if it names none, use the first class that it
    names."""
    stated, classes = config.get("model_type"), config.get("architectures")
    if stated is None and isinstance(classes, list) and classes:
        match = _CLASS_NAME.fullmatch(str(classes[0]))
        stated = match and next((name for name in known if name.replace("_", "") == match[1].lower()), None)
    return stated if stated in list(known) else None


class Config:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self.values = checkpoint.config
        self.path = checkpoint.folder / "config.json"

    def size(self, *names: str, default: int | None = None) -> int:
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if type(value) is not int or value < 1:
                raise self.wrong(f"{name} is {value!r}, not a whole number above zero")
            return value
        if default is None:
            raise self.wrong(f"{names[0]} is missing")
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        value: Any = self.values.get(name)
        if value is not None and type(value) is not bool:
            raise self.wrong(f"{name} is {value!r}, neither true nor false")
        return default if value is None else value

    def rotary_share(self, *, default: float) -> float:
        """Return the share of a head's channels that rotary positions turn, whichever name this field has."""
        places: tuple[Any, ...] = (self.values.get("rope_parameters"), self.values.get("rope_scaling"), self.values)
        names = ("partial_rotary_factor", "rotary_pct")
        stated = [place[name] for place in places if isinstance(place, dict) for name in names if name in place]
        share = next((value for value in stated if value is not None), default)
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise self.wrong(f"partial_rotary_factor is {share!r}, not a number from 0 to 1")
        return float(share)

    def share(self, whole: int, parts: int, what: str) -> int:
        if whole % parts:
            raise self.wrong(f"{what}: {whole} cannot be divided by {parts}")
        return whole // parts

    def wrong(self, what: str) -> BadWeights:
        return BadWeights(f"{self.path} does not describe a model: {what}. Get the checkpoint's config.json again.")
