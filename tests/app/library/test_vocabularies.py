"""Corpora and word lists of the data folder: the tokens that occur in them, and files from anybody."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from lexiscope.app.library.library import Library
from lexiscope.app.library.vocabularies import LONGEST_TEXT, MOST_BYTES, Vocabularies
from lexiscope.precompute.errors import IndexFault, LexiscopeError, NotFound
from lexiscope.precompute.index.manifest import TOKENIZER
from tests.support.site import GPT2


def write(data: Path, name: str, content: bytes) -> Path:
    folder = data / "vocabularies"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(content)
    return folder


@pytest.fixture
def data(site_data: Path, tmp_path: Path) -> Path:
    """A data folder with one model, whose files are links."""
    (tmp_path / GPT2).symlink_to(site_data / GPT2)
    return tmp_path


def found(data: Path, name: str) -> set[int]:
    library = Library(data, every=0)
    vocabulary = library.vocabularies.find(name, library.index(GPT2), library.tokenizer(GPT2))
    return set(np.flatnonzero(vocabulary.tokens).tolist())


def tokens_of(data: Path, *texts: str) -> set[int]:
    tokenizer = Tokenizer.from_file(str(data / GPT2 / TOKENIZER))
    return {token for text in texts for token in tokenizer.encode(text, add_special_tokens=False).ids}


def test_words_stand_with_and_without_a_space_and_texts_as_they_are(data: Path) -> None:
    write(data, "pets", "\ufeffdog\r\n\r\n  cat  \nthe dog and the lion\nthe dog and the lion\n".encode())
    assert found(data, "pets") == tokens_of(data, "dog", " dog", "cat", " cat", "the dog and the lion")
    write(data, "nothing", b"\n \n")
    assert found(data, "nothing") == set()


def test_a_long_line_is_read_in_parts(data: Path) -> None:
    line = "the dog and the lion " * (2 * LONGEST_TEXT // 20)
    write(data, "long", f"{line}\n{'x' * (2 * LONGEST_TEXT + 1)}\n".encode())
    assert found(data, "long") >= tokens_of(data, "the dog and the lion", "x" * 100)


def test_tokens_are_kept_until_the_file_changes(data: Path) -> None:
    folder = write(data, "pets", b"dog\n")
    first = found(data, "pets")
    (kept,) = (folder / ".tokens").iterdir()
    stamp = kept.stat().st_mtime_ns
    assert found(data, "pets") == first
    assert kept.stat().st_mtime_ns == stamp
    write(data, "pets", b"lion\n")
    assert found(data, "pets") == tokens_of(data, "lion", " lion")
    kept.write_bytes(b"damaged")
    assert found(data, "pets") == tokens_of(data, "lion", " lion")
    library = Library(data, every=0)
    assert library.vocabularies.held("pets", library.index(GPT2)) is None
    library.vocabularies.remove("pets")
    assert not kept.exists()
    with pytest.raises(NotFound):
        library.vocabularies.held("pets", library.index(GPT2))


@pytest.mark.parametrize("name", ["../secret", "..", "", "a/b", "A", "x.txt", "a" * 65, "-a", "naïve", "a\n", "a\0"])
def test_a_name_leads_nowhere_else(data: Path, name: str) -> None:
    write(data, "pets", b"dog\n")
    (data / "secret.txt").write_text("dog\n")
    with pytest.raises(NotFound, match="there are pets"):
        Vocabularies(data).stamp(name)


@pytest.mark.parametrize(("content", "said"), [
    (b"dog\nd\xf6g\n", r"not UTF-8 \(line 2\)"), (b"\xff\xfed\x00o\x00", "not UTF-8"),
])  # fmt: skip
def test_a_file_that_is_no_text(data: Path, content: bytes, said: str) -> None:
    write(data, "bad", content)
    with pytest.raises(IndexFault, match=said):
        found(data, "bad")


def test_files_that_are_too_long_or_no_files(data: Path) -> None:
    folder = write(data, "pets", b"dog\n")
    with (folder / "huge.txt").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    os.mkfifo(folder / "pipe.txt")
    (folder / "folder.txt").mkdir()
    for name in ("huge", "pipe", "folder"):
        with pytest.raises(LexiscopeError, match=f"{name}.txt (is longer|cannot be read)"):
            found(data, name)
    (folder / "No Name.txt").touch()
    assert Vocabularies(data).names() == ("huge", "pets")
    assert Vocabularies(data / "none").names() == ()


def test_without_the_tokenizer(data: Path, site_data: Path) -> None:
    (data / GPT2).unlink()
    (data / GPT2).mkdir()
    for path in (site_data / GPT2).iterdir():
        (data / GPT2 / path.name).symlink_to(path)
    (data / GPT2 / TOKENIZER).unlink()
    (data / GPT2 / TOKENIZER).write_text(json.dumps({}))
    write(data, "pets", b"dog\n")
    with pytest.raises(IndexFault, match="no tokenizer"):
        found(data, "pets")
