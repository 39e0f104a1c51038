"""What a head's page offers beside its own lens and preset: the one with more words, if it has more."""

from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from app.views.head import PAIRS, head_view
from app.views.readable import readable
from app.views.readable_alternative import readable_alternative
from precompute.index.index import Index
from precompute.index.layout import shard_layout
from precompute.shape import LENSES, PRESETS
from tests.support.pages import parsed
from tests.support.site import GPT2, LLAMA, copied, visit
from tests.support.synthetic import rewrite_shard


@pytest.mark.parametrize("model", [GPT2, LLAMA])
def test_counts_are_of_pairs_of_two_different_words(site_data: Path, model: str) -> None:
    index = Index.open(site_data / model)
    words = readable(index)
    offered = 0

    def count(lens: str, preset: str, head: int) -> int:
        view = head_view(index, 1, head, lens, preset)
        assert view.vo
        assert view.qk
        ids = [(pair["from"]["id"], pair["to"]["id"]) for pair in (*view.vo.top, *view.qk.top)]
        texts = index.tokens.texts
        return sum(
            texts[a].strip().lower() != texts[b].strip().lower() and None not in (words.stem(a), words.stem(b))
            for a, b in ids
        )

    for head in range(index.shape.n_heads):
        best = count("cosine", "words", head)
        for lens in LENSES:
            for preset in PRESETS:
                here = count(lens, preset, head)
                found = readable_alternative(index, head_view(index, 1, head, lens, preset))
                if best <= here:
                    assert found is None
                    continue
                assert found
                assert (found.lens, found.preset, found.here, found.there) == ("cosine", "words", here, best)
                assert found.of <= 2 * PAIRS
                assert all(pair["from"]["token"].startswith(" ") for pair in found.pairs)
                offered += 1
    assert offered


def test_the_page_offers_it_and_keeps_its_own_address(client: TestClient, site_data: Path) -> None:
    index = Index.open(site_data / GPT2)
    head = next(head for head in range(index.shape.n_heads) if readable_alternative(index, head_view(index, 1, head)))
    path = f"/{GPT2}/head/1/{head}"
    html = client.get(path).text
    (link,) = [a for a in parsed(html).all("a") if a.text.startswith("Words only")]
    assert link.attributes["href"] == f"{path}?lens=cosine&preset=words"
    there = client.get(link.attributes["href"])
    assert (there.status_code, "Words only" in there.text) == (200, False)
    for matrix in ("vo", "qk"):
        pairs = parsed(client.get(f"{path}/{matrix}?k=20").text)
        assert f"{path}/{matrix}?k=20&lens=cosine&preset=words" in pairs.links()
    assert "Easier to read" not in client.get(f"{path}/vo?preset=distinct").text


def test_damaged_lists_of_the_other_lens_do_not_take_the_page_with_them(site_data: Path, tmp_path: Path) -> None:
    data = copied(site_data, tmp_path)
    index = Index.open(data / GPT2)
    layout = shard_layout(index.stored)
    arrays = {name: np.array(index.shard(1).array(name)) for name in layout}
    arrays["vo.ids"][:, LENSES.index("cosine")] = index.shape.d_vocab
    rewrite_shard(data / GPT2, index.manifest, 1, arrays)
    with visit(data) as visitor:
        assert visitor.get(f"/{GPT2}/head/1/0?lens=cosine").status_code == 503
        page = visitor.get(f"/{GPT2}/head/1/0")
        assert (page.status_code, "Words only" in page.text) == (200, False)
