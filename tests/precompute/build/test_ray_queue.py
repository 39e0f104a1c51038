"""The queue of a cluster without one: tasks run here, one at a time, and memory runs out when a test says so."""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from precompute.build.cluster import task
from precompute.build.cluster.job import _refusal
from precompute.build.cluster.queue import Order, QueuedBuild, work_off
from precompute.build.cluster.task import BuildShare, Outcome
from precompute.build.layer import Arrays
from precompute.build.options import Options
from precompute.build.pieces import Piece
from precompute.build.prepared import prepare
from precompute.weights.checkpoint import Checkpoint
from tests.support.builds import PAIRS, K, Listener
