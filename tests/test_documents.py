"""What the documents name exists: make targets, commands, files. (That commands run: tests/app/test_snippets.py.)"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks.figures import Figure, with_rows
from docs.generate import filled
from lexiscope.app.commands.cli import make_parser

ROOT = Path(__file__).parents[1]
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
}


def test_every_document_is_there() -> None:
    assert DOCUMENTS.keys() >= {
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "SECURITY.md",
        "docs/format.md",
        "docs/index.md",
        "docs/internals/adding.md",
        "docs/internals/architecture.md",
    }


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\(([^)#: ]+)\)", DOCUMENTS[name])
    assert [link for link in links if not (ROOT / name).parent.joinpath(link).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {*re.findall(r"(?:^|`)make ([a-z]+)", DOCUMENTS[name], re.MULTILINE)} <= targets


@pytest.mark.parametrize(
    "name", sorted(DOCUMENTS.keys() - {"docs/format.md"})
)  # which quotes the names of files' contents
def test_commands_exist(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in {*re.findall(r"(?:^|`|bin/)lexiscope ([a-z]+)", DOCUMENTS[name], re.MULTILINE)}:
        with pytest.raises(SystemExit, match=r"^0$"):
            make_parser().parse_args([command, "--help"])
        assert command in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("docs/internals/")])
def test_modules_and_what_stands_in_them_exist(name: str) -> None:
    """A file is named by the end of its path; `file.py: name, other` names what stands in one of these files."""
    modules = [
        file for room in ("app", "benchmarks", "docs", "precompute", "tests") for file in (ROOT / room).rglob("*.py")
    ]
    invented = "tests/app/pages/test_thing.py"  # its recipe for a page
    for path, names in re.findall(r"`([\w/]+\.py)(?:: ([^`]+))?`", DOCUMENTS[name]):
        files = [file for file in modules if file.as_posix().endswith(f"/{path}")]
        assert files or path == invented, path
        sources = [file.read_text(encoding="utf-8") for file in files]
        for defined in filter(None, names.split(", ")):
            pattern = _definition(defined)
            assert any(re.search(pattern, source, re.MULTILINE) for source in sources), f"{path}: {defined}"


@pytest.mark.parametrize("name", [name for name, text in DOCUMENTS.items() if "<!-- generated:" in text])
def test_what_is_generated_is_as_the_code_says(name: str) -> None:
    assert DOCUMENTS[name] == filled(DOCUMENTS[name]), "make docs writes it anew"


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name.startswith("docs/") or name == "README.md"])
def test_lines_are_short(name: str) -> None:
    prose = re.sub(r"<!-- generated.*?<!-- end|^```.*?^```$", "", DOCUMENTS[name], flags=re.MULTILINE | re.DOTALL)
    assert [line for line in prose.splitlines() if len(line) > (300 if line.startswith("|") else 120)] == []


def test_the_readme_is_short() -> None:
    assert (len(DOCUMENTS["README.md"].split()) <= 900, DOCUMENTS["README.md"].count("\n") <= 120) == (True, True)


def test_the_site_of_the_documents_is_built_and_fetches_nothing(tmp_path: Path) -> None:
    """Strictly: a link that leads nowhere, or a page that the contents leave out, is an error."""
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    assert {"index.html", "terminal.html", "internals/adding.html"} <= pages.keys()
    fetched = r'<(?:script|img|source|iframe)\b[^>]*\bsrc="?(?:https?:|//)|<link\b[^>]*href="?(?:https?:|//)'
    assert [name for name, text in pages.items() if re.search(fetched, text)] == []
    styles = "".join(path.read_text() for path in tmp_path.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:https?:|//)|@import", styles) == []


def test_figures_take_the_place_of_those_before() -> None:
    page = DOCUMENTS["docs/speed.md"]
    rows = [Figure("lists", 1.5, 1.0).row("vectors"), Figure("rate", 20, 30, at_least=True, unit="ms").row("new")]
    assert rows == [
        "| vectors | lists | 1.50 × | ≤ 1 × | **short** |",
        "| new | rate | 20.00 ms | ≥ 30 ms | **short** |",
    ]
    written = with_rows(with_rows(page, "vectors", rows[:1]), "new", rows[1:])
    table = filled(written).split("generated: figures")[1].split("<!-- end -->")[0]
    assert {*rows} < {*table.splitlines()}
    assert re.findall(r"^\| vectors .*", table, re.MULTILINE) == rows[:1]
    assert table.count("\n| ") == page.count("\n| ") + 1


def _definition(name: str) -> str:
    """A pattern of the line that defines a name, or the method of Class.method. An ellipsis stands for any part."""
    escaped = re.escape(name.rpartition(".")[2]).replace("…", r"\w*")
    return rf"^\s*(?:async )?(?:def|class) {escaped}\b|^{escaped}(?:: .+)? = "


def test_make_alone_lists_every_target() -> None:
    said = subprocess.run(["make", "-s", "-C", ROOT], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make ([a-z]+) ", said, re.MULTILINE) == [
        "help", "setup", "demo", "test", "quick", "lint", "docs", "bench", "clean",
    ]  # fmt: skip


def test_the_hooks_of_pre_commit_are_the_checks_of_make_lint() -> None:
    entries = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text())
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert [line.removesuffix(" .") for line in re.findall(r"\$\(BIN\)/(.+)", recipe[1])] == entries


def test_the_citation_file_is_of_this_version() -> None:
    """What changes with a release, and the paper as the help page has it. `cffconvert --validate` checks the rest."""
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nversion: {project['version']}\nlicense: {project['license']}\n" in cited
    (doi,) = re.findall(r"^ +doi: (.+)$", cited, re.MULTILINE)
    names = re.findall(r"family-names: (.+)\n +given-names: (.+)$", cited, re.MULTILINE)
    paper = (ROOT / "docs/reading/sharing.md").read_text(encoding="utf-8")
    assert f"doi = {{{doi}}}" in paper
    assert f"author = {{{' and '.join(map(', '.join, names))}}}" in paper
