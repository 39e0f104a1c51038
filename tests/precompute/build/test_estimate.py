"""What a build says of itself before its first layer: sizes as they will be, times from what first pieces took."""

from dataclasses import replace
from pathlib import Path

import pytest

from lexiscope.precompute.build.estimate import Work, size_text, smaller, time_text
from lexiscope.precompute.build.layer import Costs
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.stored import Stored
from lexiscope.precompute.shape import LENSES, Shape
from tests.support.builds import PAIRS, K, Listener, quick_build

LLAMA_3_8B = Shape(
    architecture="llama", n_layers=32, n_heads=32, n_kv_heads=8, d_model=4096, d_head=128, d_mlp=14336, d_vocab=128256,
    gated=True, tied=False, positions="rotary",
)  # fmt: skip
EVERYTHING = Stored(LLAMA_3_8B, LLAMA_3_8B.kinds, LENSES, k=100, pairs=500)
WHOLE = Work(EVERYTHING, layers=32, neighbours=True, workers=2)
COSTS = Costs(vector=0.02, searches={"dot": 10.0, "cosine": 30.0})


def test_time_is_what_every_piece_takes_over_the_threads() -> None:
    vectors = 3 * 14336 + 2 * 4096 + 2 * 1024 + 4 * 4096 + 0.7 * 2 * 4096  # signs of directions
    assert WHOLE.vector_seconds(COSTS) == pytest.approx((32 * vectors + 128256) * 0.02 / 2)
    assert WHOLE.pair_seconds(COSTS) == pytest.approx(32 * 32 * 2 * (10 + 30) / 2)
    one_lens = replace(WHOLE, stored=replace(EVERYTHING, lenses=("dot",)))
    assert one_lens.pair_seconds(COSTS) == pytest.approx(32 * 32 * 2 * 10 / 2)
    assert replace(WHOLE, stored=replace(EVERYTHING, pairs=0)).pair_seconds(COSTS) == 0


def test_a_long_build_says_what_would_make_it_shorter() -> None:
    text = time_text(WHOLE, COSTS)
    assert text.startswith("it will take about 18.4 h on this machine, 7.1 h for vectors and 11.4 h for pairs of heads")
    for option, less in smaller(WHOLE):
        assert f"{option} saves " in text
        assert less.seconds(COSTS) < WHOLE.seconds(COSTS)
        assert less.n_bytes() < WHOLE.n_bytes()
    assert [option for option, _ in smaller(WHOLE)] == [
        "--pairs 0",
        "--lenses dot",
        "--kinds ff_key,ff_up,ff_value,w_q,w_k,w_v,w_o",
        "--kinds ff_key,ff_value",
    ]


def test_a_short_one_does_not() -> None:
    text = time_text(replace(WHOLE, layers=1), Costs(0.0001, {"dot": 0.1, "cosine": 0.1}))
    assert "saves" not in text
    least = Work(replace(EVERYTHING, kinds=("ff_value",), lenses=("dot",), pairs=0), 32, True, 2)
    assert "saves" not in time_text(least, COSTS)


@pytest.mark.slow
def test_sizes(source: Path, tmp_path: Path) -> None:
    """Those of the files; and of a layer of Llama-3-8B without pairs, less than 8 GB of memory."""
    listener = Listener()
    index = Index.open(quick_build(source, tmp_path, listener))
    n_layers = index.shape.n_layers
    work = Work(index.stored, n_layers, neighbours=True, workers=2, stats=n_layers)
    assert sum(entry.bytes for entry in index.manifest.shards.values()) < 1.3 * work.n_bytes()
    assert work.n_bytes() < 1.3 * index.n_bytes
    assert 5e9 < replace(WHOLE, layers=1, stored=replace(EVERYTHING, pairs=0)).memory() < 8e9
    said = listener.text.getvalue()
    assert f"tiny: {size_text(work)}"[:30] in said
    assert said.count("on this machine") == 1
    assert said.index("on disk") < said.index("on this machine") < said.index("layer 2 is ready")
    assert (index.stored.k, index.stored.pairs) == (K, PAIRS)
