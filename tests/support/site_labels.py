"""Write labels of the small models of the site: of every kind of parameter, some with hostile text."""

import json
from pathlib import Path
from typing import Any

from tests.support.site import GPT2, LLAMA

HOSTILE = "<script>alert(1)</script>"
LABELS: list[dict[str, Any]] = [
    {
        "address": f"{LLAMA}/ff/1/3",
        "title": "Kennels & stables",
        "text": "First line,\nsecond line about greyhounds.",
        "source": "A. Reader",
        "url": "https://example.org/notes?a=1&b=2",
        "tokens": [" dog", "nowhere to be found"],
    },
    {
        "address": f"{LLAMA}/vo/1/2",
        "title": HOSTILE,
        "text": f"<img src=x onerror=alert(2)> {HOSTILE}",
        "source": f'"><b>{HOSTILE}',
        "url": "https://example.org/?q=%22%3E",
        "pairs": [["<script>", " dog"], [" lion", "nowhere"]],
        "lens": "cosine",
    },
    {"address": f"{LLAMA}/head/1/2", "title": "Carries greyhounds"},
    {"address": f"{LLAMA}/w_k/1/1/0", "title": "שלום, from right to left", "tokens": ["e"], "end": "bottom"},
    {"address": f"{LLAMA}/vo_out/1/2/0", "title": "The strongest step", "tokens": ["e", "dog"]},
    {"address": f"{LLAMA}/qk/1/0", "title": "Looks for lions"},
    {"address": f"{GPT2}/ff_value/1/3", "title": "Writes lions", "source": "without a link"},
    {"address": f"{GPT2}", "title": "A model for tests"},
    {"address": "no-such-model/vo/99/99", "title": "Of nobody here"},
]


def write_labels(data: Path, name: str = "site.json", entries: Any = LABELS) -> Path:
    """Write a file of labels into a data folder: JSON of entries, or bytes as they are."""
    (data / "labels").mkdir(exist_ok=True)
    path = data / "labels" / name
    path.write_bytes(entries if isinstance(entries, bytes) else json.dumps(entries).encode())
    return path
