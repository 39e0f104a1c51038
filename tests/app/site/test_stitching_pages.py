"""Stitching on the page of two models: curves, their numbers, and a sentence that two workers read."""

import csv
import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from lexiscope.app.html.line_chart import HEIGHT, WIDTH
from lexiscope.precompute.index.comparison import Comparison
from lexiscope.precompute.index.manifest import Manifest
from lexiscope.precompute.index.stitching import STITCHING, dump_runs, read_runs
from tests.support.comparisons import HOSTILE_FILE, change_weights, quick_compare, stitching_run
from tests.support.models import load
from tests.support.pages import parsed
from tests.support.site import AWAY, GPT2, LLAMA, copied, visit
from tests.support.tokenizers import gpt2

VS = f"/{GPT2}/vs/{LLAMA}"
TEXT = "the dog and the lion"


def test_json_has_the_runs_as_they_are_stored(client: TestClient, site_data: Path) -> None:
    runs = read_runs(site_data / "vs" / GPT2 / LLAMA)
    assert client.get(f"{VS}.json").json()["stitching"] == [run.model_dump(mode="json") for run in runs]
    assert [run.texts for run in runs] == ["lines.txt", HOSTILE_FILE]


def test_the_page_has_curves_and_their_numbers(client: TestClient) -> None:
    page = " ".join(client.get(f"{VS}?kind=ff_value").text.split())
    assert "<script>" not in page
    assert "best after layer 2, 20% ± 2.0% of the 400 next tokens" in page
    assert f"{LLAMA} by itself 38%, chance 6.2%" in page
    first, second = (parsed(figure) for figure in page.split('<figure class="plot">')[1:])
    levels = [group.attributes["class"] for group in first.all("g")][:3]
    assert levels == ["level", "level", "first"]  # by itself, chance, stitched
    assert second.all("g", **{"class": "second"})  # without the kernel
    curve = first.all("path", **{"stroke-width": "2"})[0].attributes["d"]
    step, height = WIDTH / 3, HEIGHT / 4
    ends = f"L{round(2 * step, 1)} {3 * height}L{WIDTH}.0 {2 * height}"
    assert curve == f"M0.0 {HEIGHT * 0.975}L{round(step, 1)} {HEIGHT}.0{ends}"  # 1, 0, 10 and 20 of 40 per cent
    assert "stitched: 20%" in first.all("title")[-1].text
    assert 'embedding<td class="n">1.0%<td class="n">9.000<td class="n">25%<td class="n">2.500' in page
    for name, accuracy, loss in (("embedding", "1.0%", "9.000"), ("after layer 1", "10%", "2.000")):
        assert f'{name}<td class="n">{accuracy}<td class="n">{loss}' in page


def test_csv_has_a_row_for_each_layer(client: TestClient) -> None:
    rows = [row for row in csv.DictReader(io.StringIO(client.get(f"{VS}.csv").text)) if row["texts"] == "lines.txt"]
    assert [row["state"] for row in rows] == ["embedding", "layer 0", "layer 1", "layer 2", "own", "chance"]
    assert [float(row["accuracy"]) for row in rows] == pytest.approx([0.01, 0, 0.1, 0.2, 0.375, 0.0625])
    assert {row["accuracy_without"] for row in rows} == {""}
    assert f"'{HOSTILE_FILE}" in client.get(f"{VS}.csv").text.replace('""', '"')


@pytest.mark.parametrize(("content", "said"), [
    (None, f"lexiscope stitch {GPT2} {LLAMA} --texts FILE"), (b"[{", "stitching.json is damaged"),
    ("other weights", f"lexiscope stitch {GPT2} {LLAMA} --texts FILE"),
])  # fmt: skip
def test_without_runs(site_data: Path, tmp_path: Path, content: bytes | str | None, said: str) -> None:
    data = copied(site_data, tmp_path)
    path = data / "vs" / GPT2 / LLAMA / STITCHING
    path.unlink()
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else dump_runs((stitching_run("1" * 64, "2" * 64, 3),)))
    with visit(data) as visitor:
        page = visitor.get(VS)
        assert page.status_code == 200
        assert said in page.text
        assert str(data) not in page.text
        assert visitor.get(f"{VS}.json").json()["stitching"] == []


@pytest.mark.slow
@pytest.mark.parametrize("layer", [None, 0, 1])
def test_a_sentence_is_what_transformers_makes_of_it(live: TestClient, site_data: Path, layer: int | None) -> None:
    """Its states times the kernel, through the other model's norm and unembedding."""
    asked = {"text": TEXT} | ({} if layer is None else {"layer": str(layer)})
    found: dict[str, Any] = live.get(f"{VS}.json", params=asked).json()["sentence"]
    ids = gpt2().tokenizer.encode(TEXT).ids
    assert [position["token"]["id"] for position in found["positions"]] == ids
    assert (found["text"], found["layer"]) == (TEXT, 2 if layer is None else layer)
    assert (found["predicts_a"], found["predicts_b"]) == ("next", "next")
    a, b = (load(Path(Manifest.load(site_data / name).source)) for name in (GPT2, LLAMA))
    streams: list[torch.Tensor] = []
    a.transformer.h[found["layer"]].register_forward_hook(lambda _, __, output: streams.append(output))
    with torch.inference_mode():
        a(input_ids=torch.tensor([ids]))
        K = torch.from_numpy(np.array(Comparison.open(site_data / "vs" / GPT2 / LLAMA).kernel())).double()
        turned = (streams[0][0].double() @ K).float()
        own = a.lm_head(a.transformer.ln_f(streams[0][0])).softmax(dim=1)
        other = b.lm_head(b.model.norm(turned)).softmax(dim=1)
    for position, mine, theirs in zip(found["positions"], own, other, strict=True):
        for side, expected in (("a", mine), ("b", theirs)):
            assert [token["p"] for token in position[side]] == pytest.approx(expected.topk(5).values.tolist(), rel=1e-3)
            assert [token["id"] for token in position[side]] == expected.topk(5).indices.tolist()


