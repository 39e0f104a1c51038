"""Files of texts, and texts as tokens of two models."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lexiscope.precompute.compare.texts import Cut, Cutter
from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.texts import read_texts
from lexiscope.precompute.weights.architectures import describe
from lexiscope.precompute.weights.checkpoint import Checkpoint


def test_a_text_in_each_line(tmp_path: Path) -> None:
    path = tmp_path / "Some.TXT"
    path.write_bytes(b"\xef\xbb\xbfthe dog\r\n\n  a lion\x0b and a horse  \n")
    texts = read_texts(path)
    assert (texts.name, texts.texts, texts.labels) == ("Some.TXT", ("the dog", "a lion\x0b and a horse"), None)


def test_columns_in_any_order_and_lines_within_a_text(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text('label,source,text\ngood,imdb,"a ""fine"" dog,\nat last"\n bad ,,a lion\n0,,\n')
    texts = read_texts(path)
    assert texts.texts == ('a "fine" dog,\nat last', "a lion")
    assert texts.labels == ("good", "bad")


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"n\xff.txt")
    path.write_text("a dog")
    assert read_texts(path).name == "n?.txt"


@pytest.mark.parametrize(("name", "content", "said"), [
    ("a.txt", b"", "is empty"), ("a.txt", b" \n\n", "is empty"), ("a.txt", b"d\xffg", "is not UTF-8"),
    ("a.json", b"[]", "give a .txt with a text in each line, or a .csv"), ("a.csv", b"", "no column 'text'.* nothing"),
    ("a.csv", b"text,stars\na,1", "no column 'label'.* text, stars"), ("a.csv", b"text,label\n", "has no rows"),
    ("a.csv", b"text,label\na,1\nb\n", "row 2 has a text and no label"),
    ("a.csv", b"text,label\n" + b"a" * 10_000_001 + b",1\n", "no CSV that can be read"),
    ("gone/b.txt", None, "cannot be read: No such file"), ("folder.txt", None, "cannot be read"),
])  # fmt: skip
def test_what_is_no_file_of_texts(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    (tmp_path / "folder.txt").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BadRequest, match=said):
        read_texts(tmp_path / name)


def test_labels_that_nobody_needs(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("source,text\nimdb,a dog\nimdb,\nimdb,a lion\n")
    texts = read_texts(path, labelled=False)
    assert (texts.texts, texts.labels) == (("a dog", "a lion"), None)
    path.write_text("source,review\nimdb,a dog\n")
    with pytest.raises(BadRequest, match=r"no column 'text': its first line must name text, and has source, review"):
        read_texts(path, labelled=False)
    with pytest.raises(BadRequest, match=r"or a \.csv with a column text"):
        read_texts(tmp_path / "a.json", labelled=False)


@pytest.mark.parametrize(("limit", "expected"), [(3, "ace"), (1, "a"), (6, "abcdef"), (100, "abcdef")])
def test_fewer_texts_are_spread_over_the_file(tmp_path: Path, limit: int, expected: str) -> None:
    """A file that is sorted by label gives texts of every label."""
    path = tmp_path / "sorted.csv"
    path.write_text("text,label\n" + "".join(f"{letter},{letter < 'd'}\n" for letter in "abcdef"))
    texts = read_texts(path).spread(limit)
    assert texts.labels is not None
    assert "".join(texts.texts) == expected
    assert texts.labels == tuple(str(letter < "d") for letter in expected)


@pytest.fixture(scope="session")
def cutter(family_folder: Callable[[str], Path]) -> Callable[..., Cutter]:
    def make(a: str, b: str, length: int = 64) -> Cutter:
        first, second = (describe(Checkpoint.open(family_folder(name))) for name in (a, b))
        return Cutter(first, second, length)

    return make


def test_one_tokenizer_cuts_alike(cutter: Callable[..., Cutter]) -> None:
    both = cutter("bert", "bert-bare").cut("the dog and <b> a lion")
    assert both is not None
    assert both.a == both.b
    assert (both.kept, both.first, both.count) == (slice(0, len(both.a)), 1, len(both.a) - 2)  # [CLS] ... [SEP]


@pytest.mark.parametrize(("a", "b"), [("llama", "phi3"), ("gemma", "phi3")])
def test_special_tokens_of_the_first_that_the_second_lacks_are_left_out(
    cutter: Callable[..., Cutter], a: str, b: str
) -> None:
    """<s> is put before a text by Llama's tokenizer and not by Phi-3's; Gemma puts no space before its first word."""
    both = cutter(a, b).cut("the dog")
    assert both is not None
    assert len(both.a) == len(both.b) + 1
    assert both.kept == slice(1, len(both.a))
    assert both.first == 0
    back = cutter(b, a).cut("the dog")
    assert back is not None
    assert (back.a, back.b, back.lent, back.kept) == (both.b, both.a, 1, slice(0, len(back.a)))  # B lends its own <s>


def test_an_encoder_lends_no_states_of_special_tokens(cutter: Callable[..., Cutter]) -> None:
    """They would tell what the text is. RoBERTa has </s> at the end, too."""
    assert cutter("gpt2", "roberta").cut("the dog") is None
    both = cutter("roberta", "gpt2").cut("the dog")
    assert both is not None
    assert (both.kept, both.lent, both.count) == (slice(1, len(both.b) + 1), 0, len(both.b))


def test_texts_that_are_cut_otherwise(cutter: Callable[..., Cutter]) -> None:
    both = cutter("gpt2", "qwen2")
    assert both.cut("the dog") is not None
    assert both.cut("1969") is None  # digits one by one in Qwen's
    assert both.cut("") is None


@pytest.mark.parametrize(
    ("family", "length", "own"), [("gpt2", 3, 3), ("bert", 5, 3), ("bert", 3, 1), ("llama3", 4, 3)]
)
def test_long_texts_are_cut_with_their_special_tokens(
    cutter: Callable[..., Cutter], family: str, length: int, own: int
) -> None:
    text = "the dog and the lion and the horse"
    short, whole = cutter(family, family, length).cut(text), cutter(family, family).cut(text)
    assert isinstance(short, Cut)
    assert isinstance(whole, Cut)
    assert (len(short.b), short.count) == (length, own)
    assert short.b[: short.first + own] == whole.b[: whole.first + own]
    assert short.b[short.first + own :] == whole.b[whole.first + whole.count :]
