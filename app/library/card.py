"""A model as the home page lists it: how far it is built, how large it is, what is wrong with it."""

from dataclasses import dataclass

from lexiscope.precompute.shape import Shape

UNNAMED = {"gpt2": "GPT-2", "llama": "Llama"}  # architectures of indexes from before they stored a name


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    model: str
    name: str = ""  # what others call it, such as "openai-community/gpt2"; "" if that is not known
    architecture: str = ""  # the model_type of its config.json
    architecture_name: str = ""  # what people call it
    causal: bool = True  # False: an encoder
    n_layers: int = 0  # 0 of one that cannot be used
    layers: tuple[int, ...] = ()  # those that can be read
    best_lens: str = ""  # the lens that reads best: links to a model's pages from elsewhere have it
    bytes: int = 0
    revision: str = ""
    build: str = ""  # of its index
    origin: str = ""  # where the weights come from, for people
    tuned: str = ""  # of a difference, the name of the model from which the other is subtracted
    base: str = ""  # and of that other; "" of a model
    faults: tuple[str, ...]  # what is wrong with it, for people


def architecture_name(shape: Shape) -> str:
    return shape.name or UNNAMED.get(shape.architecture, shape.architecture)
