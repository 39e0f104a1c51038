"""The names that models have: what may be one, and which one a person means."""

import re

from lexiscope.precompute.index.origin import PUBLISHED

DEMO_NAME = PUBLISHED["demo"].index  # the model that `demo` stands for
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def model_name(asked: str) -> str:
    """The name of the index a person means by `demo` or `minilm`, a Hub id (owner/name) or a name."""
    return PUBLISHED[asked].index if asked in PUBLISHED else re.sub(r"^[^/]*/(?=[^/]+$)", "", asked)
