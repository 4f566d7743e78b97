"""A pod spec must schedule on a pool whatever launches its nodes, so all of them agree on nodes."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
import yaml
from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_context, make_stack, resources
from tests.support.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, make_cluster, make_pool
from ultrascale.plan.model import NodeGroupPlan, NodePoolPlan, PoolPlan
from ultrascale.plan.names import CAPACITY_TYPE_LABEL
from ultrascale.plan.pools.node_groups import plan_node_group
from ultrascale.plan.pools.node_pools import plan_node_pools
from ultrascale.plan.pools.pool import plan_pool, plan_pools
from ultrascale_constructs.node_group import NodeGroup, SelfManagedGroup
from ultrascale_k8s.node_pools import node_pool_spec

Node = tuple[Mapping[str, str], set[tuple[str, str, str]]]

NODE_POOLS = ("karpenter", "auto-mode")
PROVISIONERS = ("managed-node-group", "self-managed", *NODE_POOLS)
GPUS = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]
POOLS: Mapping[str, Mapping[str, Any]] = {
    "on-demand": {"purchase": ON_DEMAND},
    "spot": {"purchase": SPOT, "instance_types": GPUS},
    "odcr": {"purchase": ODCR, "role": "reserved"},
    "capacity-block": {"purchase": CAPACITY_BLOCK, "role": "reserved"},
    "neuron": {"purchase": ON_DEMAND, "instance_types": ["trn1.32xlarge"]},
    "cpu": {"purchase": ON_DEMAND, "instance_types": ["m7g.8xlarge"]},
    "labelled": {"purchase": ON_DEMAND, "labels": {"team": "research", "node-type": "h100"}},
}
GPU = {"nvidia.com/gpu.present": "true"}
H100 = GPU | {"gpu-type": "h100-80gb"}
# On what the Cluster Autoscaler scales and nowhere else.
SCALED = {"k8s.amazonaws.com/accelerator": "nvidia"}
# Of pools that have others than the taint of GPUs.
TAINTS: Mapping[str, tuple[str, ...]] = {
    "spot": ("nvidia.com/gpu", "spot"),
    "neuron": ("aws.amazon.com/neuron",),
    "cpu": (),
}
EFA = {"ultrascale.dev/efa": "true"}
# What each of these pools' nodes are told apart by, beside the labels that all of them carry.
MARKS: Mapping[str, Mapping[str, str]] = {
    "on-demand": EFA | H100,
    "spot": GPU,
    "odcr": EFA | H100,
    "capacity-block": EFA | H100,
    "neuron": EFA,
    "cpu": {},
    "labelled": EFA | H100 | {"team": "research", "node-type": "h100"},
}
# The option, in our word and in Karpenter's.
OPTIONS = {
    "on-demand": "on-demand",
    "spot": "spot",
    "odcr": "reserved",
    "capacity-block": "reserved",
}
# Its labels cannot change together with its instance type.
MANAGED = "managed-node-group"
EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute"}


def planned(pool: str, provisioner: str) -> PoolPlan:
    changes = {**POOLS[pool], "provisioner": provisioner}
    return plan_pool(make_pool(**changes), kubernetes_version="1.35")


def group_of(pool: str, provisioner: str) -> NodeGroupPlan:
    return plan_node_group(
        planned(pool, provisioner), subnets=(), autoscaler_tags={}, repaired=True
    )


def node_pools(plan: PoolPlan) -> tuple[NodePoolPlan, ...]:
    return plan_node_pools(make_cluster(), [plan])


@pytest.fixture(scope="module")
def groups() -> Mapping[tuple[str, str], Node]:
    """Labels and taints of every pool's nodes on the two kinds of node groups."""
    stack = make_stack()
    shared: dict[str, Any] = {
        "cluster": make_context(stack),
        "subnet_ids": ["subnet-1"],
        "service_token": "arn:aws:lambda:us-west-2:111122223333:function:groups",
    }
    for pool in POOLS:
        NodeGroup(stack, f"managed-{pool}", plan=group_of(pool, "managed-node-group"), **shared)
        SelfManagedGroup(stack, f"own-{pool}", plan=group_of(pool, "self-managed"), **shared)
    template = Template.from_stack(stack)
    managed = [managed_node(body) for body in resources(template, "AWS::EKS::Nodegroup")]
    templates = resources(template, "AWS::EC2::LaunchTemplate")
    own = [node for body in templates if (node := self_managed_node(body)) is not None]
    assert len(managed) == len(own) == len(POOLS)
    kinds = {"managed-node-group": managed, "self-managed": own}
    return {
        (pool, provisioner): node
        for provisioner, nodes in kinds.items()
        for pool, node in zip(POOLS, nodes, strict=True)
    }


