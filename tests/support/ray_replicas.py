"""`python -m tests.support.ray_replicas DATA FOLDER TOKEN MIN MAX`: replicas of a model on a local Ray cluster.

Prints their address; then `replicas` on standard input prints how many run. Ends when standard input does. What the
replicas compute with is in tests/support/file_held_engine.py: this process needs no torch, and imports none.
"""

import os
import secrets
import sys
from pathlib import Path
from typing import Any

os.environ |= {
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # whatever else fills this machine is no fault of ours
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # else Ray would write one to the user's folder
}

from lexiscope.app.commands.ray_worker import deploy, start_serve
from lexiscope.app.settings import Settings
from lexiscope.app.worker.loading import LoadedModel
from lexiscope.app.worker.ray_serve import Replica, WorkerArguments, bound_application
from tests.support.site import GPT2

LIMITS: dict[str, Any] = {
    "visitor_queue": 2,
    "body_limit": 20_000,
    "prompt_tokens": 40,
    "request_seconds": 240,  # prompts are held while a replica starts, on a machine that is busy
    "batch_size": 1,  # prompts that run together differ from those alone in the last digit of float32
}


class HeldReplica(Replica):
    def load(self, arguments: WorkerArguments, settings: Settings) -> LoadedModel:
        from tests.support.file_held_engine import load_held

        return load_held(settings.data / GPT2, Path(arguments.model))


def main(data: Path, folder: Path, token: str, replicas: int, most_replicas: int) -> None:
    import ray
    from ray import serve

    from lexiscope.app.commands.http_server import browser_address, listen

    listener = listen("127.0.0.1", 0)
    address, port = browser_address(listener), listener.getsockname()[1]
    listener.close()
    ray.init(
        address="local", num_cpus=most_replicas, include_dashboard=False, object_store_memory=100 << 20,
        logging_level="ERROR", log_to_driver=False,
    )  # fmt: skip
    settings = Settings(data=data, worker_token=token, **LIMITS)
    start_serve(settings, "127.0.0.1", port, everywhere=False)
    arguments = WorkerArguments(
        model=str(folder), data=data, min_replicas=replicas, max_replicas=most_replicas, target_requests=3,
        scale_up_seconds=0.1, scale_down_seconds=0.3, look_back_seconds=1,
    )  # fmt: skip
    deploy(GPT2, bound_application(arguments, settings, HeldReplica))
    print(f"{address}/{GPT2}", flush=True)
    for _ in sys.stdin:
        states = serve.status().applications[GPT2].deployments["Worker"].replica_states
        print(f"replicas: {states.get('RUNNING', 0)}", flush=True)
    ray.shutdown()  # and with the cluster all that runs on it


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
