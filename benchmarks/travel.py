"""An index pushed to a small Hub on this machine and pulled from there, from a static server and from a folder: the
processor time of each against that of copying the folder and hashing it, which every way must do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.models import SIZES
from benchmarks.random_index import gpt2_shape, write_random_index
from lexiscope.precompute.travel.pull import PULLED

LAYERS = 6
MIB = 1 << 20
# Prints the largest resident size of this program; getrusage would also count the process that started it.
RUN = (
    "import sys; from lexiscope.app.commands.cli import main; code = main(sys.argv[1:]); "
    "print(1024 * int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])); sys.exit(code)"
)


def figures(scratch: Path, tokenizer: Path) -> Iterator[Figure]:
    from tests.support import static_server
    from tests.support.dataset_hub import DatasetHub  # what the tests push to

    static_server.PIECE = MIB
    index = write_random_index(scratch / "from", "random-small", gpt2_shape(*SIZES["small"]), tokenizer, LAYERS)
    files = [path for path in index.iterdir() if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    yield Figure(f"an index to send around, {LAYERS} layers of GPT-2 small's size", size / 1e6, unit="MB")
    copying, _ = _run(["cp", "-r", str(index), str(scratch / "copy")])
    hashing, _ = _run(["sha256sum", *map(str, files)])
    yield Figure("cp -r of it, processor time", copying, unit="s")
    yield Figure("sha256sum of its files", hashing, unit="s")

    hub = DatasetHub()
    with hub.serve() as url:
        client = {"HF_ENDPOINT": url, "HF_TOKEN": "hf_benchmark", "HF_HUB_DISABLE_XET": "1"}
        yield from _figures(
            "push", copying + hashing, ["push", index.name, "me/lists", "--data", str(scratch / "from")], client
        )
        yield from _pull("the Hub", "me/lists", index, scratch / "hub", copying + hashing, client)
    with static_server.StaticServer(index.parent).serve() as url:
        yield from _pull("a static server", f"{url}/{index.name}", index, scratch / "web", copying + hashing, {})
    yield from _pull("a folder", str(index), index, scratch / "folder", copying + hashing, {})


def _pull(where: str, asked: str, index: Path, data: Path, floor: float, client: dict[str, str]) -> Iterator[Figure]:
    yield from _figures(f"pull from {where}", floor, ["pull", asked, "--data", str(data)], client)
    arrived = {path.name: path for path in (data / index.name).iterdir() if path.name not in (PULLED, ".lock")}
    same = arrived.keys() == {path.name for path in index.iterdir()}
    same = same and all(path.read_bytes() == (index / name).read_bytes() for name, path in arrived.items())
    yield Figure(f"pulled from {where}, share of files equal to the byte", float(same), 1.0, at_least=True)


def _figures(what: str, floor: float, words: list[str], environment: dict[str, str]) -> Iterator[Figure]:
    seconds, memory = _run([sys.executable, "-c", RUN, *words], environment)
    yield Figure(f"{what}, processor time against both together", seconds / floor)
    yield Figure(f"{what}, peak memory", memory / MIB, unit="MiB")


def _run(words: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """Run a command; return its processor seconds and the last number that it prints."""
    before = os.times()
    done = subprocess.run(
        words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    last = done.stdout.split()[-1:] or ["0"]
    return seconds, float(last[0]) if last[0].replace(".", "").isdigit() else 0.0
