"""The printed lists as labels: all of them, at the parameters they are of, without what is doubtful."""

from lexiscope.precompute.index.label_files import Label
from lexiscope.precompute.paper import lists
from lexiscope.precompute.paper.labels import paper_labels


def labels_at(address: str) -> list[Label]:
    return [filed.label for filed in paper_labels() if filed.label.address == address]


def test_every_list_is_a_label() -> None:
    addresses = [filed.label.address for filed in paper_labels()]
    for head in lists.heads():
        assert f"gpt2-medium/{head.matrix}/{head.layer}/{head.head}" in addresses
    for neuron in lists.neurons():
        assert f"gpt2-medium/ff_key/{neuron.layer}/{neuron.neuron}" in addresses
        assert f"gpt2-medium/ff_value/{neuron.layer}/{neuron.neuron}" in addresses
    assert addresses.count("gpt2") == 5
    assert [filed.entry for filed in paper_labels()] == [*range(1, len(addresses) + 1)]


def test_what_is_doubtful_is_left_out() -> None:
    (geography,) = labels_at("gpt2-medium/vo/16/6")
    (printed,) = (head for head in lists.heads() if (head.matrix, head.layer, head.head) == ("vo", 16, 6))
    assert geography.title == "Geography"
    assert len(geography.pairs or ()) == len(printed.pairs) - len(printed.low_confidence)
    assert "2 more are from garbled print and left out" in geography.text
    (garbled,) = labels_at("gpt2-medium/vo/19/4")  # all of it
    assert garbled.pairs is None
    assert "may be lost" not in garbled.text
    (key,) = labels_at("gpt2-medium/ff_key/3/2711")
    assert key.title == "purposes, sake, purpose"
    assert labels_at("gpt2-medium/qk/22/1")[0].title.count(" → ") == 3
    assert "=-" not in (key.tokens or ())
    assert " purposes" in (key.tokens or ())


def test_every_label_names_its_source() -> None:
    for filed in paper_labels():
        assert filed.label.url == "https://arxiv.org/abs/2209.02535"
        assert "Dar, Geva, Gupta, Berant" in filed.label.source
