"""Files of labels: what a good one holds, and what is said of each that is bad."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lexiscope.precompute.index import label_files
from lexiscope.precompute.index.label_files import label_paths, parse_labels, plain_path, read_label_file

EXAMPLE = Path(__file__).parents[3] / "examples" / "labels" / "smollm2.json"
GOOD = {"address": "gpt2/vo/1/2", "title": "Geography"}


def parsed(*entries: Any) -> label_files.LabelFile:
    return parse_labels(json.dumps(entries).encode(), "x.json")


def test_the_example_is_good() -> None:
    file = read_label_file(EXAMPLE, "smollm2.json")
    assert file.errors == ()
    assert [filed.label.about.kind for filed in file.labels] == ["ff", "vo"]
    assert [(filed.file, filed.entry) for filed in file.labels] == [("smollm2.json", 1), ("smollm2.json", 2)]


def test_fields_that_are_missing_have_defaults() -> None:
    (filed,) = parsed(GOOD).labels
    label = filed.label
    assert (label.text, label.source, label.url, label.pairs, label.tokens) == ("", "", "", None, None)
    assert (label.end, label.lens, label.preset) == ("top", "dot", "all")


@pytest.mark.parametrize("fields", [
    {"title": "שלום עולم"},  # written from right to left
    {"title": "🏳\u200d🌈 می\u200cشود"},  # with joiners
    {"title": "<script>alert(1)</script>"},  # text like any other
    {"text": "two\nlines\tand a tab"},
    {"url": "HTTP://Example.org:8080/a?b=c#d"},
    {"url": ""},
    {"tokens": [" dog", "", "\x00", "\u202e", "##ing"]},  # tokens are what they are
    {"pairs": [["a", "b"]], "lens": "cosine", "preset": "words", "end": "bottom"},
    {"address": "gpt2", "text": "of the whole model"},
])  # fmt: skip
def test_good(fields: dict[str, Any]) -> None:
    file = parsed(GOOD | fields)
    assert (len(file.labels), file.errors) == (1, ())


@pytest.mark.parametrize(("fields", "field", "said"), [
    ({"address": None}, "address", "in quotes"),
    ({"address": "gpt2/vo/1"}, "address", "gpt2/vo/layer/head"),
    ({"address": "../../etc/passwd"}, "address", "a model's name"),
    ({"title": ""}, "title", "empty"),
    ({"title": "\u2800\u115f"}, "title", "empty"),
    ({"url": "https://example.org:99999"}, "url", "http"),
    ({"title": 3}, "title", "in quotes"),
    ({"title": "x" * 201}, "title", "200 characters"),
    ({"title": "a\nb"}, "title", "U+000A"),
    ({"title": "a\x1b[2Jb"}, "title", "U+001B"),
    ({"title": "a\u202eb"}, "title", "U+202E"),
    ({"text": "a\x00b"}, "text", "U+0000"),
    ({"text": "x" * 4001}, "text", "4000 characters"),
    ({"source": {"name": "x"}}, "source", "in quotes"),
    ({"url": "javascript:alert(1)"}, "url", "http"),
    ({"url": "//evil.example"}, "url", "http"),
    ({"url": "https://arxiv.org@evil.example"}, "url", "http"),
    ({"url": "https://a b"}, "url", "http"),
    ({"url": "http:\\\\evil.example"}, "url", "http"),
    ({"pairs": [["a"]]}, "pairs.1", "2 is the least"),
    ({"pairs": [["a", 3]]}, "pairs.1.2", "in quotes"),
    ({"pairs": []}, "pairs", "1 is the least"),
    ({"pairs": [["a", "b"]] * 1001}, "pairs", "1000 is the most"),
    ({"tokens": "dog"}, "tokens", "list"),
    ({"tokens": ["x" * 501]}, "tokens.1", "500 characters"),
    ({"pairs": [["a", "b"]], "tokens": ["a"]}, None, "not both"),
    ({"address": "gpt2/ff/1/2", "pairs": [["a", "b"]]}, None, "vo or qk"),
    ({"address": "gpt2", "tokens": ["a"]}, None, "no tokens"),
    ({"end": "left"}, "end", "'top' or 'bottom'"),
    ({"lens": "Dot"}, "lens", "'dot' or 'cosine'"),
    ({"preset": True}, "preset", "'all', 'distinct' or 'words'"),
    ({"titel": "x"}, "titel", "there are address, title"),
])  # fmt: skip
def test_bad_entries_are_named_and_the_others_used(fields: dict[str, Any], field: str | None, said: str) -> None:
    file = parsed(GOOD, GOOD | fields, GOOD)
    assert [filed.entry for filed in file.labels] == [1, 3]
    error = file.errors[0]
    assert error.startswith(f"x.json, entry 2, {field}: " if field else "x.json, entry 2: ")
    assert said in error
    assert error.isprintable()


@pytest.mark.parametrize("entry", [None, 1, "gpt2", [], [[[]]], {}])
def test_what_is_no_label(entry: Any) -> None:
    file = parsed(entry, GOOD)
    assert [filed.entry for filed in file.labels] == [2]
    assert file.errors[0].startswith("x.json, entry 1")


@pytest.mark.parametrize(("content", "said"), [
    (b"", "not JSON"),
    (b"{}", "no list"),
    (b"[" * 3_999_999, "nested too deeply"),
    (b"[NaN]", "NaN"),
    (b"[" + b"1" * 5000 + b"]", "thousands of digits"),
    (b'[{"address": "gpt2", "address": "gpt2", "title": "x"}]', "twice"),
    (b"\xef\xbb\xbf[]", "byte order mark"),
    (b'[{"address": "gpt2", "title": "\xff"}]', "UTF-8"),
    ("[]".encode("utf-16"), "UTF-8"),
    (b"[]" + b" " * 4_000_000, "longer than 4000000 bytes"),
    (b"[" + b"{}," * 20_000 + b"{}]", "20000 at most"),
])  # fmt: skip
def test_bad_files_are_named(content: bytes, said: str) -> None:
    file = parse_labels(content, "x.json")
    assert file.labels == ()
    (error,) = file.errors
    assert error.startswith("x.json: ")
    assert said in error


def test_half_a_character() -> None:
    for content in (b'[{"address": "gpt2", "title": "\\ud800"}]', b'[{"\\udfff": 1}]'):
        file = parse_labels(content, "x.json")
        assert file.labels == ()
        assert file.errors[0].encode().startswith(b"x.json, entry 1")


def test_many_faults_are_counted() -> None:
    errors = parsed(*[{"title": "x"}] * 50, *[{}] * 2).errors
    assert len(errors) == label_files.MOST_ERRORS + 1
    assert errors[-1] == "x.json: 32 more errors like these"


# Files of a folder


def test_a_folder(tmp_path: Path) -> None:
    assert label_paths(tmp_path / "missing") == []
    for name in ("b.json", "a.json", ".hidden.json", "notes.txt", "c.json.partial"):
        (tmp_path / name).touch()
    (tmp_path / "sub.json").mkdir()
    assert [path.name for path in label_paths(tmp_path)] == ["a.json", "b.json", "sub.json"]
    with pytest.raises(NotADirectoryError):
        label_paths(tmp_path / "a.json")


def test_links_may_not_lead_out(tmp_path: Path) -> None:
    folder, outside = tmp_path / "labels", tmp_path / "secret.json"
    folder.mkdir()
    outside.write_text(json.dumps([GOOD]))
    (folder / "x.json").symlink_to(outside)
    file = read_label_file(folder / "x.json", "x.json", inside=folder)
    assert file.labels == ()
    assert "outside" in file.errors[0]
    (folder / "real.json").write_text(json.dumps([GOOD]))
    (folder / "y.json").symlink_to(folder / "real.json")
    assert read_label_file(folder / "y.json", "y.json", inside=folder).labels
    linked = tmp_path / "linked"
    linked.symlink_to(folder)  # the whole folder may be elsewhere
    assert read_label_file(linked / "real.json", "real.json", inside=linked).labels


@pytest.mark.parametrize("what", ["folder", "pipe", "nothing", "circle", "secret"])
def test_what_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.json"
    match what:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)  # nobody writes to it: opening it must not wait
        case "nothing":
            path.symlink_to(tmp_path / "gone.json")
        case "circle":
            path.symlink_to(path)
        case "secret":
            path.touch(0)
            if os.access(path, os.R_OK):
                pytest.skip("the superuser reads everything")
    file = read_label_file(path, "x.json", tmp_path)
    assert file.labels == ()
    assert file.errors[0].startswith("x.json: it cannot be read")


def test_names_of_any_bytes_are_text() -> None:
    path = Path(os.fsdecode(b"caf\xe9\x1b<b>.json"))
    assert plain_path(path) == r"caf\udce9\x1b<b>.json"
