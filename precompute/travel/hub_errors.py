"""Turn errors of the Hub's client into messages that a person can act on. No message holds a token."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lexiscope.precompute.errors import LexiscopeError, NotPublished, SourceUnreachable, TravelError
from lexiscope.precompute.weights.hub_trouble import HubTrouble, Trouble, explain_hub_errors


@contextmanager
def in_words(repository: str, revision: str | None, folder: Path, writing: bool = False) -> Iterator[None]:
    """Raise the client's errors as errors of Lexiscope; `folder` is where files are written, for the message about a
    full disk."""
    with explain_hub_errors(folder, lambda error: _explain(error, repository, revision, writing)):
        yield


def _explain(error: HubTrouble, repository: str, revision: str | None, writing: bool) -> LexiscopeError:
    match error.kind:
        case Trouble.NO_ID:
            return NotPublished(f"{repository!r} is no repository of the Hub: give owner/name")
        case Trouble.TERMS:
            return NotPublished(
                f"The Hub gives out {repository} only to people who accepted its terms: accept them on its page, "
                "run `hf auth login`, and try again"
            )
        case Trouble.NO_REVISION:
            return NotPublished(
                f"{repository} has no revision {revision}: give a branch, tag or commit that its page lists"
            )
        case Trouble.NO_ACCESS if writing:
            return NotPublished(
                f"The Hub does not let you write to {repository}: run `hf auth login` with a token that may write, or "
                "set HF_TOKEN, and check that the owner in owner/name is you or your organisation"
            )
        case Trouble.NO_ACCESS:
            return NotPublished(
                f"There is no public dataset repository {repository} on the Hub, and no folder of this name here. "
                "Check the spelling (owner/name); for a private one run `hf auth login` first"
            )
        case Trouble.NOT_TAKEN:
            return TravelError(f"The Hub does not take this for {repository}: {error.detail}")
        case Trouble.STATUS if writing and error.status in (409, 412):
            return TravelError(f"{repository} was changed by somebody else meanwhile: run the same command again")
        case Trouble.STATUS:
            return SourceUnreachable(
                f"The Hub answers with status {error.status} when it is asked for {repository}: try again later, the "
                "same command goes on"
            )
        case Trouble.OFFLINE:
            return SourceUnreachable(
                f"{repository} is on the Hub, and HF_HUB_OFFLINE is set: unset it, or give a folder"
            )
        case Trouble.NO_ANSWER:
            return SourceUnreachable(
                f"The Hub cannot be reached for {repository} ({error.detail}): check the network, then run this again"
            )
