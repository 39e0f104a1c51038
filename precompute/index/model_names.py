"""Tell what may be the name of a model, and which model a person means."""

import re

from lexiscope.precompute.index.origin import PUBLISHED

DEMO_NAME = PUBLISHED["demo"].index  # the model that `demo` stands for
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def model_name(asked: str) -> str:
    """Return the name of the index that a person means by `demo` or `minilm`, a Hub id (owner/name) or a name."""
    return PUBLISHED[asked].index if asked in PUBLISHED else re.sub(r"^[^/]*/(?=[^/]+$)", "", asked)
