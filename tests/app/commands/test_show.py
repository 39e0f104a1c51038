"""The command line: `lexiscope show` and `lexiscope models` as a person and as a script use them."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lexiscope.app.commands.cli import COMMANDS
from lexiscope.app.formats.json_format import ascii_json
from lexiscope.app.terminal import isolated, print_models, print_view
from lexiscope.precompute.index.data_folder import ModelSummary
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.manifest import MANIFEST
from lexiscope.precompute.index.origin import DEMO_NAME
from lexiscope.precompute.plain_text import file_size
from tests.app.commands.conftest import Refused, Run
from tests.support.processes import ROOT
from tests.support.synthetic import D_VOCAB, GPT2, HOSTILE, LLAMA, PAIRS, K, make_manifest, raw_tokens, write_index
from tests.support.views import (
    direction_view,
    head_view,
    layer_view,
    neuron_view,
    pairs_view,
    seeds_of,
    subhead_view,
    token_view,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    write_index(data / "tiny", make_manifest(GPT2, "tiny"), layers=(1, 3))
    write_index(data / DEMO_NAME, make_manifest(LLAMA, DEMO_NAME))
    write_index(data / "long", make_manifest(GPT2, "long", k=D_VOCAB, pairs=60), layers=(0,))
    return data


@pytest.fixture(autouse=True)
def data_folder(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    monkeypatch.setenv("LEXISCOPE_DATA", str(data))


def drawn(view: Any, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_view(console, view)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


@pytest.mark.parametrize(("asked", "view"), [
    ("ff 1 4", lambda index: neuron_view(index, 1, 4)),
    ("vo 3 1", lambda index: pairs_view(index, "vo", 3, 1)),
    ("vo 3 0 --preset distinct --k 3", lambda index: pairs_view(index, "vo", 3, 0, "dot", "distinct", 3)),
    ("sub 1 0 2 --lens cosine", lambda index: subhead_view(index, 1, 0, 2, "cosine")),
    ("svd 1 0 2 --lens cosine --k 3", lambda index: direction_view(index, 1, 0, 2, "cosine", 3)),
    ("L1N4", lambda index: neuron_view(index, 1, 4)),
    ("l3n0 --lens cosine --k 2", lambda index: neuron_view(index, 3, 0, "cosine", 2)),
    ("1/4", lambda index: neuron_view(index, 1, 4)),  # there are two heads only
    ("3.1", lambda index: head_view(index, 3, 1)),
    ("L3H1", lambda index: head_view(index, 3, 1)),
    ("head 3 1 --preset words", lambda index: head_view(index, 3, 1, "dot", "words")),
    ("1.0.2", lambda index: subhead_view(index, 1, 0, 2)),
    ("L1H0.svd2", lambda index: direction_view(index, 1, 0, 2)),
    ("http://x.org/tiny/head/1/0/svd/3.csv?lens=cosine", lambda index: direction_view(index, 1, 0, 3, "cosine")),
    ("http://x.org/tiny/head/3/0/qk?lens=cosine&preset=words", lambda index: pairs_view(
        index, "qk", 3, 0, "cosine", "words"
    )),
    ("/tiny/head/3/0/vo.csv?lens=cosine&k=2 --lens dot", lambda index: pairs_view(index, "vo", 3, 0, k=2)),
    ("L1", lambda index: layer_view(index, 1, size=None)),
    ("layer 1 --k 2", lambda index: layer_view(index, 1, size=2)),
    ("http://x.org/tiny/layer/1?sort=-norm&token=3", lambda index: layer_view(index, 1, "dot", "-norm", 3, size=None)),
    ("token 3", lambda index: token_view(index, 3, size=None)),
    ("token #3", lambda index: token_view(index, 3, size=None)),
    ("/tiny/token/3?lens=cosine", lambda index: token_view(index, 3, "cosine", size=None)),
])  # fmt: skip
def test_addresses_as_people_write_them(run: Run, data: Path, asked: str, view: Any) -> None:
    expected = view(Index.open(data / "tiny"))
    assert run(f"show tiny {asked} --json") == (0, ascii_json(expected) + "\n", "")
    code, out, err = run(f"show tiny {asked}")
    assert (code, err) == (0, "")
    assert "tiny" in out


def test_a_layer_breaks_no_token_in_a_narrow_terminal(data: Path) -> None:
    view = layer_view(Index.open(data / "tiny"), 1)
    long: Any = dict.fromkeys(("key", "value", "value_bottom"), [{"id": 1, "token": " international"}] * 5)
    rows: list[Any] = [
        {**row, **long, "similarity_bottom": number, "z": 14.5} for row in view.rows for number in (0.0, 0.9)
    ]
    text = drawn(replace(view, rows=rows), 80)
    assert text.count("␣international") == 10 * len(rows)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("width", [80, 140])
def test_the_table_of_a_layer_fits_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No heading is cut into letters; columns that have no room are left out."""
    monkeypatch.setenv("COLUMNS", str(width))
    heading = next(line for line in run("show tiny layer 1")[1].splitlines() if "neuron" in line).split()
    assert {"neuron", "key", "value", "coherence", "similarity", "z"} <= {*heading}
    assert ("class" in heading) == (width == 140)


