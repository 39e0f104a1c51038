"""Classification heads: found in every family, their lists those of all scores sorted, checked, subtracted."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from lexiscope.precompute.errors import BadWeights, NotFound, ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.shape import LENSES
from lexiscope.precompute.verify.sample import check_sample
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from lexiscope.precompute.weights.classifier_head import read_head
from tests.support import brute
from tests.support.builds import K, faults, quick_build, small_gpt2, stamps
from tests.support.classifiers import HEADS, LABELS, make_classifier
from tests.support.differences import build_difference, difference_of, nudged, tuned_from
from tests.support.families import FAMILIES, family_parameters

FILE = "classifier.safetensors"


@pytest.mark.parametrize("family", family_parameters(*HEADS))
def test_every_family_has_its_head(tmp_path: Path, family: str) -> None:
    folder = make_classifier(family, tmp_path / "model")
    tensors, names = load_file(folder / "model.safetensors"), HEADS[family]
    head = read_head(describe(Checkpoint.open(folder)))
    assert head
    assert head.labels == LABELS
    assert {kind: vectors.tolist() for kind, vectors in head.vectors.items()} == {
        kind: tensors[name].tolist() for kind, name in names.items()
    }


@pytest.mark.parametrize("family", ["gpt2", "bert-bare", "roberta"])
def test_others_have_none(tmp_path: Path, family: str) -> None:
    """A pooler alone is no classification head."""
    assert read_head(describe(Checkpoint.open(FAMILIES[family].save(tmp_path / "model")))) is None


@pytest.mark.parametrize(("family", "embedding"), [
    ("llama", "model.embed_tokens.weight"), ("bert", "bert.embeddings.word_embeddings.weight"),
])  # fmt: skip
def test_lists_are_those_of_all_scores_sorted(tmp_path: Path, family: str, embedding: str) -> None:
    folder = make_classifier(family, tmp_path / "model")
    index = Index.open(quick_build(folder, tmp_path / "data", pairs=0, layers=(2,)))
    tensors, entry = load_file(folder / "model.safetensors"), index.manifest.classifier
    assert entry
    assert entry.labels == LABELS
    for kind, name in HEADS[family].items():
        V = tensors[name].numpy()
        ids, scores = brute.vector_lists(tensors[embedding].numpy(), V, K)
        assert entry.counts[kind] == len(V)
        for number in range(len(V)):
            for at, lens in enumerate(LENSES):
                lists = index.classifier().vector(kind, number, lens)
                np.testing.assert_array_equal(lists.ids, ids[number, at])
                np.testing.assert_array_equal(lists.scores, scores[number, at])
                assert lists.norm == pytest.approx(float(np.linalg.norm(V[number].astype(np.float64))), rel=1e-7)
    assert faults(index.folder, folder) == []


def test_a_build_goes_on_with_it_and_notices_damage(tmp_path: Path) -> None:
    folder = make_classifier("llama", tmp_path / "model")
    built = quick_build(folder, tmp_path / "data", pairs=0, layers=(2,))
    before = stamps(built)
    quick_build(folder, tmp_path / "data", pairs=0, layers=(2,))
    assert stamps(built) == before  # nothing is made twice
    whole = (built / FILE).read_bytes()
    for damage in (b"", whole[:-8], bytes(len(whole))):
        (built / FILE).write_bytes(damage)
        with pytest.raises(ShardDamaged):
            Index.open(built).classifier()
        assert any(FILE in fault for fault in faults(built))
        assert Index.open(built).shard(2)  # layers are read all the same
        quick_build(folder, tmp_path / "data", pairs=0, layers=(2,))
        assert (built / FILE).read_bytes() == whole
    (built / FILE).unlink()
    quick_build(folder, tmp_path / "data", pairs=0, layers=(2,))
    assert (built / FILE).read_bytes() == whole
    quick_build(folder, tmp_path / "data", pairs=0, layers=(2,), force=True)
    assert (built / "classifier.g2.safetensors").exists()
    assert not (built / FILE).exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classifier", "dense"])
def test_a_wrong_score_is_found_by_brute_force(tmp_path: Path, kind: str) -> None:
    folder = make_classifier("bert", tmp_path / "model")
    built = quick_build(folder, tmp_path / "data", pairs=0, layers=(2,))
    file = Index.open(built).classifier().file
    content, at = bytearray((built / FILE).read_bytes()), file.tensors[f"{kind}.scores"].offset
    content[at : at + 4] = (np.frombuffer(content[at : at + 4], "<f4") * np.float32(1.01)).tobytes()
    (built / FILE).write_bytes(content)
    assert any(f"{kind} 0" in fault for fault in faults(built, folder))


def test_a_model_without_a_head_says_so(tmp_path: Path) -> None:
    index = Index.open(quick_build(small_gpt2(tmp_path / "plain"), tmp_path / "data", pairs=0, layers=(2,)))
    with pytest.raises(NotFound, match="plain has no classification head"):
        index.classifier()


@pytest.mark.parametrize(
    ("kind", "number", "lens"),
    [("ff_key", 0, "dot"), ("classifier", 3, "dot"), ("dense", 0, "dot"), ("classifier", 0, "x")],
)
def test_what_is_not_there(tmp_path: Path, kind: str, number: int, lens: str) -> None:
    folder = make_classifier("gpt2", tmp_path / "model")
    index = Index.open(quick_build(folder, tmp_path / "data", pairs=0, layers=(2,)))
    with pytest.raises(NotFound):
        index.classifier().vector(kind, number, lens)


def test_a_difference_subtracts_heads_of_the_same_shape(tmp_path: Path) -> None:
    base = make_classifier("bert", tmp_path / "base")
    tuned = tuned_from(
        base, tmp_path / "tuned", lambda name, tensor: nudged(tensor, 1) if "classifier" in name else tensor
    )
    index = Index.open(build_difference(tuned, base, tmp_path / "data", pairs=0, layers=(2,)))
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (tuned, base))
    change = (ours["classifier.weight"] - theirs["classifier.weight"]).numpy()
    ids, scores = brute.vector_lists(theirs["bert.embeddings.word_embeddings.weight"].numpy(), change, K)
    lists = index.classifier().vector("classifier", 1, "cosine")
    np.testing.assert_array_equal(lists.ids, ids[1, 1])
    np.testing.assert_array_equal(lists.scores, scores[1, 1])
    norm = float(np.linalg.norm(theirs["classifier.weight"][1].double().numpy()))
    assert index.classifier().base_norm("classifier", 1) == pytest.approx(norm, rel=1e-7)
    assert index.classifier().vector("dense", 5, "dot").norm == 0  # it did not change
    assert _faults_of_difference(index, tuned, base) == []


def test_a_difference_from_a_base_without_a_head_shows_the_tuned_one(tmp_path: Path) -> None:
    base, tuned = FAMILIES["llama"].save(tmp_path / "base"), make_classifier("llama", tmp_path / "tuned", seed=1)
    index = Index.open(build_difference(tuned, base, tmp_path / "data", pairs=0, layers=(2,)))
    entry = index.manifest.classifier
    assert entry
    assert not entry.subtracted
    score = load_file(tuned / "model.safetensors")["score.weight"].numpy()
    W_E = load_file(base / "model.safetensors")["model.embed_tokens.weight"].numpy()
    ids, _ = brute.vector_lists(W_E, score, K)
    np.testing.assert_array_equal(index.classifier().vector("classifier", 2, "dot").ids, ids[2, 0])
    assert index.classifier().base_norm("classifier", 2) is None
    assert _faults_of_difference(index, tuned, base) == []


def test_a_classifier_of_an_untied_model_needs_its_base(tmp_path: Path) -> None:
    tuned = make_classifier("llama", tmp_path / "tuned", tie_word_embeddings=False)
    with pytest.raises(BadWeights, match=r"no lm_head.weight.*add --minus BASE"):
        quick_build(tuned, tmp_path / "data", pairs=0, layers=(2,))
    base = FAMILIES["llama"].save(tmp_path / "base", tie_word_embeddings=False)
    index = Index.open(build_difference(tuned, base, tmp_path / "data", pairs=0, layers=(2,)))
    assert index.manifest.classifier


def _faults_of_difference(index: Index, tuned: Path, base: Path) -> list[str]:
    return [str(fault) for _, fault in check_sample(index, difference_of(tuned, base), 3, seed=1) if fault]
