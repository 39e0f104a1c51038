"""A checkpoint as `transformers` runs it: float32, attention written out, safetensors only, never code from outside."""

from typing import Any

import torch

from lexiscope.precompute.errors import BadWeights, first_line
from lexiscope.precompute.weights.architectures.base import Model

CLASSIFIER = "AutoModelForSequenceClassification"


def load_net(model: Model, device: torch.device, net_class: str | None = None) -> Any:
    """Load the net on the device, ready to run; raise BadWeights for whatever `transformers` cannot make of the files.

    `net_class` is a class of transformers where it is not the family's own, such as CLASSIFIER.
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
            attn_implementation="eager",  # the others do not show their weights
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
