"""The worker as an application of Ray Serve: replicas of one model, which Serve starts, scales and replaces.

Each replica is the service of a plain worker (service.py) with a model of its own. Serve spreads requests over replicas
by how many each has under way. Serve makes no batches; the replica's own queues (lane.py) do. Serve would batch
whatever arrives within some milliseconds, and so put together what should not be: prompts of different panels or
lengths, a costly request before many cheap ones, all requests of one visitor, and requests of visitors who have
left.
"""

import os
import threading
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from ray import serve
from starlette.types import ASGIApp

from lexiscope.app.asgi.middleware import LAST_ANSWERS_SECONDS
from lexiscope.app.settings import Settings, load
from lexiscope.app.worker.loading import LoadedModel, load_model
from lexiscope.app.worker.service import worker_service
from lexiscope.app.worker.worker import Worker
from lexiscope.precompute.live.wire.errors import LiveDown

HEALTH_CHECK_SECONDS = 1.0  # seconds between two checks by which Serve notices that a replica was killed
STARTS = 3  # a model is given up after so many failed starts
Positive = Annotated[float, Field(gt=0)]


class WorkerArguments(BaseModel):
    """One model, and how many replicas it has: `args` of a Serve config file (deploy/serve.yaml)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str  # what `lexiscope worker --model` takes; every node must find it
    data: Path | None = None  # None: LEXISCOPE_DATA on the node of a replica, else ./data
    device: str | None = None  # None: LEXISCOPE_DEVICE on the node of a replica, else auto
    threads: Annotated[int, Field(ge=1)] | None = None  # threads on the CPU; None: as many as a replica has CPUs
    min_replicas: Annotated[int, Field(ge=1)] = 1
    max_replicas: Annotated[int, Field(ge=1)] = 1
    target_requests: Positive = 4.0  # requests under way in each replica: with more, Serve adds replicas
    cpus_per_replica: Annotated[float, Field(ge=0)] = 1.0
    gpus_per_replica: Annotated[float, Field(ge=0)] = 0.0
    scale_up_seconds: Annotated[float, Field(ge=0)] = 10.0
    scale_down_seconds: Annotated[float, Field(ge=0)] = 300.0
    look_back_seconds: Positive = 30.0  # the number of requests under way is averaged over this time

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas is {self.max_replicas}, less than min_replicas, {self.min_replicas}")
        return self


@serve.ingress()  # the app is what __serve_build_asgi_app__ returns, in the replica
class Replica:
    """A replica: one process of Ray Serve with the model in memory. If `settings` is None, they are read from the
    environment of its node."""

    def __init__(self, arguments: WorkerArguments, settings: Settings | None) -> None:
        self._settings = settings or load(data=arguments.data, device=arguments.device)
        loaded = self.load(arguments, self._settings)
        self._worker = Worker(loaded.engine, loaded.name, loaded.weights, self._settings, _end_soon)

    def load(self, arguments: WorkerArguments, settings: Settings) -> LoadedModel:
        threads = arguments.threads or max(1, int(arguments.cpus_per_replica))
        return load_model(arguments.model, settings.data, settings.device, threads)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return worker_service(self._worker, self._settings)

    async def check_health(self) -> None:
        """Raise an error if Ray Serve should replace this replica by another."""
        if self._worker.health().is_stuck(self._settings.request_seconds, self._settings.worker_silence):
            raise LiveDown("a computation takes longer than anybody waits for it")


def application(arguments: WorkerArguments) -> Any:
    """Return the application; a Serve config file names this function in `import_path`."""
    return bound_application(arguments, None)


def bound_application(arguments: WorkerArguments, settings: Settings | None, replica: type = Replica) -> Any:
    """Return the application with these settings, including the token, for its replicas on every node."""
    options = deployment_options(arguments, settings or load())
    return serve.deployment(replica).options(**options).bind(arguments, settings)


def deployment_options(arguments: WorkerArguments, settings: Settings) -> dict[str, Any]:
    # A replica's queue refuses requests with its own message, so Serve lets as many through as a plain worker accepts.
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
    """End this process soon, so that Ray Serve starts another at once: otherwise Serve would check three times before
    it does."""
    ending = threading.Timer(LAST_ANSWERS_SECONDS, os._exit, [1])
    ending.daemon = True
    ending.start()
