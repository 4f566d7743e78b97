"""Apps of TorchX for tests to bend, and the jobs that they become."""

from pathlib import Path
from typing import Any

from torchx.specs import AppDef, Resource, Role
from torchx.specs.builders import materialize_appdef
from torchx.specs.finder import get_component

from tests.support.folders import ROOT
from ultrascale.jobs import JobManifests
from ultrascale_torchx.errors import AppError
from ultrascale_torchx.scheduler import create_ultrascale

CLUSTER = ROOT / "clusters" / "trainium-bert.yaml"
IMAGE = "docker.io/example/train:1"
NODE = "node.kubernetes.io/instance-type"


def trainium(**changes: Any) -> Resource:
    """Return a whole node as a resource, in which ``changes`` replace fields."""
    fields: dict[str, Any] = {
        "cpu": 100,
        "gpu": 0,
        "memMB": 400_000,
        "devices": {"aws.amazon.com/neuron": 16},
        "capabilities": {NODE: "trn1.32xlarge"},
    }
    return Resource(**{**fields, **changes})


def make_app(**changes: Any) -> AppDef:
    """Return the app `tune` of one role on two nodes; ``changes`` replace fields of the role."""
    fields: dict[str, Any] = {
        "name": "trainer",
        "image": IMAGE,
        "entrypoint": "launch",
        "num_replicas": 2,
        "resource": trainium(),
    }
    return AppDef(name="tune", roles=[Role(**{**fields, **changes})])


def component(path: str, **parameters: str) -> AppDef:
    """Return the app of a component of this repository, by its command line."""
    words = [word for key, value in parameters.items() for word in (f"--{key}", value)]
    return materialize_appdef(get_component(f"{ROOT}/{path}:generateAppDef").fn, words)


def job_of(
    app: AppDef, *, cluster: Path = CLUSTER, **options: str | list[str] | bool
) -> JobManifests:
    """Return what is sent for ``app``."""
    scheduler = create_ultrascale("torchx")
    return scheduler.submit_dryrun(app, {"cluster": str(cluster), **options}).request.manifests


def refusals(app: AppDef) -> list[str]:
    """Return the error lines for ``app``."""
    try:
        job_of(app)
    except AppError as error:
        return [*error.mistakes]
    return []