def test_json_is_whole_unless_k_says_otherwise(run: Run) -> None:
    for options, n in (("", D_VOCAB), ("--k 5", 5)):
        _, out, _ = run(f"show long ff 0 0 --json {options}")
        assert len(json.loads(out)["key"]["top"]) == n


def test_a_neuron_in_the_terminal(run: Run, data: Path) -> None:
    code, out, err = run("show tiny ff 1 4 --lens cosine")
    assert (code, err) == (0, "")
    view = neuron_view(Index.open(data / "tiny"), 1, 4, "cosine")
    assert view.key
    assert view.value
    assert "tiny  layer 1  neuron 4  lens cosine" in out
    assert "key: reads" in out
    assert "value: writes" in out
    assert f"{view.similarity:.3f}" in out
    for entry in (*view.key.top, *view.key.bottom, *view.value.top, *view.value.bottom):
        assert any(isolated(entry["token"]) in line and f"{entry['score']:.3f}" in line for line in out.splitlines())


@pytest.mark.parametrize(("command", "columns"), [
    ("show demo ff 0 1", ("key (the gate): reads", "up: sets strength and sign", "value: writes")),
    ("show tiny vo 1 0", ("top: reads -> writes", "bottom: reads -> writes")),
    ("show tiny qk 1 0", ("top: query -> key", "bottom: query -> key", "Positions are learned, and left out")),
    ("show demo qk 1 0", ("top: query -> key", "scores at distance zero only")),
    ("show demo sub 1 0 2", ("q: query, reads", "k: key, reads", "v: reads", "o: writes", "Heads 0 to 1 share")),
])  # fmt: skip
def test_columns_have_labels(run: Run, command: str, columns: tuple[str, ...]) -> None:
    out = run(command)[1]
    assert all(text in out for text in columns)
    assert "osition" not in run("show demo vo 1 0")[1]


def test_an_empty_list_says_so(data: Path) -> None:
    view = pairs_view(Index.open(data / "tiny"), "vo", 1, 1, "cosine")
    assert view.top == view.bottom == []
    assert drawn(view).count("no pairs") == 2


@pytest.mark.parametrize(("command", "said"), [
    ("long vo 0 0", "At most 20 entries of each list are shown, up to 60 are stored: see --k."),
    ("long vo 0 0 --k 60", None), (f"tiny ff 1 0 --k {K - 1}", f"At most {K - 1} entries"),
    (f"tiny vo 1 0 --k {PAIRS}", None),
])  # fmt: skip
def test_long_lists_are_cut_and_say_so(run: Run, command: str, said: str | None) -> None:
    out = run(f"show {command}")[1]
    assert said in out if said else "At most" not in out


def test_tables_of_a_head_are_cut_and_say_so(run: Run) -> None:
    out = run("show tiny head 1 0 --k 2")[1]
    assert {*re.findall(r"^ *(\d+)  ", out, re.MULTILINE)} == {"0", "1", "2"}  # subheads from 0, ranks from 1
    assert "At most 2 rows of each table are shown, a head has 4 subheads: see --k." in out
    assert "At most" not in run("show tiny 1.0")[1]


@pytest.mark.parametrize(("words", "where", "said"), [
    ("show tiny ff 1 0", ">/dev/full", "cannot write to standard output: No space left"),
    ("show tiny ff 1 0 --json", ">/dev/full", "cannot write to standard output: No space left"),
    ("models", ">&-", "output is closed"),
])  # fmt: skip
def test_nowhere_to_print(words: str, where: str, said: str) -> None:
    command = f"exec {sys.executable} -m lexiscope.app.commands.cli {words} {where}"
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, line.startswith("lexiscope: "), said in line) == (1, True, True)


