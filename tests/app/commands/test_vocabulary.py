"""`lexiscope vocabulary`: what it takes from files of others, and what it says."""

from pathlib import Path

import pytest

from tests.app.commands.conftest import Refused, Run
from tests.support.site import GPT2


@pytest.fixture
def data(site_data: Path, tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / GPT2).symlink_to(site_data / GPT2)
    return tmp_path / "data"


@pytest.mark.parametrize(("file", "content", "texts"), [
    ("words.txt", "dog\n\n lion \ndog\n", "dog\nlion\n"),
    ("My Reviews.csv", 'id,Review,stars\n1,"a dog,\nand a lion",5\n2,horse,1\n3\n', "a dog, and a lion\nhorse\n"),
    ("notes.csv", "id,note\n1,the longest\n2,column\n", "the longest\ncolumn\n"),
    ("t.tsv", "text\tlabel\na dog\t1\n", "a dog\n"),
])  # fmt: skip
def test_add_list_remove(run: Run, data: Path, tmp_path: Path, file: str, content: str, texts: str) -> None:
    (tmp_path / file).write_text(content)
    code, out, err = run("vocabulary", "add", tmp_path / file, "--data", data)
    assert code == 0, err
    name = {"My Reviews.csv": "my-reviews"}.get(file, Path(file).stem)
    assert (data / "vocabularies" / f"{name}.txt").read_text() == texts
    assert f"{len(texts.splitlines())} texts" in out
    assert f"tokens of {GPT2} occur in it" in out
    assert name in run("vocabulary", "list", "--data", data)[1]
    assert run("vocabulary", "remove", name, "--data", data)[0] == 0
    for words in (("vocabulary", "list"), ("vocabulary",)):
        code, out, _ = run(*words, "--data", data)
        assert code == 0
        assert "lexiscope vocabulary add" in out


@pytest.mark.parametrize(("arguments", "content", "said"), [
    (("add", "FILE"), b"\xff", "not UTF-8"),
    (("add", "FILE"), b" \n", "holds no text"),
    (("add", "FILE", "--name", "../up"), b"dog", "no name of a vocabulary"),
    (("add", "FILE", "--name", "A"), b"dog", "no name of a vocabulary"),
    (("add",), b"", "Give a file"),
    (("add", "/dev/zero"), b"", "cannot be read"),
    (("remove", "../up"), b"", "no vocabulary of the name"),
])  # fmt: skip
def test_refused(
    refused: Refused, data: Path, tmp_path: Path, arguments: tuple[str, ...], content: bytes, said: str
) -> None:
    (tmp_path / "file.txt").write_bytes(content)
    words = [str(tmp_path / "file.txt") if word == "FILE" else word for word in arguments]
    assert said in refused("vocabulary", *words, "--data", data)
    assert not (data / "vocabularies").exists() or not [*(data / "vocabularies").glob("*.txt")]


def test_a_table_without_texts(refused: Refused, data: Path, tmp_path: Path) -> None:
    for content in ("", "a,b\n", "text\n\n"):
        (tmp_path / "t.csv").write_text(content)
        assert "t.csv holds no text" in refused("vocabulary", "add", tmp_path / "t.csv", "--data", data)


def test_what_stands_in_the_way_is_named(run: Run, refused: Refused, data: Path, tmp_path: Path) -> None:
    """A folder and a link to nowhere are no vocabularies, and a file is no folder."""
    folder, words = data / "vocabularies", tmp_path / "words.txt"
    words.write_text("dog")
    folder.write_text("")
    assert "vocabularies" in refused("vocabulary", "add", words, "--data", data)
    folder.unlink()
    (folder / "folder.txt").mkdir(parents=True)
    (folder / "link.txt").symlink_to("nowhere")
    assert "No vocabulary in" in run("vocabulary", "list", "--data", data)[1]
    assert "cannot be removed" in refused("vocabulary", "remove", "folder", "--data", data)
