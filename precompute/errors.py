"""Define every error that a user can meet, as one tree. A message says what was asked, what is wrong, and what would
work.

LexiscopeError
├── WeightsError                 the model's files
│   ├── SourceNotFound           no such Hub id, folder or file
│   ├── Offline                  the Hub cannot be reached and nothing is cached
│   ├── NoSafetensors            only pickled weights, which are never loaded
│   ├── UnsupportedArchitecture  a checkpoint of a family that is not known
│   ├── WrongHash                a downloaded file is not the one that was asked for
│   └── BadWeights               missing, misshapen or non-finite tensors, a broken tokenizer
├── IndexFault                   an index on disk
│   ├── IndexMissing             there is no index at that place
│   ├── ManifestDamaged          the manifest cannot be read, or is of something else
│   ├── NewerFormat              a newer version wrote the index
│   ├── OldFormat                an older version wrote the index: the message has the command that builds it anew
│   └── ShardDamaged             a file is truncated, altered, or belongs to another build
│       └── ShardUnreadable      a file is missing, or the system refuses to read it: the next try may succeed
├── BuildError                   the precompute job
│   ├── BuildRunning             another process is building the same index
│   ├── OptionsDiffer            the index at that place has other weights or options
│   └── DiskFull
├── TravelError                  an index on its way to or from elsewhere: push, pull
│   ├── NotPublished             no such repository, revision, folder or address, or no index in it
│   ├── ForeignIndex             what is there cannot be taken for an index, or not for this one
│   ├── SourceUnreachable        the other side does not answer: the same command continues later
│   └── AlteredFile              a file that arrived is not the one that its manifest lists
├── ClusterError                 a Ray cluster that cannot be used
├── ServeError                   the server cannot start: its port is taken, a setting is wrong
├── BadRequest                   a question that no page can answer: too long, or not to be understood
└── NotFound                     a model, layer, neuron, head or token that does not exist
    ├── NotBuilt                 a layer that does not exist yet: it may be there at a later try
    ├── OtherBuild               an address asks for a build of an index, and there is another one now
    └── NotStored                a kind, a lens or pairs that the index was built without
"""

from typing import Self


class LexiscopeError(Exception):
    """An error that the user can act on; its text is shown as it is, without a traceback."""

    def bare(self) -> Self:
        """Return this error without its traceback and causes, whose frames would keep files open."""
        return type(self)(str(self))


class WeightsError(LexiscopeError):
    pass


class SourceNotFound(WeightsError):
    pass


class Offline(WeightsError):
    pass


class NoSafetensors(WeightsError):
    pass


class UnsupportedArchitecture(WeightsError):
    pass


class WrongHash(WeightsError):
    pass


class BadWeights(WeightsError):
    pass


class IndexFault(LexiscopeError):
    pass


class IndexMissing(IndexFault):
    pass


class ManifestDamaged(IndexFault):
    pass


class NewerFormat(IndexFault):
    pass


class OldFormat(IndexFault):
    pass


class ShardDamaged(IndexFault):
    pass


class ShardUnreadable(ShardDamaged):
    pass


class BuildError(LexiscopeError):
    pass


class BuildRunning(BuildError):
    pass


class OptionsDiffer(BuildError):
    pass


class DiskFull(BuildError):
    pass


class TravelError(LexiscopeError):
    pass


class NotPublished(TravelError):
    pass


class ForeignIndex(TravelError):
    pass


class SourceUnreachable(TravelError):
    pass


class AlteredFile(TravelError):
    pass


class ClusterError(LexiscopeError):
    pass


class ServeError(LexiscopeError):
    pass


class BadRequest(LexiscopeError):
    pass


class NotFound(LexiscopeError):
    pass


class NotBuilt(NotFound):
    pass


class OtherBuild(NotFound):
    pass


class NotStored(NotFound):
    pass


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, for a message: libraries write tracebacks and pages of advice
    below it."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
