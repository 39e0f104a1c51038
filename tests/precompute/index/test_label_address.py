"""What addresses of labels name."""

import pytest

from lexiscope.precompute.index.label_address import KINDS, LabelAddress, parse_label_address
from tests.support.synthetic import GPT2, LLAMA


@pytest.mark.parametrize(("text", "parameter"), [
    ("gpt2", ""),
    ("gpt2-medium/vo/16/6", "head"),
    ("gpt2/qk/0/0", "head"),
    ("gpt2/head/3/5", "head"),
    ("gpt2/ff/10/2361", "neuron"),
    ("gpt2/ff_value/10/2361", "neuron"),
    ("gpt2/w_q/3/5/12", "subhead"),
    ("gpt2/sub/3/5/12", "subhead"),
    ("vo/svd/3/5/12", "direction"),
    ("gpt2/qk_key/3/5/999999999", "direction"),
])  # fmt: skip
def test_good(text: str, parameter: str) -> None:
    address = parse_label_address(text)
    assert (str(address), address.parameter) == (text, parameter)


def test_every_kind_is_of_a_parameter() -> None:
    assert all(LabelAddress("gpt2", kind, 0, 0).parameter for kind in KINDS)


@pytest.mark.parametrize(("text", "said"), [
    ("", "a model's name"),
    ("/gpt2/vo/1/2", "a model's name"),
    ("../gpt2/vo/1/2", "a model's name"),
    ("x" * 256, "a model's name"),
    ("vs/vo/1/2", "a model's name"),
    ("labels", "a model's name"),
    ("gpt2/", "one of head, vo"),
    ("gpt2/../../etc/passwd", "one of head, vo"),
    ("openai-community/gpt2/vo/1/2", "one of head, vo"),
    ("gpt2/VO/1/2", "one of head, vo"),
    ("gpt2/vo", "gpt2/vo/layer/head,"),
    ("gpt2/vo/1", "gpt2/vo/layer/head,"),
    ("gpt2/vo/1/2/", "gpt2/vo/layer/head,"),
    ("gpt2/vo/1/2/3", "gpt2/vo/layer/head,"),
    ("gpt2/vo/01/2", "whole numbers"),
    ("gpt2/vo/-1/2", "whole numbers"),
    ("gpt2/vo/1.0/2", "whole numbers"),
    ("gpt2/vo/١/2", "whole numbers"),
    ("gpt2/vo/1/2\n", "whole numbers"),
    ("gpt2/vo/1/1000000000", "whole numbers"),
    ("gpt2/ff/1", "gpt2/ff/layer/neuron,"),
    ("gpt2/w_q/3/5", "gpt2/w_q/layer/head/subhead"),
    ("gpt2/vo_in/3/5", "gpt2/vo_in/layer/head/direction"),
])  # fmt: skip
def test_bad(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"it |after ") as error:
        parse_label_address(text)
    assert said in str(error.value)


@pytest.mark.parametrize(("text", "said"), [
    (f"m/vo/{LLAMA.n_layers - 1}/{LLAMA.n_heads - 1}", None),
    (f"m/vo/{LLAMA.n_layers}/0", f"m has layers 0 to {LLAMA.n_layers - 1}"),
    (f"m/vo/0/{LLAMA.n_heads}", f"m has heads 0 to {LLAMA.n_heads - 1}"),
    (f"m/ff_up/0/{LLAMA.d_mlp - 1}", None),
    (f"m/ff/0/{LLAMA.d_mlp}", f"m has neurons 0 to {LLAMA.d_mlp - 1}"),
    (f"m/w_q/0/0/{LLAMA.d_head}", f"m has subheads 0 to {LLAMA.d_head - 1}"),
    (f"m/svd/0/0/{LLAMA.d_head}", f"m has directions 0 to {LLAMA.d_head - 1}"),
    ("m", None),
])  # fmt: skip
def test_what_a_model_does_not_have(text: str, said: str | None) -> None:
    wrong = parse_label_address(text).what_is_wrong(LLAMA)
    assert (wrong is None) if said is None else said in (wrong or "")


def test_neurons_that_are_not_gated_have_no_up() -> None:
    assert "not gated" in (LabelAddress("m", "ff_up", 0, 0).what_is_wrong(GPT2) or "")


def test_vectors_that_heads_share_are_the_first_heads() -> None:
    """The last of a group of heads has the address of the first, where they share the vector."""
    group = LLAMA.n_heads // LLAMA.n_kv_heads
    assert group > 1
    for kind, first in (("w_k", 0), ("w_v", 0), ("w_q", group - 1), ("sub", group - 1)):
        assert LabelAddress("m", kind, 0, group - 1, 0).in_shape(LLAMA) == LabelAddress("m", kind, 0, first, 0)
