"""Values of the chart `training-job`, for tests to bend, and what becomes of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.folders import DATA
from tests.support.jobs import IMAGE
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.preparation import JobCluster

# As they were published.
SEED = DATA / "seed_job_values.yaml"
Values = Path | Mapping[str, Any]
# A template that says nothing of its nodes.
ANYWHERE: dict[str, Any] = {
    "jobTemplates": {
        "burst": {
            "priorityClassName": "low",
            "resources": {
                "limits": {"nvidia.com/gpu": 8},
                "requests": {"cpu": "32", "memory": "64Gi"},
            },
        }
    }
}


def template(name: str = "production", **changes: Any) -> dict[str, Any]:
    """Return values in which ``changes`` are laid over one template."""
    return {"jobTemplates": {name: changes}}


def resources(
    limits: Mapping[str, Any], requests: Mapping[str, Any], name: str = "production"
) -> dict[str, Any]:
    """Return values in which a template asks for something else."""
    return template(name, resources={"limits": limits, "requests": requests})


def sent(
    cluster: JobCluster, name: str = "production", values: Values = SEED, /, **changes: Any
) -> JobManifests:
    """Return what is sent for a template of ``values``."""
    stated = {"image": IMAGE, **changes}
    changes = {key: value for key, value in stated.items() if value is not None}
    return prepare(cluster, name, values=values, changes=changes)


def told(
    cluster: JobCluster, name: str = "production", values: Values = SEED, /, **changes: Any
) -> list[str]:
    """Return the error lines for a template of ``values``, without the name of their file."""
    try:
        sent(cluster, name, values, **changes)
    except ConfigError as error:
        return [line.partition(": ")[2] for line in error.mistakes]
    return []
