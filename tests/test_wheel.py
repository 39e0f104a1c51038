"""A wheel holds one top-level package, and works in a folder whose files have the names of its rooms."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.synthetic import make_manifest, write_index

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "precompute", "static", "templates")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):
        if (
            name.split("/")[0] in (*ROOMS, "docs", "lexiscope", "pyproject.toml", "README.md", "LICENSE")
            and (ROOT / name).exists()
        ):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name, follow_symlinks=False)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """The Python of a fresh environment that has the wheel and what it needs, but not this clone."""
    environment = wheel.parent / "environment"
    venv.create(environment, symlinks=True)
    packages = next(environment.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as files:
        files.extractall(packages)
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment / "bin" / "python"


@pytest.fixture(scope="module")
def beside_others(wheel: Path) -> Path:
    """A folder with modules and folders of the names that our rooms have, and an index."""
    folder = wheel.parent / "work"
    write_index(folder / "data" / "tiny", make_manifest(), layers=(0,))
    for name in ("app.py", "precompute.py", "static.py"):
        (folder / name).write_text("raise ImportError('somebody else is imported')\n")
    (folder / "templates").mkdir()
    (folder / "templates" / "home.html").write_text("not ours")
    return folder


def run(python: Path, folder: Path, code: str) -> str:
    words = [str(python), "-W", "error", "-c", code]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # which may name this clone
    done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_holds_one_package_and_every_file(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in names} == {"lexiscope"}
    command = ["git", "ls-files", *ROOMS]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {f"lexiscope/{name}" for name in tracked if (ROOT / name).exists()} <= names
    assert {f"lexiscope/reading/{path.name}" for path in (ROOT / "docs/reading").glob("*.md")} <= names


def test_it_is_imported_and_shows_lists(python: Path, beside_others: Path) -> None:
    said = run(
        python, beside_others, "import lexiscope; print(lexiscope.__file__); lexiscope.open('tiny').neuron(0, 0)"
    )
    assert said.startswith(str(python.parents[1]))
    show = "from lexiscope.app.commands.cli import main; raise SystemExit(main(['show', 'tiny', 'ff', '0', '0']))"
    assert "neuron 0" in run(python, beside_others, show)


def test_it_serves(python: Path, beside_others: Path) -> None:
    ask = (
        "import re, subprocess, sys, urllib.request\n"
        'serve = \'from lexiscope.app.commands.cli import main; main(["serve", "--port", "0"])\'\n'
        "with subprocess.Popen([sys.executable, '-c', serve], stdout=subprocess.PIPE, text=True) as server:\n"
        "    address = next(re.findall(r'http://\\S+', line) for line in server.stdout if 'http://' in line)[0]\n"
        "    with urllib.request.urlopen(address.rstrip('/') + '/tiny/ff/0/0') as answer: print(answer.status)\n"
        "    server.terminate()\n"
    )
    assert run(python, beside_others, ask) == "200\n"


def test_an_index_is_read_with_numpy_and_pydantic_alone(python: Path, beside_others: Path) -> None:
    heavy = "{'torch', 'fastapi', 'jinja2', 'rich', 'lexiscope.app'} & sys.modules.keys()"
    code = f"import sys; from lexiscope.index import Index; Index.open('data/tiny').shard(0); print({heavy})"
    assert run(python, beside_others, code) == "set()\n"


@pytest.mark.parametrize("room", ["app", "precompute"])
def test_no_module_has_a_second_name(room: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {room}"], cwd=ROOT, capture_output=True, text=True)
    assert f"ImportError: import lexiscope.{room}, not {room}" in done.stderr
