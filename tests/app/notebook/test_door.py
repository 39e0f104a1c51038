"""`import lexiscope` itself: what it has, what it says of it, and what it does not load."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import lexiscope
from lexiscope.precompute.live.wire.asks import PromptArguments
from tests.support.synthetic import make_manifest, write_index

ROOT = Path(__file__).parents[3]
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "polars", "pyarrow", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import lexiscope
model = lexiscope.open("tiny", data=sys.argv[1])
print(model.neuron(0, 0))
asks = {
    "pandas": lambda: model.neurons(0).to_pandas(), "polars": lambda: model.neuron(0, 0).to_polars(),
    "pyarrow": lambda: model.neurons(0).to_arrow(), "torch": lambda: model.run("dog"),
}
for package, ask in asks.items():
    try:
        ask()
    except lexiscope.NeedsPackage as error:
        print(error)
"""


@pytest.mark.parametrize("name", lexiscope.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(lexiscope, name)
    if isinstance(thing, type) and issubclass(thing, Exception):
        return  # drawn as a tree in their modules
    assert inspect.getdoc(thing)
    for member, value in inspect.getmembers(thing):
        if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_a_run_takes_the_same_arguments_wherever_it_is_asked_for() -> None:
    """And says so to people who ask for help."""
    by_name, of_model = (inspect.signature(run).parameters for run in (lexiscope.run, lexiscope.Model.run))
    assert [*by_name.values()][1:] == [*of_model.values()][1:]
    assert [*by_name][:2] == ["model", "text"]
    assert {*of_model} - {"self", "panels"} == PromptArguments.model_fields.keys() - {"panel"}
    assert (of_model["k"].default, of_model["against"].default, of_model["off"].default) == (5, "mean", None)


def test_errors_are_one_tree() -> None:
    errors = [thing for name in lexiscope.__all__ if isinstance(thing := getattr(lexiscope, name), type)]
    assert all(issubclass(error, lexiscope.LexiscopeError) for error in errors if issubclass(error, Exception))


def test_importing_it_and_reading_lists_loads_nothing_heavy(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest())
    code = (
        "import sys, lexiscope; m = lexiscope.open('tiny', data=sys.argv[1]); repr(m.neuron(0, 0)._repr_html_()); "
        "print(sorted({'torch', 'transformers', 'numba', 'pandas', 'polars', 'pyarrow', 'fastapi', 'httpx2', 'ray'}"
        " & sys.modules.keys()))"
    )
    words = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_needs_more_says_so(tmp_path: Path) -> None:
    write_index(tmp_path / "tiny", make_manifest())
    words = [sys.executable, "-W", "error", "-c", WITHOUT, str(tmp_path)]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "to_pandas() needs pandas, which is not installed: pip install pandas\n" in said
    assert "to_polars() needs polars, which is not installed: pip install polars\n" in said
    assert "to_arrow() needs pyarrow, which is not installed: pip install pyarrow\n" in said
    assert "a run needs torch, which is not installed: pip install 'lexiscope[precompute]'\n" in said


def test_types_come_with_it() -> None:
    assert (Path(lexiscope.__file__).parent / "py.typed").is_file()
