"""The nearest tokens of every token, by cosine of the centred embeddings: reading and checking their file.
Finding them is for nearest_tokens.py, which needs the weights."""

from precompute.files import damaged
from precompute.index.container import Container
from precompute.index.layout import check_arrays, neighbours_layout
from precompute.index.list_checks import fault
from precompute.index.manifest import Manifest
from precompute.index.shard_reader import Array, Floats


def check_neighbours(container: Container, manifest: Manifest) -> None:
    """ShardDamaged unless this is the file of this build, with the arrays it must have."""
    if container.about != {"model": manifest.model, "build": manifest.build}:
        raise damaged(container.path, "belongs to another build")
    check_arrays(container, neighbours_layout(manifest.shape))


def nearest(container: Container, token: int) -> tuple[Array, Floats]:
    """Ids and scores, nearest first."""
    ids, scores = (container.arrays[f"neighbours.{part}"][token] for part in ("ids", "scores"))
    if said := fault(ids, scores, len(container.arrays["neighbours.ids"])):
        raise damaged(container.path, f"is damaged: the list of tokens nearest to {token} {said}")
    return ids, scores
