"""The files of deploy/ are what Ray Serve and our own code take: schema, import path, arguments, image, names."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from lexiscope.app.settings import PREFIX, Settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]  # they import Ray, which warns

ROOT = Path(__file__).parents[3]
SERVE = yaml.safe_load((ROOT / "deploy" / "serve.yaml").read_text())
KUBERAY = yaml.safe_load((ROOT / "deploy" / "rayservice.yaml").read_text())
CONFIGS = {"serve.yaml": SERVE, "rayservice.yaml": yaml.safe_load(KUBERAY["spec"]["serveConfigV2"])}
GROUPS = [
    KUBERAY["spec"]["rayClusterConfig"]["headGroupSpec"],
    *KUBERAY["spec"]["rayClusterConfig"]["workerGroupSpecs"],
]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_serve_config(name: str) -> None:
    from ray.serve.schema import ServeDeploySchema

    from lexiscope.app.worker.ray_serve import WorkerArguments

    config = ServeDeploySchema.model_validate(CONFIGS[name])
    settings = Settings()
    assert config.http_options.request_timeout_s == settings.request_seconds + 1
    assert config.http_options.keep_alive_timeout_s > 30  # live/connections.py keeps them so long
    for application in config.applications:
        assert application.route_prefix == f"/{application.name}"
        module, _, builder = application.import_path.partition(":")
        (parameter,) = inspect.signature(getattr(import_module(module), builder)).parameters.values()
        assert parameter.annotation is WorkerArguments
        arguments = WorkerArguments.model_validate(application.args)
        assert application.args.keys() <= WorkerArguments.model_fields.keys()
        assert arguments.model == application.name


def test_the_cluster_is_closed_to_others() -> None:
    assert KUBERAY["spec"]["rayClusterConfig"]["authOptions"] == {"mode": "token"}


def test_both_configs_deploy_the_same() -> None:
    assert CONFIGS["serve.yaml"]["applications"] == CONFIGS["rayservice.yaml"]["applications"]


def test_serve_lets_through_whatever_our_queue_does() -> None:
    """Our own queue is the one that refuses."""
    from ray.serve.config import AutoscalingConfig

    from lexiscope.app.worker.ray_serve import WorkerArguments, application, deployment_options

    arguments = WorkerArguments.model_validate(CONFIGS["serve.yaml"]["applications"][0]["args"])
    for settings in (Settings(), Settings(queue=5000), Settings(connections=10)):
        options = deployment_options(arguments, settings)
        assert options["max_ongoing_requests"] >= max(settings.connections, 2 * (settings.queue + settings.batch_size))
        assert options["max_queued_requests"] >= options["max_ongoing_requests"]
    assert options["ray_actor_options"] == {"num_cpus": 1, "num_gpus": 0.25}
    scaling = AutoscalingConfig.model_validate(options["autoscaling_config"])
    assert (scaling.min_replicas, scaling.max_replicas, scaling.target_ongoing_requests) == (1, 8, 4)
    assert type(application(arguments)).__name__ == "Application"


@pytest.mark.parametrize(("wrong", "said"), [
    ({"min_replicas": 3, "max_replicas": 2}, "max_replicas is 2, less than min_replicas, 3"),
    ({"gpus": 1}, "Extra inputs are not permitted"), ({"target_requests": 0}, "greater than 0"),
    ({"min_replicas": 0}, "greater than or equal to 1"),
])  # fmt: skip
def test_arguments_that_are_refused(wrong: dict[str, Any], said: str) -> None:
    from lexiscope.app.worker.ray_serve import WorkerArguments

    with pytest.raises(ValueError, match=re.escape(said)):
        WorkerArguments.model_validate({"model": "gpt2", **wrong})


def test_the_manifest_of_kuberay() -> None:
    assert (KUBERAY["apiVersion"], KUBERAY["kind"]) == ("ray.io/v1", "RayService")
    version = re.search(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert version
    assert KUBERAY["spec"]["rayClusterConfig"]["rayVersion"] == version[1]
    dockerfile = (ROOT / "Dockerfile").read_text()
    for group in GROUPS:
        (container,) = group["template"]["spec"]["containers"]
        assert f"-t {container['image']} ." in dockerfile
        assert f"--uid {group['template']['spec']['securityContext']['runAsUser']}" in dockerfile
        served = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert served["serve"] == CONFIGS["rayservice.yaml"]["http_options"]["port"]
        ours = [entry["name"] for entry in container["env"] if entry["name"].startswith(PREFIX)]
        assert ours == ["LEXISCOPE_WORKER_TOKEN"]
        assert {name.removeprefix(PREFIX).lower() for name in ours} <= Settings.model_fields.keys()
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {"data": CONFIGS["rayservice.yaml"]["applications"][0]["args"]["data"]}
        assert [volume["name"] for volume in group["template"]["spec"]["volumes"]] == ["data"]
    workers = GROUPS[1]
    assert 1 <= workers["minReplicas"] <= workers["maxReplicas"]
    assert "EXTRAS=precompute,ray" in dockerfile
