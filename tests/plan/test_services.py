"""Services that share a pool: each fits alone, and those that come last wait for ever."""

from typing import Any

import pytest

from tests.support.needs import KARPENTER, SYSTEM
from tests.support.pools import ON_DEMAND, make_cluster, pool_document
from ultrascale.plan.cluster import assemble
from ultrascale.plan.services import services_share_their_pool

GPU = pool_document(
    name="gpu",
    instance_types=["g6e.12xlarge"],
    provisioner="karpenter",
    purchase=ON_DEMAND,
    efa="none",
    nodes={"max": 4},
)
OTHER = GPU | {"name": "other"}


def service(**keys: Any) -> dict[str, Any]:
    return {"kind": "service", "pool": "gpu", "image": "docker.io/acme/serve:v1", **keys}


def scaled(least: int, most: int) -> dict[str, Any]:
    return {"metric": "cpu", "target": 60, "min": least, "max": most}


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ({"a": service(replicas=2), "b": service(replicas=2)}, None),
        ({"a": service(replicas=4), "b": service(replicas=4, pool="other")}, None),
        ({"a": service(replicas=3), "b": service(replicas=4, resources={"gpu": 1})}, None),
        ({"a": service(replicas=4), "b": service(replicas=4, pool=None)}, None),
        ({"a": service(replicas=4), "b": service(resources={"gpu": 0, "cpu": 1})}, None),
        (
            {"a": service(replicas=3), "b": service(replicas=2)},
            "services a and b take 20 accelerators, of the pool's 16: replicas wait for ever; "
            "raise nodes.max, or lower replicas or autoscale.min",
        ),
        (
            {"a": service(autoscale=scaled(1, 4)), "b": service(replicas=2)},
            "services a and b grow to 24 accelerators, of the pool's 16: replicas wait where all "
            "are at their most; raise nodes.max, or lower replicas or autoscale.max",
        ),
    ],
)
def test_services_that_a_pool_cannot_hold_together_are_told(
    jobs: dict[str, Any], told: str | None
) -> None:
    cluster = make_cluster(pools=[SYSTEM, GPU, OTHER], jobs=jobs, karpenter=KARPENTER)
    plan = assemble(cluster)

    warnings = [*services_share_their_pool(cluster, plan)]

    assert [(each.at, each.text) for each in warnings] == (
        [] if told is None else [(("pools", 1, "nodes"), told)]
    )
