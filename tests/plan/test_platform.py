"""Software in the cluster: priorities, gang scheduler, rendezvous."""

from typing import Any

import pytest

from tests.support.pools import CAPACITY_BLOCK, POOL, SYSTEM_POOL, make_cluster, pool_document
from ultrascale import config
from ultrascale.catalog import versions
from ultrascale.parts.etcd import Plan as EtcdPlan
from ultrascale.parts.volcano.model import Plan as VolcanoPlan
from ultrascale.parts.volcano.model import QueuePlan
from ultrascale.parts.volcano.plan import plan_volcano
from ultrascale.plan.cluster import assemble
from ultrascale.plan.model import PoolPlan, PriorityClassPlan
from ultrascale.plan.platform import plan_priority_classes
from ultrascale.plan.pools.pool import plan_pool

VOLCANO = {"queueing": "volcano"}
STATIC = pool_document(name="static", nodes={"static": 4})
NEURON = pool_document(name="neuron", instance_types=["trn1.32xlarge"], nodes={"static": 4})
CPU = pool_document(name="cpu", instance_types=["m7g.8xlarge"], nodes={"static": 4})
BLOCK = pool_document(name="block", purchase=CAPACITY_BLOCK)


def cluster(*pools: dict[str, Any], **changes: Any) -> config.Cluster:
    if any(pool["provisioner"] == "karpenter" for pool in pools):
        changes["karpenter"] = {"version": "1.15.2"}
    return make_cluster(pools=[SYSTEM_POOL, *(pools or [POOL])], **changes)


def pool_plans(of: config.Cluster) -> list[PoolPlan]:
    return [plan_pool(pool, kubernetes_version=of.kubernetes.version) for pool in of.pools]


def plan_etcd(made: config.Cluster) -> EtcdPlan | None:
    return assemble(made).part(EtcdPlan)


def volcano(*pools: dict[str, Any], **scheduling: Any) -> VolcanoPlan:
    made = cluster(*pools, scheduling=VOLCANO | scheduling)
    plan = plan_volcano(made, pool_plans(made))
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("types", "layers"),
    [
        ([["p5.48xlarge"]], 3),
        ([["p6-b200.48xlarge"]], 4),
        ([["p6-b200.48xlarge"], ["p6-b300.48xlarge"]], 4),
        ([["p6-b300.48xlarge"], ["trn1.32xlarge"]], 3),
        ([["m7g.8xlarge"]], 3),
    ],
)
def test_hypernodes_are_made_of_layers_that_every_node_names(
    types: list[list[str]], layers: int
) -> None:
    pools = [
        pool_document(name=f"pool-{number}", instance_types=each, nodes={"static": 4})
        for number, each in enumerate(types)
    ]

    assert volcano(*pools).topology_layers == layers


class TestPriorityClasses:
    """Priorities: preemption of one class by another."""

    def test_the_seed_has_five_and_the_file_may_have_others(self) -> None:
        classes = plan_priority_classes(cluster())
        assert [(plan.name, plan.value, plan.preempts) for plan in classes] == [
            ("critical", 1_000_000, True),
            ("high", 800_000, True),
            ("medium", 600_000, True),
            # Low priorities wait and evict nobody.
            ("low", 400_000, False),
            ("preemptible", 200_000, False),
        ]
        own = {"priority_classes": {"batch": 100, "serving": 5000}}
        assert plan_priority_classes(cluster(scheduling=own)) == (
            PriorityClassPlan(name="serving", value=5000, preempts=True),
            PriorityClassPlan(name="batch", value=100, preempts=True),
        )


