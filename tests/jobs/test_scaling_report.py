"""State of a service's autoscaler, as `status` reads it from KEDA's object."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cli import job_views
from ultrascale.cluster_api.objects import SCALED_OBJECT
from ultrascale.cluster_api.server import Cluster
from ultrascale.jobs.serving_report import ScalingReport, scaling_report_of
from ultrascale.jobs.status import job_status

GROUP, PATH = SCALED_OBJECT.group_path, SCALED_OBJECT.path("training", "chat")


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with serve(StubApiServer()) as stub:
        stub.groups.add(GROUP)
        stub.put(f"{given.DEPLOYMENTS}/chat", given.deployment())
        yield stub


def report(cluster: Cluster) -> ScalingReport | None:
    return scaling_report_of(cluster, job_status(cluster, "training", "chat"))


def scaled(*conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": "chat", "labels": {given.JOB_LABEL: "chat"}},
        "spec": {"minReplicaCount": 1, "maxReplicaCount": 6},
        "status": {"conditions": [*conditions]},
    }


def state(kind: str, status: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "message": message}


READY = state("Ready", "True", "ScaledObject is defined correctly and is ready for scaling")


def test_replicas_that_follow_the_load_have_nothing_to_tell(
    stub: StubApiServer, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.put(PATH, scaled(READY, state("Fallback", "False"), state("Paused", "Unknown")))

    found = report(cluster)

    assert found is not None
    assert found == ScalingReport(least=1, most=6, problems=())
    job_views.print_scaling(found)
    assert capsys.readouterr().out == "  autoscale: 1 to 6 replicas\n"


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (
            [state("Ready", "False", "the HPA 'old' already scales it")],
            "KEDA does not scale it: the HPA 'old' already scales it; `kubectl describe "
            "scaledobject chat -n training` has its events",
        ),
        (
            [READY, state("Fallback", "True", "At least one trigger is falling back")],
            "KEDA cannot read the metrics of its pods, so the replicas stay as they are and are "
            "paid for; `kubectl describe scaledobject chat -n training` has its events",
        ),
        (
            [READY, state("Paused", "True")],
            "KEDA is paused, and the replicas stay; take away annotations of autoscaling.keda.sh",
        ),
        ([], "KEDA has not looked at it yet; its pods are in namespace keda"),
    ],
)
def test_replicas_that_stay_are_told_with_the_reason(
    stub: StubApiServer, cluster: Cluster, conditions: list[dict[str, str]], told: str
) -> None:
    """They are paid for at night, or too few by day."""
    stub.put(PATH, scaled(*conditions))

    found = report(cluster)

    assert found is not None
    assert found.problems == (told,)


def test_a_service_with_a_fixed_number_has_no_autoscaler(
    stub: StubApiServer, cluster: Cluster
) -> None:
    assert report(cluster) is None
    stub.groups.discard(GROUP)
    assert report(cluster) is None
    stub.refuse("GET", "/scaledobjects", Refusal(403, "scaledobjects is forbidden"))
    assert report(cluster) is None
