"""What does not exist is named by every view, with what does; test_error_pages.py has what visitors see of it."""

from typing import Any

import pytest

from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.index.index import Index
from tests.support.synthetic import D_VOCAB
from tests.support.views import (
    head_view,
    layer_view,
    model_view,
    neuron_view,
    pairs_view,
    search_view,
    subhead_view,
    token_view,
)


@pytest.mark.parametrize(("view", "arguments", "said"), [
    (neuron_view, (1, 6), "neuron 6: gpt2-like has neurons 0 to 5"),
    (neuron_view, (4, 0), "layer 4: gpt2-like has layers 0 to 3"),
    (neuron_view, (2, 0), "layer 2 of gpt2-like is not built yet"),
    (pairs_view, ("vo", 1, 2), "head 2: gpt2-like has heads 0 to 1"),
    (subhead_view, (1, 1, 4), "subhead 4: gpt2-like has subheads 0 to 3"),
    (head_view, (1, 9), "heads 0 to"),
    (layer_view, (4,), "layers 0 to 3"),
    (layer_view, (0, "dot", "--norm"), "'-norm'"),
    (layer_view, (0, "dot", "norm", D_VOCAB), "tokens 0 to"),
    (layer_view, (0, "dot", "norm", None, 2), "only page 1"),
    (layer_view, (0, "dot", "norm", None, 10**9, 2), "pages 1 to 3"),
    (token_view, (D_VOCAB,), f"tokens 0 to {D_VOCAB - 1}"),
    (token_view, (10**30,), "tokens 0 to"),
    (token_view, (1, "dot", "all", "ff_up"), "w_q, w_k, w_v, w_o, vo_in, vo_out, qk_query, qk_key, vo, qk"),
    (token_view, (1, "dot", "all", None, 2), "only page 1"),
    (token_view, (1, "dot", "all", "ff_key", 10**9), "page 1000000000"),
    (token_view, (1, "dot", "all", "vo", 10**9), "page 1000000000"),
    (search_view, ("a" * 201,), "201 characters: it has at most 200"),
    (search_view, ("\ud800",), "Unicode"),
    (search_view, ("dog", "dot", "ff_up"), "w_q, w_k, w_v, w_o, vo_in, vo_out, qk_query, qk_key, vo, qk"),
    (search_view, ("none", "dot", None, 2), "only page 1"),
    (model_view, ("dot", "x"), "'all', 'distinct' or 'words'"),
])  # fmt: skip
def test_what_does_not_exist_is_named(index: Index, view: Any, arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises((NotFound, BadRequest), match=said):
        view(index, *arguments)
