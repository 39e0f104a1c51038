r"""LaTeX: pdfLaTeX and XeLaTeX set every page without an error, a warning of lost characters or a package."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lexiscope.app.formats.latex import FLOATS, TABLE_ROWS, as_latex, escape
from lexiscope.app.formats.table import Column, Table
from lexiscope.app.formats.text_formats import Source
from lexiscope.app.urls import format_address
from tests.support.site import GPT2, HEADS, LLAMA, PAGES, RELATION, SEEDS, TRANSITION
from tests.support.tables import NASTY

SOURCE = Source("http://x/y?z=1", "weights 12, index build 34")
ENGINES = ("pdflatex", "xelatex")
NO_TABLES = ("help", "help-page", "help-glossary", "settings", "docs", "error", "difference-prompt")
DATA_PAGES = [page for name, page in PAGES.items() if name not in NO_TABLES]

needs_tex = [
    pytest.param(
        engine, marks=pytest.mark.skipif(not shutil.which(engine), reason=f"{engine} is not installed (texlive-xetex)")
    )
    for engine in ENGINES
]


def compiled(engine: str, folder: Path, *exports: str) -> None:
    """Sets exports in one document of no packages; several may have equal labels. What a font lacks is an error."""
    exports = tuple(export.replace(r"\label{", rf"\label{{{at}:") for at, export in enumerate(exports))
    labels = [f"\\ref{{{label}}}" for export in exports for label in re.findall(r"\\label\{(.+?)\}", export)]
    body = "\n\\clearpage\n".join(exports)
    document = f"\\documentclass{{article}}\n\\begin{{document}}\n\\tracinglostchars=3\n{body}\n{' '.join(labels)}\n"
    (folder / "all.tex").write_text(document + "\\listoftables\n\\end{document}\n", encoding="utf-8")
    for _ in range(2):  # the second time with the list of tables
        run = subprocess.run(
            [engine, "-interaction=nonstopmode", "-no-shell-escape", "all.tex"],
            cwd=folder, capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        log = (folder / "all.log").read_text(encoding="utf-8", errors="replace")
        errors = re.findall(r"^!.*(?:\n.*){3}", log, re.MULTILINE)
        assert (errors[:5], run.returncode) == ([], 0)
        assert "Missing character" not in log
    assert "multiply defined" not in log
    assert "undefined references" not in log


def tokens_table(title: str, tokens: list[str]) -> Table:
    columns = (Column("#", "number"), Column("token", "token"), Column("tokens", "tokens"), Column("score", "number"))
    rows = [{"#": at, "token": {"id": at, "token": token}, "score": -0.5} for at, token in enumerate(tokens)]
    return Table(title, columns, [{**row, "tokens": [row["token"]] * 2} for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("engine", needs_tex)
def test_any_text_is_set(engine: str, tmp_path: Path) -> None:
    """All of ASCII in twos at the beginning of a row, all letters of Latin scripts, one of every block beyond, and what
    is hostile; as tokens and in titles."""
    ascii_ = [chr(code) for code in range(32, 127)]
    letters = [chr(code) for code in range(0xA1, 0x250)]
    beyond = [chr(code) for code in range(0x250, 0x30000, 0x80) if not 0xD800 <= code < 0xE000]
    pairs = [first + second for first in ascii_ for second in ascii_]
    texts = Table("t", (Column("x"), Column("y")), [{"x": pair, "y": 1.0} for pair in pairs])
    titles = [tokens_table(text, [text]) for text in (*NASTY, "ンя日 é", "100% & {more} # _ ^ ~ \\")]
    tables = [texts, tokens_table("t", [*NASTY, *letters, *beyond, *map(chr, range(32))]), *titles]
    compiled(engine, tmp_path, as_latex(tables, SOURCE))


@pytest.mark.parametrize("engine", needs_tex[:1])
def test_every_page_is_set(live: TestClient, engine: str, tmp_path: Path) -> None:
    """By one of the engines: what they do with letters is the other test's business."""
    pages = [
        format_address(page, "tex") for page in (*DATA_PAGES, SEEDS, f"{SEEDS}&heads=1", RELATION, TRANSITION, HEADS)
    ]
    pages += [f"/{model}/layer/{layer}.tex?lens=cosine" for model, layer in ((GPT2, 2), (LLAMA, 0))]
    answers = [live.get(page) for page in pages]
    assert {answer.status_code for answer in answers} == {200}
    compiled(engine, tmp_path, *(answer.text for answer in answers))


def test_what_both_engines_have_is_a_letter_and_all_else_a_code_point() -> None:
    assert escape("é ñ ç ü ï ſ") == r"\'{e} \~{n} \c{c} \"{u} \"{\i} \lexchar{017F}{ſ}"
    assert escape("ß ø → ␣") == r"\ss{} \o{} $\to$ \textvisiblespace{}"
    assert escape("ン") == r"\lexchar{30F3}{ン}"
    assert escape("a--b---") == "a-{}-b-{}--"


def test_a_table_has_a_caption_a_label_and_its_source() -> None:
    head, table = as_latex([tokens_table("100% & more", [" dog"])], SOURCE).split("\n\n")
    assert head.startswith("% http://x/y?z=1\n% weights 12, index build 34\n% Compiles with pdfLaTeX and XeLaTeX")
    assert "usepackage" not in head
    assert table.splitlines() == [
        r"\begin{table}[htbp]",
        r"\centering\small\sloppy",
        r"\caption{100\% \& more. Weights 12, index build 34.}",
        r"\label{tab:100-more}",
        r"\begin{tabular}{rlp{0.65\linewidth}r}",
        r"\hline",
        r"\# & token & tokens & score \\",
        r"\hline",
        r"0 & \texttt{\textvisiblespace{}dog} & \texttt{\textvisiblespace{}dog}\quad \texttt{\textvisiblespace{}dog} & "
        r"$-0.500$ \\",
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_long_tables_go_on_in_others() -> None:
    written = as_latex([tokens_table("t", ["a"] * (2 * TABLE_ROWS + 1)), tokens_table("t", ["b"])], SOURCE)
    assert re.findall(r"\\label\{(.+?)\}", written) == ["tab:t", "tab:t-2", "tab:t-3", "tab:t-again2"]
    assert re.findall(r"\\caption\{(.+?)\. W", written) == ["t", "t, continued", "t, continued", "t"]
    many = as_latex([tokens_table(str(at), ["a"]) for at in range(2 * FLOATS + 1)], SOURCE)
    assert many.count("\\clearpage") == 2
    assert as_latex([tokens_table("none", [])], SOURCE).count(r"\begin{tabular}") == 1
