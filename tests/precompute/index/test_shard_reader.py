"""An intact index: its lists are those that were stored, read with numpy and pydantic alone."""

import subprocess
import sys
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest

from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.lookup import look_up_in_layer
from lexiscope.precompute.shape import ENDS, LENSES, MATRICES, PRESETS, Shape
from tests.support.synthetic import (
    D_VOCAB,
    GPT2,
    LLAMA,
    PAIRS,
    add_layer,
    make_manifest,
    raw_tokens,
    shard_arrays,
    vocabulary_arrays,
    write_index,
)

SHAPES = {"gpt2-like": GPT2, "llama-like": LLAMA}


@pytest.fixture(scope="module", params=SHAPES)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("data") / request.param
    write_index(folder, make_manifest(SHAPES[request.param], request.param))
    return Index.open(folder)


def test_vectors_are_the_stored_ones(built: Index) -> None:
    for layer in range(built.shape.n_layers):
        arrays, shard = shard_arrays(built.shape, seed=layer), built.shard(layer)
        for kind in built.shape.kinds:
            for row in range(built.shape.count(kind)):
                for at, lens in enumerate(LENSES):
                    found = shard.vector(kind, row, lens)
                    assert np.array_equal([found.top_ids, found.bottom_ids], arrays[f"{kind}.ids"][row, at])
                    assert np.array_equal([found.top_scores, found.bottom_scores], arrays[f"{kind}.scores"][row, at])
                    assert found.norm == arrays[f"{kind}.norm"][row]
                    coherence = [found.coherence_top, found.coherence_bottom]
                    assert coherence == arrays[f"{kind}.coherence"][row, at].tolist()


def test_similarities_are_the_stored_ones(built: Index) -> None:
    stored, shard, shape = shard_arrays(built.shape), built.shard(0), built.shape
    for at, lens in enumerate(LENSES):
        found = [astuple(shard.similarity(n, lens)) for n in range(shape.d_mlp)]
        assert np.array_equal(found, stored["ff.similarity"][:, at])
        for matrix in MATRICES:
            heads = np.ndindex(shape.n_heads, shape.d_head)
            found = [astuple(shard.subhead_similarity(matrix, head, subhead, lens)) for head, subhead in heads]
            assert np.array_equal(found, stored[f"{matrix}.similarity"][:, :, at].reshape(-1, 2))
        for compared in ("ff", *MATRICES):
            for part, read in (("similarity", shard.all_similarities), ("shuffled", shard.all_shuffled)):
                of_all = stored[f"{compared}.{part}"]
                assert np.array_equal(read(compared, lens), of_all.reshape(-1, 2, 2)[:, at])


def test_pairs_are_cut_to_those_that_exist(built: Index) -> None:
    arrays, shard = shard_arrays(built.shape, seed=1), built.shard(1)
    lengths = set()
    for matrix in MATRICES:
        for at in np.ndindex(built.shape.n_heads, 2, 3, 2):
            head, lens, preset, end = at
            found = shard.heads.pairs(matrix, head, LENSES[lens], PRESETS[preset], ENDS[end])
            count = arrays[f"{matrix}.count"][at]
            assert np.array_equal(found.ids, arrays[f"{matrix}.ids"][at][:count])
            assert np.array_equal(found.scores, arrays[f"{matrix}.scores"][at][:count])
            assert found.coherence == arrays[f"{matrix}.coherence"][at]
            lengths.add(len(found.scores))
    assert {0, PAIRS} <= lengths


def test_a_token_finds_every_list_that_holds_it(built: Index) -> None:
    shard, shape = built.shard(2), built.shape
    for lens in LENSES:
        expected: dict[tuple[int, str, str], list[tuple[int, int, float]]] = {}
        for kind in shape.kinds:
            for row in range(shape.count(kind)):
                lists = shard.vector(kind, row, lens)
                for end, ids, scores in zip(ENDS, lists.ids.tolist(), lists.scores.tolist(), strict=True):
                    for rank, (token, score) in enumerate(zip(ids, scores, strict=True)):
                        expected.setdefault((token, kind, end), []).append((rank, row, score))
        for token in range(D_VOCAB):
            for (kind, end), found in look_up_in_layer(built, 2, token, lens, shape.kinds).items():
                places = zip(found.rank.tolist(), found.index.tolist(), found.score.tolist(), strict=True)
                assert sorted(places) == sorted(expected.get((token, kind, end), []))


def test_the_vocabulary(built: Index) -> None:
    assert list(built.tokens) == raw_tokens()
    arrays = vocabulary_arrays(built.shape)
    stored = [array for name, array in arrays.items() if name.endswith("centred_norm")]
    assert np.array_equal(built.centred_norms, stored)


def test_opening_needs_numpy_and_pydantic_alone(built: Index) -> None:
    script = (
        "import sys, pathlib, numpy\n"
        "from lexiscope.precompute.index.index import Index\n"
        "index = Index.open(pathlib.Path(sys.argv[1]))\n"
        "index.shard(0).vector('ff_key', 0, 'dot')\n"
        "heavy = {'torch', 'tokenizers', 'rich', 'numba', 'safetensors', 'lexiscope.app'} & sys.modules.keys()\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script, str(built.folder)], check=True)


def test_wide_vocabularies_have_wide_ids(tmp_path: Path) -> None:
    shape = Shape("gpt2", 1, 1, 1, 2, 1, 1, 70_000, gated=False, tied=True, positions="learned")
    manifest = make_manifest(shape, k=3, pairs=2)
    arrays = vocabulary_arrays(replace(shape, d_vocab=D_VOCAB))
    arrays["token.offsets"] = np.pad(arrays["token.offsets"], (0, 70_000 - D_VOCAB), mode="edge")
    for name in ("embedding.norm", "embedding.centred_norm"):
        arrays[name] = np.zeros(70_000, np.float32)
    manifest = write_piece(tmp_path, manifest, Piece("vocabulary"), arrays)
    add_layer(tmp_path, manifest, 0).save(tmp_path)
    index = Index.open(tmp_path)
    lists = index.shard(0).vector("ff_key", 0, "dot")
    assert lists.ids[0].dtype == np.uint32
    token = int(lists.ids[0][1])
    assert 1 in look_up_in_layer(index, 0, token, "dot", ["ff_key"])["ff_key", "top"].rank