class TestVolcano:
    """The gang scheduler."""

    # That the pool of controllers grows counts for nothing.
    @pytest.mark.parametrize(
        ("pools", "enqueue"),
        [
            ([POOL], False),
            ([STATIC, POOL], False),
            ([pool_document(nodes={"min": 2, "max": 4})], False),
            ([STATIC], True),
            ([STATIC, NEURON], True),
            ([pool_document(nodes={"min": 4, "max": 4})], True),
            ([BLOCK], True),
            ([pool_document(provisioner="karpenter")], False),
            ([STATIC | {"provisioner": "karpenter", "role": "reserved"}], True),
            ([STATIC, CPU | {"nodes": {"max": 4}}], False),
        ],
    )
    def test_enqueue_is_off_where_waiting_pods_make_nodes(
        self, pools: list[dict[str, Any]], enqueue: bool
    ) -> None:
        assert volcano(*pools).enqueue is enqueue

    @pytest.mark.parametrize(
        ("pools", "resources"),
        [
            ([POOL], ("nvidia.com/gpu", "vpc.amazonaws.com/efa")),
            ([NEURON, CPU], ("aws.amazon.com/neuron", "vpc.amazonaws.com/efa")),
            ([pool_document(efa="none")], ("nvidia.com/gpu",)),
            ([CPU], ()),
        ],
    )
    def test_bin_packing_weighs_what_the_nodes_have(
        self, pools: list[dict[str, Any]], resources: tuple[str, ...]
    ) -> None:
        assert volcano(*pools).accelerator_resources == resources

    def test_the_file_decides_queues_and_topology_of_one_release(self) -> None:
        tag = versions.image("volcano-scheduler").tag
        capability = {"cpu": "64", "memory": "1Ti"}
        own = {"name": "production", "weight": 60, "reclaimable": False, "capability": capability}
        plan = volcano(queues=[{"name": "research", "weight": 40}, own], topology_aware=True)
        production = QueuePlan(
            name="production", weight=60, reclaimable=False, capability=capability
        )
        images = (plan.scheduler_image, plan.controllers_image, plan.webhook_image)
        assert plan.queues == (QueuePlan(name="research", weight=40), production)
        assert (plan.topology_aware, volcano().topology_aware, plan.version) == (True, False, tag)
        assert [image.rpartition("/vc-")[2] for image in images] == [
            f"{name}:{tag}" for name in ("scheduler", "controller-manager", "webhook-manager")
        ]
        assert plan_volcano(cluster(), pool_plans(cluster())) is None


class TestRendezvous:
    """Meeting place of elastic workers."""

    def test_c10d_needs_no_server(self) -> None:
        assert plan_etcd(cluster()) is None
        assert plan_etcd(cluster(scheduling={"rendezvous": {"backend": "c10d"}})) is None

    @pytest.mark.parametrize(("backend", "v2"), [("etcd", False), ("etcd-v2", True)])
    @pytest.mark.parametrize("replicas", [1, 3])
    def test_etcd_backends_get_a_server_that_speaks_their_api(
        self, backend: str, v2: bool, replicas: int
    ) -> None:
        rendezvous = {"backend": backend, "replicas": replicas}
        plan = plan_etcd(cluster(scheduling={"rendezvous": rendezvous}))
        assert plan is not None
        assert (plan.v2_api, plan.replicas, plan.namespace) == (v2, replicas, "training")
        # Of the last line that has the v2 API.
        if v2:
            assert plan.image == versions.image("etcd-v2").reference
            assert ":v3.5." in plan.image


@pytest.mark.parametrize(
    ("provisioner", "driver"),
    [("managed-node-group", "ebs.csi.aws.com"), ("auto-mode", "ebs.csi.eks.amazonaws.com")],
)
def test_etcd_asks_the_driver_of_its_own_nodes_for_a_volume(provisioner: str, driver: str) -> None:
    nodes = {"max": 4} if provisioner == "auto-mode" else {"min": 2, "max": 4}
    system = SYSTEM_POOL | {"provisioner": provisioner, "nodes": nodes}
    scheduling = {"rendezvous": {"backend": "etcd-v2"}}

    plan = plan_etcd(make_cluster(pools=[system], scheduling=scheduling))

    assert plan is not None
    assert plan.volume_provisioner == driver
