"""The markup that a page repeats by the hundred: token chips, rows of scored tokens, numbers, heat.
Made here and not in templates because a loop in Python is several times faster; the rest of a page is in templates/."""

from typing import Any

FUNCTIONS: dict[str, Any] = {}
