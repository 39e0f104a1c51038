"""Pages of a classification head: its labels as words, of an encoder with the step before, and of a difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.torch import load_file
from starlette.testclient import TestClient

from lexiscope.precompute.index.index import Index
from tests.support import brute
from tests.support.builds import quick_build
from tests.support.classifiers import LABELS, make_classifier
from tests.support.pages import parsed
from tests.support.site import DIFFERENCE, LLAMA, visit
from tests.support.tables import rows as csv_rows

BERT = "tiny-bert"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    quick_build(make_classifier("bert", folder / BERT), folder / "data", pairs=0, layers=(2,))
    return folder


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Iterator[TestClient]:
    with visit(folder / "data") as visitor:
        yield visitor


def test_every_label_has_its_words(encoder: TestClient, folder: Path) -> None:
    tensors = load_file(folder / BERT / "model.safetensors")
    W_E, V = tensors["bert.embeddings.word_embeddings.weight"], tensors["classifier.weight"]
    ids, _ = brute.vector_lists(W_E.numpy(), V.numpy(), 5)
    content = encoder.get(f"/{BERT}/classifier.json?lens=cosine&k=5").json()
    assert content["labels"] == list(LABELS)
    assert content["dense"] == V.shape[1]
    assert "subtracted" not in content
    assert [each["label"] for each in content["vectors"]] == list(LABELS)
    for number, each in enumerate(content["vectors"]):
        assert [entry["id"] for entry in each["vector"]["top"]] == ids[number, 1, 0].tolist()
        assert [entry["id"] for entry in each["vector"]["bottom"]] == ids[number, 1, 1].tolist()
    rows = csv_rows(encoder, f"/{BERT}/classifier.csv?lens=cosine&k=5")
    assert len(rows) == len(LABELS) * 2 * 5
    assert {row["label"] for row in rows} == set(LABELS)


def test_the_step_before_has_pages_of_its_own(encoder: TestClient) -> None:
    page = parsed(encoder.get(f"/{BERT}/classifier/dense/3").text)
    assert page.all("h1")[0].text.startswith("Dense 3")
    assert [a.attributes["href"] for a in page.all("a", **{"data-key": "]"})] == [f"/{BERT}/classifier/dense/4"]
    one = encoder.get(f"/{BERT}/classifier/dense/3.json").json()["vectors"]
    assert [(each["kind"], each["index"], each["label"]) for each in one] == [("dense", 3, None)]


def test_names_of_labels_are_hostile_text(encoder: TestClient) -> None:
    page = parsed(encoder.get(f"/{BERT}/classifier/classifier/2").text)
    assert "<b>" in page.all("h1")[0].text
    assert "<b>" in page.all("title")[0].text


def test_a_model_links_to_its_head(encoder: TestClient, client: TestClient) -> None:
    assert f"/{BERT}/classifier" in {link.partition("?")[0] for link in parsed(encoder.get(f"/{BERT}").text).links()}
    assert f"/{LLAMA}/classifier" not in client.get(f"/{LLAMA}").text
    assert client.get(f"/{LLAMA}/classifier").status_code == 404
    assert "has no classification head" in client.get(f"/{LLAMA}/classifier.json").json()["error"]["detail"]


@pytest.mark.parametrize("path", ["classifier/3", "dense/99999", "ff_key/0"])
def test_what_is_not_there(encoder: TestClient, path: str) -> None:
    assert encoder.get(f"/{BERT}/classifier/{path}.json").status_code == 404


def test_a_difference_from_a_base_without_a_head_says_so(client: TestClient) -> None:
    content = client.get(f"/{DIFFERENCE}/classifier.json").json()
    assert content["subtracted"] is False
    assert content["minus"]["model"] == LLAMA
    assert "The base has no such head" in client.get(f"/{DIFFERENCE}/classifier").text


def test_a_damaged_file_is_said_and_the_rest_is_served(folder: Path, tmp_path: Path) -> None:
    quick_build(folder / BERT, tmp_path, pairs=0, layers=(2,))
    with visit(tmp_path) as visitor:
        assert visitor.get(f"/{BERT}/classifier").status_code == 200
        path = tmp_path / BERT / "classifier.safetensors"
        path.write_bytes(path.read_bytes()[:-4])
        assert visitor.get(f"/{BERT}/classifier").status_code == 503
        assert visitor.get(f"/{BERT}/ff/2/3").status_code == 200
    assert Index.open(tmp_path / BERT).layers == (2,)