def managed_node(group: Mapping[str, Any]) -> Node:
    """Return what EKS tells the nodes of a managed group to register with."""
    properties = group["Properties"]
    taints = properties.get("Taints", [])
    return properties["Labels"], {(t["Key"], t["Value"], EFFECTS[t["Effect"]]) for t in taints}


def self_managed_node(template: Mapping[str, Any]) -> Node | None:
    """Return what the user data of a self-managed node says; None if EKS completes it."""
    text: str = template["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]
    document = text.split("---\n", 1)[1].split("--NODECONFIG--", 1)[0]
    config = cast("dict[str, Any]", yaml.safe_load(document))
    flags = config["spec"]["kubelet"].get("flags")
    if flags is None:
        return None
    values = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    labels = dict(label.split("=", 1) for label in values["node-labels"].split(","))
    taints = {
        (key, value, effect)
        for taint in values.get("register-with-taints", "").split(",")
        if taint
        for key, rest in [taint.split("=", 1)]
        for value, effect in [rest.split(":", 1)]
    }
    return labels, taints


def launched_node(plan: NodePoolPlan) -> Node:
    """Return what the nodes of a NodePool are launched with."""
    template = cast("dict[str, Any]", node_pool_spec(plan))["template"]
    requirements = {each["key"]: each["values"] for each in template["spec"]["requirements"]}
    # Karpenter turns a requirement of one value into a label.
    (capacity_type,) = requirements[CAPACITY_TYPE_LABEL]
    taints = template["spec"].get("taints", [])
    return (
        {**template["metadata"]["labels"], CAPACITY_TYPE_LABEL: capacity_type},
        {(taint["key"], taint["value"], taint["effect"]) for taint in taints},
    )


def node(groups: Mapping[tuple[str, str], Node], pool: str, provisioner: str) -> Node:
    if provisioner in NODE_POOLS:
        return launched_node(node_pools(planned(pool, provisioner))[0])
    return groups[pool, provisioner]


@pytest.mark.parametrize("provisioner", PROVISIONERS)
@pytest.mark.parametrize("pool", POOLS)
def test_nodes_carry_the_same_labels_and_taints_whatever_launches_them(
    groups: Mapping[tuple[str, str], Node], pool: str, provisioner: str
) -> None:
    labels, taints = node(groups, pool, provisioner)

    purchase: str = POOLS[pool]["purchase"]["option"]
    scaled = planned(pool, provisioner).sized_by == "cluster-autoscaler"
    gpus = "nvidia.com/gpu.present" in labels
    marks = {k: v for k, v in MARKS[pool].items() if provisioner != MANAGED or k != "gpu-type"}
    assert labels == {
        "node-type": "train",
        "ultrascale.dev/pool": "train",
        "ultrascale.dev/role": POOLS[pool].get("role", "burst"),
        "ultrascale.dev/capacity": purchase,
        "karpenter.sh/capacity-type": OPTIONS[purchase],
        **marks,
        **(SCALED if scaled and gpus else {}),
    }
    keys = TAINTS.get(pool, ("nvidia.com/gpu",))
    assert taints == {(each, "true", "NoSchedule") for each in keys}


@pytest.mark.parametrize("provisioner", NODE_POOLS)
def test_nodes_that_fall_back_say_what_they_are_and_belong_to_the_same_pool(
    provisioner: str,
) -> None:
    pool = make_pool(
        provisioner=provisioner, instance_types=GPUS, purchase={**SPOT, "fallback": "on-demand"}
    )
    spot, fallback = (
        launched_node(each) for each in node_pools(plan_pool(pool, kubernetes_version="1.35"))
    )

    on_demand = {"ultrascale.dev/capacity": "on-demand", "karpenter.sh/capacity-type": "on-demand"}
    assert fallback == ({**spot[0], **on_demand}, spot[1])


@pytest.mark.parametrize("provisioner", NODE_POOLS)
def test_nodes_of_every_shard_belong_to_the_pool_of_the_file(provisioner: str) -> None:
    pool = make_pool(provisioner=provisioner, shards=2, nodes={"max": 4})
    shards = [
        launched_node(node_pools(plan)[0])[0]
        for plan in plan_pools(pool, kubernetes_version="1.35")
    ]

    assert [labels.pop("ultrascale.dev/shard") for labels in map(dict, shards)] == ["1", "2"]
    assert {labels["ultrascale.dev/pool"] for labels in shards} == {"train"}
