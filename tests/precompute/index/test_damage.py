"""Bytes of a layer that were spoilt before the server opened its file: every format of a page says so, and tells nobody
where on the machine the file is. What can be wrong with a list is in test_index.py, files that change in
test_library.py."""

import logging
import os
from pathlib import Path

import numpy as np
import pytest

from lexiscope.precompute.index.index import Index
from tests.support.site import visit
from tests.support.synthetic import LLAMA, make_manifest, write_index

pytestmark = pytest.mark.slow

BAD = np.array([np.inf], np.float32).tobytes()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_index(tmp_path / "data" / "tiny", make_manifest(LLAMA))
    return tmp_path / "data"


def spoil(data: Path, name: str, place: int, spoilt: bytes) -> None:
    """Other bytes in the file of layer 1, from this entry of an array on."""
    file = Index.open(data / "tiny").shard(1).file
    tensor = file.tensors[name]
    with file.path.open("r+b") as opened:
        opened.seek(tensor.offset + place * tensor.dtype.itemsize)
        opened.write(spoilt)


NEURON, SUBHEAD, VO = (f"/tiny/{page}" for page in ("ff/1/0", "head/1/0/sub/0", "head/1/0/vo"))


@pytest.mark.parametrize(("name", "place", "spoilt", "page", "said"), [
    ("ff_key.ids", 3, bytes(8), NEURON, "ff_key 0 (dot, top) lists token 0 twice"),
    ("w_k.scores", 5, bytes(4), SUBHEAD, "w_k 0 (dot, top) has ranks 6 and 7 in the wrong order"),
    ("vo.count", 1, b"\xff\xff\xff\xff", VO, "vo of head 0 claims 4294967295 pairs"),
    ("inverted.offsets", 11, b"\xff\xff\xff\xff", "/tiny/layer/1?token=10", "its inverted lists of token 10 point"),
])  # fmt: skip
def test_every_format_says_what_is_damaged(
    data: Path, caplog: pytest.LogCaptureFixture, name: str, place: int, spoilt: bytes, page: str, said: str
) -> None:
    spoil(data, name, place, spoilt)
    path, mark, query = page.partition("?")
    with visit(data, worker="off") as visitor, caplog.at_level(logging.WARNING):
        for format in ("", ".json", ".csv", ".md", ".tex"):
            answer = visitor.get(
                f"{path}{format}{mark}{query}", headers={} if format else {"Accept": "application/json"}
            )
            assert answer.status_code == 503
            assert answer.json()["error"]["detail"].startswith(f"tiny/layer-1.safetensors is damaged: {said}")
            assert str(data) not in answer.text
        html = visitor.get(page)
        assert (html.status_code, html.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert "layer-1.safetensors" in html.text
        assert str(data) not in html.text
        assert visitor.get(page.replace("/1", "/2", 1)).status_code == 200  # another layer
    assert str(data / "tiny" / "layer-1.safetensors") in caplog.text


@pytest.mark.parametrize(("name", "spoilt"), [
    ("vo.scores", BAD), ("qk.count", b"\xff\xff\xff\xff"),
])  # fmt: skip
def test_the_map_of_a_model_names_the_layer_and_no_folder(data: Path, name: str, spoilt: bytes) -> None:
    spoil(data, name, 0, spoilt)
    with visit(data, worker="off") as visitor:
        rows = {row["layer"]: row for row in visitor.get("/tiny.json").json()["rows"]}
        assert rows[1]["fault"].startswith(f"tiny/layer-1.safetensors is damaged: {name[:2]} of head 0")
        assert [rows[0]["fault"], rows[2]["fault"]] == [None, None]
        assert str(data) not in visitor.get("/tiny").text


def test_a_card_names_a_file_without_its_folder(data: Path) -> None:
    os.truncate(data / "tiny" / "layer-1.safetensors", 100)
    (data / "other").mkdir()
    (data / "other" / "manifest.json").write_text("{}")
    with visit(data, worker="off") as visitor:
        for path in ("/", "/index.json", "/-/health"):
            answer = visitor.get(path)
            assert "tiny/layer-1.safetensors is cut short" in answer.text
            assert "other/manifest.json is damaged" in answer.text
            assert str(data) not in answer.text
