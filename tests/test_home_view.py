"""The home page's data."""

import json
from pathlib import Path

from app.library import Library
from app.views.home import home_view
from tests.synthetic import GPT2, LLAMA, make_manifest, unflushed, write_index


def test_home(tmp_path: Path) -> None:
    with unflushed():
        write_index(tmp_path / "tiny", make_manifest(GPT2, "tiny"), (3,))
        write_index(tmp_path / "small", make_manifest(LLAMA, "small"), ())
    (tmp_path / "small" / "vocabulary.g1.lxs").unlink()
    content = json.loads(home_view(Library(tmp_path)).json_bytes())
    small, tiny = content["models"]
    assert (tiny["model"], tiny["layers"], tiny["n_layers"], tiny["faults"]) == ("tiny", [3], 4, [])
    assert (small["model"], small["layers"], small["n_layers"]) == ("small", [], 0)
    assert "is missing" in small["faults"][0]


def test_no_models(tmp_path: Path) -> None:
    assert home_view(Library(tmp_path / "none")).models == ()
