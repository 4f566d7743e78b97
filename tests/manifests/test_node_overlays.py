"""Huge pages: the usual EFA pod asks for some, and whoever launches its node must know of them."""

from collections.abc import Callable, Mapping
from typing import Any

import cdk8s
import pytest

from tests.support.cases import for_each
from tests.support.node_overlay_crd import NODE_OVERLAY
from tests.support.node_pool_plans import CELLS, G_TYPES, STATIC, Planned, planned
from tests.support.pools import CAPACITY_BLOCK, ODCR, SPOT, pool_document
from tests.support.scaling_plans import FIXED, autoscaler
from ultrascale import catalog
from ultrascale.catalog.eks import RESOURCE_TAG
from ultrascale_k8s.node_pools import NodePoolsChart, node_overlay_manifest

P5: Mapping[str, Any] = {"instance_types": ["p5.48xlarge"]}
# What each pod of AWS's own jobs on p5 asks for, beside CPU and memory.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
POD: Mapping[str, int] = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32, "hugepages-2Mi": 5120}
PAGES = {"hugepages-2Mi": "10256Mi"}


def quantities(resources: Mapping[str, str]) -> dict[str, int]:
    """Return whole numbers, those of memory in MiB."""
    return {
        key: int(value.removesuffix("Mi"))
        for key, value in resources.items()
        if value.removesuffix("Mi").isdigit()
    }


def known_to_karpenter() -> dict[str, int]:
    """Return what Karpenter knows of a node: EC2's data, its node class and its overlay."""
    plans = planned(**P5)
    accelerator = catalog.lookup("p5.48xlarge").accelerator
    interfaces = plans.node_class.network_interfaces
    assert accelerator is not None
    return {
        accelerator.resource_name: accelerator.count,
        "vpc.amazonaws.com/efa": sum(1 for nic in interfaces if nic.kind == "efa-only"),
        **quantities(plans.node_pool.unseen_resources),
    }


def known_to_the_autoscaler() -> dict[str, int]:
    plan = autoscaler(FIXED, pool_document(**P5))
    assert plan is not None
    tags = plan.group_tags["train"].items()
    of_resources = {key: value for key, value in tags if key.startswith(RESOURCE_TAG)}
    return quantities({key.removeprefix(RESOURCE_TAG): of_resources[key] for key in of_resources})


def objects(plans: Planned) -> list[dict[str, Any]]:
    chart = NodePoolsChart(
        cdk8s.Testing.app(),
        "node-pools-train",
        node_class=plans.node_class,
        node_pools=plans.node_pools,
    )
    return cdk8s.Testing.synth(chart)


@pytest.mark.parametrize("knowledge", [known_to_the_autoscaler, known_to_karpenter])
def test_a_node_is_launched_for_the_usual_efa_pod(knowledge: Callable[[], dict[str, int]]) -> None:
    known = knowledge()

    assert [key for key, asked in POD.items() if known.get(key, 0) < asked] == []


@pytest.mark.parametrize(
    "changes",
    [P5, {"purchase": ODCR}, {"purchase": CAPACITY_BLOCK, **STATIC}],
    ids=["dynamic", "odcr", "static block"],
)
def test_karpenter_is_told_before_it_gets_the_pool_and_of_this_pool_alone(
    changes: Mapping[str, Any],
) -> None:
    # Of a static pool too: for pods that its starting nodes seem too small for, it would launch
    # nodes of another pool. The nodes of another pool of the same type may have no EFA, and two
    # overlays would conflict.
    found = objects(planned(**changes))
    rules = {"karpenter.sh/nodepool": "train", "node.kubernetes.io/instance-type": "p5.48xlarge"}

    assert [each["kind"] for each in found] == ["EC2NodeClass", "NodeOverlay", "NodePool"]
    assert found[1]["metadata"]["name"] == "train"
    assert found[1]["spec"] == {
        "requirements": [
            {"key": key, "operator": "In", "values": [value]} for key, value in rules.items()
        ],
        "capacity": PAGES,
    }


@pytest.mark.parametrize(
    ("provisioner", "changes"),
    [
        ("karpenter", {"efa": "none"}),
        ("karpenter", {"instance_types": ["m7g.8xlarge"]}),
        ("karpenter", {"instance_types": ["m7i.48xlarge"], "efa": "all"}),
        ("karpenter", {"instance_types": G_TYPES, "purchase": SPOT}),
        ("auto-mode", P5),
    ],
    ids=["no efa", "cpu", "cpu with efa", "several types", "auto mode"],
)
def test_nodes_without_pages_have_no_overlay(provisioner: str, changes: Mapping[str, Any]) -> None:
    assert "NodeOverlay" not in [each["kind"] for each in objects(planned(provisioner, **changes))]


@pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))
def test_the_api_server_takes_the_overlay_of_every_cell(cell: Mapping[str, Any]) -> None:
    for node_pool in planned(**cell).node_pools:
        if node_pool.unseen_resources:
            assert NODE_OVERLAY.validate(node_overlay_manifest(node_pool)) == []


class TestLogicalCores:
    """Karpenter counts Neuron's physical cores, its plugin offers logical ones."""

    @for_each(
        {
            "trn2": (["trn2.48xlarge"], "64"),
            "the fewest of unlike types": (["trn2.48xlarge", "trn2.3xlarge"], "4"),
            "as many as there are": (["trn1.32xlarge"], None),
            "no Neuron": (["p5.48xlarge"], None),
        }
    )
    def test_karpenter_launches_for_no_more_cores_than_the_plugin_offers(
        self, types: list[str], cores: str | None
    ) -> None:
        (node_pool,) = planned(instance_types=types, efa="none").node_pools

        assert node_pool.unseen_resources.get("aws.amazon.com/neuroncore") == cores

    def test_the_overlay_stands_beside_that_of_huge_pages(self) -> None:
        (node_pool,) = planned(instance_types=["trn2.48xlarge"]).node_pools
        overlay = node_overlay_manifest(node_pool)

        assert node_pool.unseen_resources == PAGES | {"aws.amazon.com/neuroncore": "64"}
        assert NODE_OVERLAY.validate(overlay) == []