@pytest.mark.slow
def test_the_sentence_on_the_page(live: TestClient) -> None:
    hostile = '<script>alert("dog")</script>'
    page = " ".join(live.get(VS, params={"text": hostile, "layer": "1"}).text.split())
    assert hostile not in page
    assert "<script>alert" not in page
    assert "one earlier</a>" in page
    assert "one later</a>" in page
    assert "<option selected>1</option>" in page
    answer = live.get(f"{VS}.csv", params={"text": TEXT})
    rows = [row for row in csv.DictReader(io.StringIO(answer.text)) if row["token"]]
    assert [row["token"] for row in rows] == ["the", " dog", " and", " the", " lion"]
    assert all(row["reads_b_1"] and row["reads_a_5_id"] for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "status", "said"), [
    ({"text": "dog", "layer": "3"}, 404, "layer 3 does not exist in tiny-gpt2: 0 to 2 do"),
    ({"text": "dog", "layer": "x"}, 422, "layer"), ({"text": "dog", "layer": "-1"}, 422, "layer"),
    ({"text": "a\0b"}, 400, ""), ({"text": "dog " * 70}, 413, "tokens: up to 64 are read"),
    ({"text": "dog", "layr": "1"}, 422, "did you mean layer?"),
])  # fmt: skip
def test_what_no_sentence_is(live: TestClient, asked: dict[str, str], status: int, said: str) -> None:
    answer = live.get(f"{VS}.json", params=asked)
    assert answer.status_code == status
    assert said in answer.json()["error"]["detail"]


@pytest.mark.slow
def test_a_text_that_is_too_large_to_hand_over(site_data: Path, workers: str) -> None:
    with visit(site_data, worker_url=workers, body_limit=1024) as visitor:
        answer = visitor.get(f"{VS}.json?text={'the dog ' * 9}")
        assert answer.status_code == 413
        assert "can be handed from model to model (the setting body_limit)" in answer.json()["error"]["detail"]


@pytest.mark.parametrize(("settings", "asked", "status", "said", "again"), [
    ({"worker_url": AWAY}, {"layer": "1"}, 503, "cannot be reached", True),
    ({"worker_url": AWAY}, {"layer": "3"}, 404, "layer 3 does not exist in tiny-gpt2: 0 to 2 do", False),
    ({"worker": "off"}, {}, 404, "live pages are off", False),
])  # fmt: skip
def test_trouble_with_a_sentence_leaves_the_page(
    site_data: Path, settings: dict[str, str], asked: dict[str, str], status: int, said: str, again: bool
) -> None:
    """It stands in the sentence's place, and only what may be there soon is asked for again."""
    with visit(site_data, **settings) as visitor:
        answer = visitor.get(VS, params={"text": TEXT, **asked})
        assert answer.status_code == status
        assert ("retry-after" in answer.headers, "etag" in answer.headers) == (again, False)
        assert answer.text.count('class="assigned"') == 10 * 3 * 2  # all maps are there
        sentence = answer.text.partition('id="sentence"')[2].partition("</section>")[0]
        assert said in re.sub("<[^>]*>", "", sentence)
        assert ("data-retry=" in sentence, '<meta http-equiv="refresh"' in answer.text) == (again, again)
        if "worker_url" in settings:
            assert f'value="{TEXT}"' in sentence
            assert f"<option selected>{min(int(asked['layer']), 2)}</option>" in sentence
        else:
            assert "<form" not in sentence
        data = visitor.get(VS, params={"text": TEXT, **asked}, headers={"accept": "application/json"})
        assert (data.status_code, said in data.json()["error"]["detail"]) == (status, True)


def test_an_index_of_other_weights_is_not_asked(site_data: Path, tmp_path: Path, workers: str) -> None:
    """The kernel of a comparison fits only the weights that were compared."""
    data = copied(site_data, tmp_path)
    ours, theirs = (Path(Manifest.load(data / name).source) for name in (GPT2, LLAMA))
    changed = shutil.copytree(ours, tmp_path / GPT2)

    def double_embedding(tensors: dict[str, torch.Tensor]) -> None:
        tensors["transformer.wte.weight"] *= 2

    quick_compare(change_weights(changed, double_embedding), theirs, data, force=True, kinds=())
    with visit(data, worker_url=workers) as visitor:
        assert 'name="text"' not in visitor.get(VS).text
        answer = visitor.get(f"{VS}.json", params={"text": TEXT})
        assert answer.status_code == 422
        assert f"{GPT2} has other weights here than when it was compared" in answer.json()["error"]["detail"]
