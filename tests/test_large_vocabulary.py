"""A vocabulary of more than 65,536 tokens: ids are four bytes long all the way, from lists to pages and workers."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lexiscope.precompute.build.layer import BuildContext, make_layer
from lexiscope.precompute.build.options import BuildOptions, identify
from lexiscope.precompute.build.shard_writer import write_piece
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.tokens import pack, token_bytes
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.asks import ReadingAsk
from lexiscope.precompute.shape import ENDS, LENSES, MATRICES
from lexiscope.precompute.verify.sample import check_sample
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint
from tests.support.models import tiny_gpt2
from tests.support.views import search_view, token_view

pytestmark = pytest.mark.slow

D_VOCAB, BEYOND = 66_000, 1 << 16


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "large"
    return tiny_gpt2(
        folder, n_layers=1, n_heads=1, d_model=4, d_mlp=60, d_vocab=D_VOCAB, tied=False, dtype=torch.bfloat16
    )


@pytest.fixture(scope="module")
def index(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Index:
    """As a build makes it, but without the nearest tokens, which would be 66,000 lists."""
    checkpoint, folder = Checkpoint.open(source), tmp_path_factory.mktemp("data") / "large"
    model, cpu = describe(checkpoint), torch.device("cpu")
    folder.mkdir()
    tokens = token_bytes(checkpoint.tokenizer_file(), D_VOCAB)
    manifest = identify(model, "0" * 64, BuildOptions(k=50, pairs=200))
    with ThreadPoolExecutor(2) as pool:
        context = BuildContext.of(model, tokens, manifest.stored, cpu, pool)
        arrays = make_layer(context, 0)
    offsets, data = pack(tokens)
    vocabulary: dict[str, NDArray[Any]] = {"token.offsets": offsets, "token.bytes": data}
    for name, side in (("embedding", "reads"), ("unembedding", "writes")):
        embedding = context.projectors[side].embedding
        vocabulary[f"{name}.norm"] = embedding.norm.astype(np.float32)
        vocabulary[f"{name}.centred_norm"] = embedding.centred_norm.astype(np.float32)
    manifest = write_piece(folder, manifest, Piece("vocabulary"), vocabulary)
    write_piece(folder, manifest, Piece("lists", 0), arrays).save(folder)
    return Index.open(folder)


def test_lists_and_pairs_are_right(index: Index, source: Path) -> None:
    model = describe(Checkpoint.open(source))
    assert [fault for _, fault in check_sample(index, model, sample=4, seed=0, rows=8) if fault] == []
    shard = index.shard(0)
    for name in (*index.stored.kinds, *MATRICES):
        assert shard.array(f"{name}.ids").dtype == np.uint32
    for name in ("ff_key", "ff_value"):
        assert BEYOND <= shard.array(f"{name}.ids").max() < D_VOCAB
    assert shard.array("inverted.offsets").shape[-1] == D_VOCAB + 1


@pytest.mark.parametrize("lens", LENSES)
def test_tokens_beyond_are_found_wherever_they_are_listed(index: Index, lens: str) -> None:
    shard, at = index.shard(0), LENSES.index(lens)
    listed = np.unique(np.concatenate([shard.array(f"{kind}.ids")[:, at].ravel() for kind in index.stored.kinds]))
    paired = np.unique(np.concatenate([shard.array(f"{name}.ids")[:, at].ravel() for name in MATRICES]))
    for token in {*listed[listed >= BEYOND].tolist(), *paired[paired >= BEYOND].tolist(), D_VOCAB - 1, BEYOND}:
        view = token_view(index, token, lens, size=None)
        for role in view.roles:
            ids = shard.array(f"{role.kind}.ids")[:, at, ENDS.index(role.end)]  # (n, k)
            rows, ranks = np.nonzero(ids == token)
            places = {(place["index"], place["rank"] - 1) for place in role.places}
            assert places == {*zip(rows.tolist(), ranks.tolist(), strict=True)}
        for matrix in MATRICES:
            ids, counts = (shard.array(f"{matrix}.{part}")[:, at, 0] for part in ("ids", "count"))  # (n_heads, E, ...)
            valid = np.arange(ids.shape[2]) < counts[..., None]
            assert view.totals[matrix] == int(((ids == token).any(axis=-1) & valid).sum())
        search = search_view(index, f"#{token}", lens, size=None)
        assert search.total == sum(role.total for role in view.roles)
        assert all(match["tokens"][0]["id"] == token for match in search.matches)


def test_a_worker_answers_with_such_tokens(source: Path) -> None:
    engine = Engine.load(Checkpoint.open(source), "cpu", 1)
    asks = [ReadingAsk(kind="ff_value", layer=0, index=n, reading="norm", lens="cosine", k=50) for n in range(20)]
    answers = [engine.answer(ask) for ask in asks]
    ids = [entry["id"] for answer in answers for entry in (*answer["top"], *answer["bottom"])]
    assert BEYOND <= max(ids) < D_VOCAB
