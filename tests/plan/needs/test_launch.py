"""The shortest time from a launch to the first training step."""

from typing import Any

import pytest

from tests.support.needs import KARPENTER, POD_RANGES, needs
from tests.support.pools import (
    HYPERPOD_POOL,
    ODCR,
    SYSTEM_POOL,
    make_cluster,
    make_document,
    pool_document,
)
from ultrascale.catalog import quotas
from ultrascale.plan import plan_cluster
from ultrascale.plan.needs.launch import image_requests
from ultrascale.plan.needs.report import plan_needs

FLEET = {"option": "odcr", "reservation_tags": {"fleet": "trn2"}}


def launch(nodes: int, tier: str = "standard") -> dict[str, float | None]:
    """Return the times of a launch of ``nodes``, four of which are the system pool's."""
    pool = pool_document(
        instance_types=["trn1.32xlarge"],
        purchase=FLEET,
        provisioner="karpenter",
        role="reserved",
        nodes={"static": nodes - 4},
    )
    kubernetes = make_document()["kubernetes"] | {"control_plane_tier": tier}
    found = needs(pool, karpenter=KARPENTER, network=POD_RANGES, kubernetes=kubernetes)
    return {key: figure.value for key, figure in found.launch.items()}


def test_a_hundred_thousand_nodes_take_a_night_unless_aws_raises_its_throttle() -> None:
    """13.75 hours as RunInstances is throttled by default; 50 minutes is what AWS measured."""
    found = launch(100_000)

    assert found["run_instances_minutes"] == 13.75 * 60
    assert found["measured_minutes"] == 50


@pytest.mark.parametrize(("nodes", "minutes"), [(1_000, 0), (1_002, 1 / 60), (1_120, 1)])
def test_a_thousand_instances_are_launched_at_once(nodes: int, minutes: float) -> None:
    assert launch(nodes)["run_instances_minutes"] == pytest.approx(minutes)


def test_what_karpenter_is_throttled_by_is_said_to_be_unknown() -> None:
    """It calls CreateFleet; AWS publishes the rate of RunInstances."""

    def formula(pool: dict[str, Any]) -> str:
        return needs(pool, karpenter=KARPENTER).launch["run_instances_minutes"].formula

    launchers = ("managed-node-group", "karpenter")
    group, own = (formula(pool_document(purchase=ODCR, provisioner=by)) for by in launchers)
    assert "CreateFleet" in own
    assert "CreateFleet" not in group
    # HyperPod launches its instances itself.
    assert formula(HYPERPOD_POOL).startswith("(4 EC2 instances")


@pytest.mark.parametrize(
    ("tier", "seconds"),
    [("standard", None), ("xl", 104 / 167), ("2xl", 104 / 283), ("8xl", 104 / 400)],
)
def test_a_pod_on_each_node_takes_as_long_as_the_tier_needs(
    tier: str, seconds: float | None
) -> None:
    assert launch(104, tier)["binding_seconds"] == (seconds and pytest.approx(seconds))


def test_an_image_is_asked_for_layer_by_layer() -> None:
    """3,000 layers a second for all nodes of the account: 22 minutes for 100,000 of them."""
    assert launch(100_000)["image_pull_seconds"] == pytest.approx(100_000 * 40 / 3_000)
    assert {quota.code: count for quota, (count, _) in image_requests(10).items()} == {
        quotas.quota("image-tokens").code: 10,
        quotas.quota("image-manifests").code: 10,
        quotas.quota("image-layers").code: 400,
    }


def test_the_first_step_waits_for_the_last_node_then_for_its_pod_then_for_its_image() -> None:
    found = launch(50_000, "8xl")

    minutes = 49_000 / 2 / 60 + (50_000 / 400 + 50_000 * 40 / 3_000) / 60
    assert found["minutes_to_first_step"] == pytest.approx(minutes)


def test_a_term_that_no_one_knows_is_left_out_of_the_sum_by_name() -> None:
    total = needs(pool_document(purchase=ODCR)).launch["minutes_to_first_step"]

    assert total.without == ("launch.binding_seconds",)
    assert "without launch.binding_seconds" in total.formula


def test_coredns_is_bounded_below_what_eks_would_take() -> None:
    """By cores: 256 for a replica; a node has 128."""
    found = launch(1_004)
    vcpus = 1_000 * 128 + 4 * 32
    assert found["coredns_replicas"] == -(-vcpus // 256)
    assert (found["coredns_replicas_most"] or 0) < (found["coredns_replicas"] or 0)
    # A cluster of Auto Mode alone has none to bound.
    system = SYSTEM_POOL | {"provisioner": "auto-mode", "nodes": {"max": 4}}
    most = plan_needs(plan_cluster(make_cluster(pools=[system]))).launch["coredns_replicas_most"]
    assert most.value is None
    assert "Auto Mode" in most.formula
