"""Write the parts of the documents that follow from the code: `python -m docs.generate`, part of `make docs`.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`. mkdocs takes this module, too, for its pictures."""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(?<=<!-- generated: )(\w+) -->\n(.*?)(?=<!-- end -->)", re.DOTALL)


def families() -> Iterator[str]:
    """Every family of models by its name, with what reads it."""
    from lexiscope.precompute.weights.architectures import supported

    by_name = {name: model for model in supported().values() for name in model.model_types.values()}
    yield "| family | kind | `model_type` | from GGUF |\n|---|---|---|---|"
    for name, model in sorted(by_name.items(), key=lambda item: (not item[1].causal, item[0].lower())):
        types = [key for key, own in model.model_types.items() if own == name]
        gguf = bool(model.gguf and {*types} & {*model.gguf.architectures})
        kind = "decoder" if model.causal else "encoder"
        yield f"| **{name}** | {kind} | {', '.join(f'`{key}`' for key in types)} | {'yes' if gguf else ''} |"


def settings() -> Iterator[str]:
    """Every setting of the server."""
    from lexiscope.app.settings import Settings, described

    yield "| variable | default | meaning |\n|---|---|---|"
    for row in described(Settings.model_construct()):
        default = "" if row["default"] == "" else f"`{row['default']}`"
        yield f"| `{row['variable']}` | {default} | {row['description']} |"


class Options:
    """Takes the place of a parser, and notes the arguments that a command declares."""

    def __init__(self) -> None:
        self.usage: list[str] = []  # positional arguments
        self.rows: list[str] = []

    def add_argument_group(self, _title: str) -> "Options":
        return self

    def add_argument(self, *names: str, help: str, **settings: Any) -> None:  # noqa: A002
        if help == argparse.SUPPRESS:
            return
        choices = settings.get("choices")
        value = settings.get("metavar") or (f"{{{','.join(choices)}}}" if choices else names[-1].strip("-").upper())
        if not names[0].startswith("-"):
            names = (value,)
            repeated = f"{value} ..." if settings.get("nargs") in ("+", "*") else value
            self.usage.append(f"[{repeated}]" if settings.get("nargs") in ("?", "*") else repeated)
        elif settings.get("action") != "store_true":
            names = (*names[:-1], f"{names[-1]} {value}")
        self.rows.append(f"| `{', '.join(names).replace('|', ', ')}` | {help} |")


def commands() -> Iterator[str]:
    """Every command, with its usage, what it does and its options."""
    from lexiscope.app.commands.cli import COMMANDS

    for command in COMMANDS:
        options = Options()
        for add in command.options:
            add(options)
        usage = " ".join(["lexiscope", command.name, *options.usage, "[OPTION ...]"])
        examples = f"\n{command.examples.strip()}\n" if command.examples else ""
        yield f"### {command.name}\n\n{fill(command.description, 120)}\n\n```text\n{usage}\n{examples}```\n"
        if options.rows:
            yield "\n".join(["| option | meaning |\n|---|---|", *options.rows, ""])


def names() -> Iterator[str]:
    """List what `import lexiscope` has, with the first sentence of each name's description."""
    import lexiscope

    yield "| name | what it is |\n|---|---|"
    for name in sorted(lexiscope.__all__, key=lambda name: (name[0].isupper(), name)):
        words = " ".join((getattr(lexiscope, name).__doc__ or "An error; its message says what is wrong.").split())
        yield f"| `{name}` | {re.split(r'(?<=[.]) ', words, maxsplit=1)[0]} |"


BLOCKS: dict[str, Callable[[], Iterator[str]]] = {each.__name__: each for each in (families, settings, commands, names)}


def filled(text: str) -> str:
    """Return a document with its generated parts as the code gives them now."""

    def write(block: re.Match[str]) -> str:
        lines = BLOCKS[block[1]]() if block[1] in BLOCKS else [block[2].strip()]
        return f"{block[1]} -->\n\n" + "\n".join(lines).strip() + "\n\n"

    return BLOCK.sub(write, text)


def on_files(files: "Files", config: "MkDocsConfig") -> None:
    """Let mkdocs find the pictures where a page names them for people who read it in the repository: in ../static/."""
    from mkdocs.structure.files import File, InclusionLevel

    included = InclusionLevel.INCLUDED  # though its path begins with a dot
    for picture in sorted((DOCS.parent / "static").glob("tour-*.webp")):
        address = f"static/{picture.name}"
        folders = config.docs_dir, config.site_dir, config.use_directory_urls
        files.append(File(f"../{address}", *folders, dest_uri=address, inclusion=included))


if __name__ == "__main__":
    for path in DOCS.rglob("*.md"):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