def test_a_name_or_a_link_is_shown_by_a_process_that_has_read_no_page_yet() -> None:
    command = [sys.executable, "-m", "lexiscope.app.commands.cli", "show", "tiny"]
    by_name, by_link, by_numbers = (
        subprocess.run([*command, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        for words in (["L1N0"], ["/tiny/ff/1/0"], ["ff", "1", "0"])
    )
    assert (by_name.returncode, by_name.stderr) == (0, "")
    assert by_name.stdout == by_link.stdout == by_numbers.stdout != ""


@pytest.mark.parametrize("width", [20, 80, 200])
def test_hostile_tokens_are_harmless(data: Path, width: int) -> None:
    """All tokens of the vocabulary in one list, and nothing in the output that a terminal would obey."""
    text = drawn(neuron_view(Index.open(data / "long"), 0, 0), width)
    isolates = "\N{FIRST STRONG ISOLATE}\N{POP DIRECTIONAL ISOLATE}"
    for character in set(text) - {"\n", *isolates}:
        assert unicodedata.category(character)[0] != "C", ascii(character)
    if width == 200:
        for raw in HOSTILE:
            assert isolated(raw.decode("utf-8", "backslashreplace")) in text


@pytest.mark.parametrize(("text", "shown"), [
    (" dog", "␣dog"), ("a b ", "a␣b␣"), ("<script", "<script"), ("[bold]", "[bold]"), ("\r\n\t", "\\r\\n\\t"),
    ("\x00\x1b[31m\x7f", "\\x00\\x1b[31m\\x7f"),
    ("\u009b\u00a0\u00ad", "\\u009b\\u00a0\\u00ad"),
    (r"\x9b\xa0", r"\x9b\xa0"),  # bytes that are no characters, as TokenTable spells them
    ("\u200b\u202e\u2028", "\\u200b\\u202e\\u2028"),
    ("\U000e0001", "\\U000e0001"), ("\u0301", "◌\u0301"), ("é", "é"), ("שלום", "\u2068שלום\u2069"),
    ("\u2069", "\\u2069"), ("日本語", "日本語"), ("", "(no text)"),
])  # fmt: skip
def test_a_token_in_the_terminal(text: str, shown: str) -> None:
    assert isolated(text) == shown


@pytest.mark.parametrize(("kind", "index", "shown"), [
    ("ff_value", 4, "L1N4"), ("w_q", 7, "L1H2.1"), ("w_o", 11, "L1H3.2"), ("w_k", 2, "L1H0.2"),
    ("w_v", 4, "L1H2.1"),  # heads 2 and 3 share it
    ("vo_in", 4, "L1H1.svd1"), ("qk_key", 11, "L1H3.svd2"),
])  # fmt: skip
def test_seed_results_are_named_as_show_wants_it(data: Path, kind: str, index: int, shown: str) -> None:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    print_view(console, seeds_of(Index.open(data / DEMO_NAME), kind, 1, index, "dog"))
    assert isinstance(console.file, io.StringIO)
    row = next(line for line in console.file.getvalue().splitlines() if kind in line and shown in line)
    assert {shown, kind, "1.500", "0.500", "0.250"} <= set(row.split())
    assert "the best of all vectors stays below 1.250" in console.file.getvalue()


@pytest.mark.parametrize(("command", "code", "said"), [
    ("show gpt2 ff 0 0", 1, "no index of 'gpt2' in"),
    ("show tiny ff 0 0", 1, "layer 0 of tiny is not built yet: 2 of 4 layers are ready (1, 3)"),
    ("show tiny ff 9 0", 1, "layer 9: tiny has layers 0 to 3"),
    ("show tiny ff 1 99", 1, "neuron 99: tiny has neurons 0 to 5"),
    ("show tiny svd 1 1", 2, "svd takes 3 numbers: LAYER HEAD DIRECTION"),
    ("show tiny ff 1 2 3", 2, "ff takes 2 numbers"),
    ("show tiny ff one 2", 2, "invalid int value: 'one'"),
    ("show tiny ff 1 2 --preset words", 2, "--preset is for vo, qk, head, token, not for ff"),
    ("show tiny ff 1 2 --lens l2", 2, "invalid choice: 'l2'"),
    ("show tiny ff 1 2 --k 0", 2, "'0' is not a whole number from 1 on"),
    ("show tiny xx 1 2", 2, "'xx 1 2' is nothing to show: write ff, head, vo"),
    ("show tiny L9N1", 2, "tiny has layers 0 to 3"),
    ("show tiny http://x/gpt2/ff/1/2", 2, "this link is of gpt2, not of tiny: lexiscope show gpt2"),
    ("show tiny token nonesuch", 1, "'nonesuch' is none of tiny"),
    ("show tiny token", 2, "token takes a word: WORD"),
    ("show", 2, "required: MODEL"), ("", 2, "required: COMMAND"), ("explode", 2, "invalid choice: 'explode'"),
])  # fmt: skip
def test_mistakes_are_explained(run: Run, command: str, code: int, said: str) -> None:
    found, out, err = run(*command.split())
    assert (found, out) == (code, "")
    assert said in err


def test_every_command_describes_itself(run: Run) -> None:
    for command in (command.name for command in COMMANDS):
        code, out, err = run(f"{command} --help")
        assert (code, err) == (0, "")
        usage, description, *_ = out.split("\n\n")
        assert usage.startswith(f"usage: lexiscope {command}")
        assert description.endswith(".")
        assert not description.startswith(("positional", "options"))
    assert run("--version")[1].startswith("lexiscope ")
    assert run("--help")[1].startswith("usage: lexiscope")
    assert "needs the weights" in " ".join(run("seeds --help")[1].split())


def test_models(run: Run, data: Path) -> None:
    code, out, err = run("models")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "2 of 4 (1, 3)" in lines["tiny"]
    assert "3 of 3 " in lines[DEMO_NAME]
    assert file_size(sum(path.stat().st_size for path in (data / "tiny").glob("*.safetensors"))) in lines["tiny"]


def test_models_with_faults(run: Run, refused: Refused, data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tiny" / "layer-3.safetensors").write_bytes(b"")
    (tmp_path / "long" / MANIFEST).write_text('{"format": 4}')
    code, out, _ = run(f"models --data {tmp_path}")
    cut_short = f"tiny: {tmp_path / 'tiny' / 'layer-3.safetensors'} is cut short."
    assert all(said in out for said in ("1 of 4 (1)", cut_short, "unusable", "Upgrade lexiscope", "3 of 3"))
    assert code == 0
    assert "is cut short" in refused(f"show tiny ff 3 0 --data {tmp_path}")
    assert run(f"show tiny ff 1 0 --data {tmp_path}")[0] == 0


def test_no_models(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(f"models --data {tmp_path / 'none'}")
    assert code == 0
    assert "No index in" in out
    assert "`lexiscope precompute demo`" in out


def test_data_is_in_the_working_folder_by_default(
    run: Run, monkeypatch: pytest.MonkeyPatch, data: Path, tmp_path: Path
) -> None:
    monkeypatch.delenv("LEXISCOPE_DATA")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(data)
    assert run("show tiny ff 1 0")[0] == 0


def test_names_in_tables_are_not_markup() -> None:
    console = Console(file=io.StringIO(), width=100)
    print_models(console, [ModelSummary("[red]x", Path("x"), errors=("[blink]a",))])
    assert isinstance(console.file, io.StringIO)
    assert "[red]x" in console.file.getvalue()
    assert "[blink]a" in console.file.getvalue()


def spawn(*arguments: str, stdout: int = subprocess.PIPE, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-W", "error", "-m", "lexiscope.app.commands.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, stdout=stdout, stderr=subprocess.PIPE)


@pytest.mark.parametrize("command", ["show long ff 0 0", "show long ff 0 0 --json"])
def test_a_reader_that_has_gone(command: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = spawn(*command.split(), stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("options", [("--json",), ()])
def test_a_terminal_that_knows_ascii_only(options: tuple[str, ...]) -> None:
    done = spawn("show", "long", "ff", "0", "0", "--k", str(D_VOCAB), *options, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    if options:
        assert {entry["token"] for entry in json.loads(done.stdout)["key"]["top"]} == {
            raw.decode("utf-8", "backslashreplace") for raw in raw_tokens()
        }


@pytest.mark.parametrize(("call", "unwanted"), [
    ("main(['show', 'tiny', 'ff', '1', '0'])", "torch tokenizers transformers numba safetensors gguf"),
    ("print(make_parser().format_help())", "torch numpy pydantic rich"),
])  # fmt: skip
def test_a_command_imports_only_what_it_needs(call: str, unwanted: str) -> None:
    script = (
        f"import sys; from lexiscope.app.commands.cli import main, make_parser; {call}; "
        f"print({{*{unwanted.split()}}} & {{*sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", "set()")
