"""A plain install, without the modules of the `precompute` extra: reading works, the rest says what to install."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lexiscope.app.commands.cli import EXTRAS
from tests.support.synthetic import make_manifest, write_index

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# The first argument: modules that cannot be found; the rest is the command.
SCRIPT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

missing = sys.argv[1].split(",")
sys.meta_path.insert(0, Missing())
from lexiscope.app.commands.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("data")
    write_index(data / "tiny", make_manifest(), layers=(0,))
    return data


def extra(name: str = "precompute") -> set[str]:
    """The modules of an extra, as pyproject.toml has it."""
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {re.split(r"[\[>]", line)[0].replace("-", "_") for line in requirements[name]}


def run(data: Path, command: str, missing: set[str]) -> tuple[int, str, str]:
    words = [sys.executable, "-W", "error", "-c", SCRIPT, ",".join(missing), *command.split(), "--data", str(data)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_extras_are_known() -> None:
    names = ("precompute", "parquet", "ray")
    known = {name: {module for module, of in EXTRAS.items() if of == name} for name in names}
    assert known == {name: extra(name) for name in names}
    assert extra("hub") == {"huggingface_hub"} < extra()  # what push and pull name instead


def test_an_export_says_what_it_needs(data: Path, tmp_path: Path) -> None:
    _, _, err = run(data, f"export tiny -o {tmp_path / 'lists'}", extra("parquet"))
    assert err.endswith("needs pyarrow, which a plain install leaves out: pip install 'lexiscope[parquet]'\n")


@pytest.mark.parametrize("command", ["push tiny me/tiny", "pull me/tiny"])
def test_a_repository_needs_the_client_of_the_hub_and_no_torch(
    data: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = run(data, command, extra())
    assert (code, err.count("\n")) == (1, 1)
    assert err.endswith("needs huggingface_hub, which a plain install leaves out: pip install 'lexiscope[hub]'\n")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    code, _, err = run(data, command, extra() - {"huggingface_hub"})
    assert (code, "The Hub cannot be reached for me/tiny" in err) == (1, True), err


def test_a_folder_needs_no_more(data: Path, tmp_path: Path) -> None:
    code, _, err = run(tmp_path, f"pull {data / 'tiny'}", extra())
    assert code == 0, err
    assert (tmp_path / "tiny" / "manifest.json").read_bytes() == (data / "tiny" / "manifest.json").read_bytes()


def test_a_build_on_a_cluster_says_what_it_needs(data: Path) -> None:
    code, _, err = run(data, "precompute demo --ray local", {"ray"})
    assert code == 1
    assert err == "lexiscope: this command needs ray, which a plain install leaves out: pip install 'lexiscope[ray]'\n"


@pytest.mark.parametrize("command", ["precompute demo", "seeds tiny dog"])
def test_what_needs_more_says_so(data: Path, command: str) -> None:
    code, _, err = run(data, command, extra())
    assert code == 1
    assert err.startswith("lexiscope: this command needs ")
    assert err.endswith(", which a plain install leaves out: pip install 'lexiscope[precompute]'\n")
    assert err.count("\n") == 1
    assert err.removeprefix("lexiscope: this command needs ").split(",")[0] in extra()


@pytest.mark.parametrize("command", ["show tiny ff 0 0", "verify tiny --sums-only"])
def test_reading_needs_no_more(data: Path, command: str) -> None:
    code, out, err = run(data, command, extra())
    assert (code, err) == (0, "")
    assert out


def test_another_missing_module_is_a_fault_of_the_install(data: Path) -> None:
    code, _, err = run(data, "models", {"rich"})
    assert code == 1
    assert err.startswith("Traceback")
    assert "No module named 'rich'" in err


def test_a_worker_loads_neither_builds_nor_transformers() -> None:
    heavy = "{'lexiscope.precompute.build.job', 'transformers'} & sys.modules.keys()"
    code = f"import sys, lexiscope.precompute.live.engine, lexiscope.precompute.weights.sources; print({heavy})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
