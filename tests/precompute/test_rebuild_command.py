"""The command that makes an index again, whatever its folder holds."""

import json
from pathlib import Path

import pytest

from lexiscope.precompute.index.manifest import MANIFEST
from lexiscope.precompute.rebuild_command import rebuild_command, rebuild_command_for


@pytest.mark.parametrize(("source", "expected"), [
    ("demo", "lexiscope precompute demo"),
    ("openai-community/gpt2", "lexiscope precompute openai-community/gpt2"),
    ("/home/somebody/models/tiny.gguf", "lexiscope precompute tiny.gguf"),
    ("/home/somebody/my model", "lexiscope precompute 'my model'"),
])  # fmt: skip
def test_command(tmp_path: Path, source: str, expected: str) -> None:
    (tmp_path / MANIFEST).write_text(json.dumps({"source": source}))
    assert rebuild_command(source) == rebuild_command_for(tmp_path) == expected


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"source": 5}', '{"source": ""}', "\xff", "[" * 10**5])
def test_a_manifest_that_does_not_tell(tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    if content is not None:
        (folder / MANIFEST).write_bytes(content.encode("latin-1"))
    assert rebuild_command_for(folder) == "lexiscope precompute tiny"
