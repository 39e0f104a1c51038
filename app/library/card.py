"""A model as the home page lists it: how far it is built, how large it is, what is wrong with it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    model: str
    name: str = ""  # what others call it, such as "openai-community/gpt2"; "" if that is not known
    architecture: str = ""
    n_layers: int = 0  # 0 of one that cannot be used
    layers: tuple[int, ...] = ()  # those that can be read
    bytes: int = 0
    revision: str = ""
    origin: str = ""  # where the weights come from, for people
    faults: tuple[str, ...]  # what is wrong with it, for people
