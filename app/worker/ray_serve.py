"""The worker as an application of Ray Serve: replicas of one model, which Serve starts, scales and replaces.

Each replica is the service of a plain worker (service.py) with a model of its own. Serve spreads requests over replicas
by how many each has under way, and gathers nothing: who shares a computation is for the lanes of a replica (lane.py),
because a batch of Serve's, of whatever comes within some milliseconds, would put together what must not be: prompts of
unlike panels or length, a dear one before many cheap ones, all of one visitor's, and those who have left.
"""

import os
import threading
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from ray import serve
from starlette.types import ASGIApp

from lexiscope.app.live.process import is_stuck
from lexiscope.app.settings import Settings, load
from lexiscope.app.worker.limits import Limits
from lexiscope.app.worker.loading import LoadedModel, load_model
from lexiscope.app.worker.service import worker_service
from lexiscope.app.worker.worker import Worker
from lexiscope.precompute.live.wire.errors import LiveDown

GRACE_SECONDS = 1.0  # that the last answers have, where a replica can compute no more
HEALTH_CHECK_SECONDS = 1.0  # after which Serve looks again: a replica that was killed is missed that long
STARTS = 3  # after which a model that cannot be loaded is given up
Positive = Annotated[float, Field(gt=0)]


class WorkerArguments(BaseModel):
    """One model, and how many replicas it has: `args` of a Serve config file (deploy/serve.yaml)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str  # as `lexiscope worker --model` takes it; every node must find it
    data: Path | None = None  # None: as LEXISCOPE_DATA says on the node of a replica, else ./data
    device: str | None = None  # None: likewise LEXISCOPE_DEVICE, else auto
    threads: Annotated[int, Field(ge=1)] | None = None  # on the CPU; None: as many as a replica has CPUs
    min_replicas: Annotated[int, Field(ge=1)] = 1
    max_replicas: Annotated[int, Field(ge=1)] = 1
    target_requests: Positive = 4.0  # under way in each replica: more of them, and there will be more replicas
    cpus_per_replica: Annotated[float, Field(ge=0)] = 1.0
    gpus_per_replica: Annotated[float, Field(ge=0)] = 0.0
    scale_up_seconds: Annotated[float, Field(ge=0)] = 10.0
    scale_down_seconds: Annotated[float, Field(ge=0)] = 300.0
    look_back_seconds: Positive = 30.0  # over which requests under way are averaged

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas is {self.max_replicas}, less than min_replicas, {self.min_replicas}")
        return self


@serve.ingress()  # the app is what __serve_build_asgi_app__ returns, in the replica
class Replica:
    """`settings` are those of its node's environment, unless given."""

    def __init__(self, arguments: WorkerArguments, settings: Settings | None) -> None:
        self._settings = settings or load(data=arguments.data, device=arguments.device)
        loaded = self.load(arguments, self._settings)
        limits = Limits.of(self._settings)
        self._worker = Worker(loaded.engine, loaded.name, loaded.weights, limits, _end_soon)

    def load(self, arguments: WorkerArguments, settings: Settings) -> LoadedModel:
        threads = arguments.threads or max(1, int(arguments.cpus_per_replica))
        return load_model(arguments.model, settings.data, settings.device, threads)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return worker_service(self._worker, self._settings)

    async def check_health(self) -> None:
        """Raises where Serve should put another replica in this one's place."""
        if is_stuck(self._worker.health(), self._settings):
            raise LiveDown("a computation takes longer than anybody waits for it")


def application(arguments: WorkerArguments) -> Any:
    """What a Serve config file names in `import_path`."""
    return bound_application(arguments, None)


def bound_application(arguments: WorkerArguments, settings: Settings | None, replica: type = Replica) -> Any:
    """The application; replicas take these settings to wherever they are, the token included."""
    options = deployment_options(arguments, settings or load())
    return serve.deployment(replica).options(**options).bind(arguments, settings)


def deployment_options(arguments: WorkerArguments, settings: Settings) -> dict[str, Any]:
    # Our own queue refuses, with its own words: Serve lets through whatever a plain worker would.
    admitted = max(settings.connections, 2 * (settings.queue + settings.batch_size))
    return {
        "name": "Worker",
        "max_ongoing_requests": admitted,
        "max_queued_requests": admitted,
        "max_constructor_retry_count": STARTS,
        "autoscaling_config": {
            "min_replicas": arguments.min_replicas,
            "max_replicas": arguments.max_replicas,
            "target_ongoing_requests": arguments.target_requests,
            "upscale_delay_s": arguments.scale_up_seconds,
            "downscale_delay_s": arguments.scale_down_seconds,
            "look_back_period_s": arguments.look_back_seconds,
        },
        "ray_actor_options": {"num_cpus": arguments.cpus_per_replica, "num_gpus": arguments.gpus_per_replica},
        "health_check_period_s": HEALTH_CHECK_SECONDS,
        "health_check_timeout_s": settings.worker_silence,
        "graceful_shutdown_wait_loop_s": 0.2,
        "graceful_shutdown_timeout_s": settings.request_seconds,
    }


def _end_soon() -> None:
    """Ends this process, so that Serve starts another at once: it would look three times before it does."""
    ending = threading.Timer(GRACE_SECONDS, os._exit, [1])
    ending.daemon = True
    ending.start()
