"""The NodePools of Karpenter and EKS Auto Mode, and the charts that hold them."""

import json
from collections.abc import Mapping
from typing import Any

import cdk8s
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.crd_schemas import KARPENTER_FOLDERS, CrdSet, karpenter_crds
from tests.support.node_pool_plans import (
    CELLS,
    G_TYPES,
    LUSTRE,
    PROVISIONERS,
    SPOT_WITH_FALLBACK,
    STATIC,
    Planned,
    planned,
    planned_cluster,
    planned_file,
)
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    pool_document,
)
from ultrascale.catalog.karpenter import LONG_TERM_VERSION
from ultrascale_k8s.node_pools import NodePoolsChart, node_class_manifest, node_pool_manifest

CAPACITY_TYPES = {"on-demand", "spot", "reserved"}
# What a CloudFormation custom resource hands on, in bytes.
LARGEST_MANIFEST = 100_000
each_provisioner = pytest.mark.parametrize("provisioner", PROVISIONERS)
each_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))

# Drawn pools that the rules of the cluster file accept.
TYPES = st.sampled_from(
    [
        (["p5.48xlarge"], ["us-west-2b"]),
        (["trn1.32xlarge"], ["us-west-2a"]),
        (["g6e.12xlarge"], ["us-west-2c"]),
        (G_TYPES, ["us-west-2a", "us-west-2c"]),
        (["m7g.8xlarge", "c7g.8xlarge"], None),
    ]
)
PURCHASES = st.sampled_from([ON_DEMAND, SPOT, SPOT_WITH_FALLBACK, ODCR, CAPACITY_BLOCK])


@st.composite
def drawn_pools(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    types, zones = draw(TYPES)
    purchase = draw(PURCHASES)
    pool: dict[str, Any] = {"instance_types": types, "zones": zones, "purchase": purchase}
    if types is G_TYPES:
        pool["efa"] = "none"
    if purchase in (ODCR, CAPACITY_BLOCK):
        pool |= {"instance_types": ["p5.48xlarge"], "zones": ["us-west-2b"]}
    count = draw(st.integers(2, 64))
    if purchase not in (SPOT, SPOT_WITH_FALLBACK) and draw(st.booleans()):
        pool |= {"role": "reserved", "nodes": {"static": count}}
    else:
        pool["nodes"] = {"max": count}
    if purchase in (ON_DEMAND, SPOT, SPOT_WITH_FALLBACK):
        pool["shards"] = draw(st.integers(1, 2))
    pool["labels"] = draw(st.sampled_from([{}, {"example.com/team": "ml", "node-type": "gpu"}]))
    pool["tags"] = draw(st.sampled_from([{}, {"cost-center": "42"}]))
    return draw(st.sampled_from(PROVISIONERS)), pool


@pytest.fixture(scope="module")
def crds() -> CrdSet:
    return karpenter_crds()


def spec(provisioner: str = "karpenter", **changes: Any) -> Mapping[str, Any]:
    return node_pool_manifest(planned(provisioner, **changes).node_pool)["spec"]  # pyright: ignore[reportReturnType]


def synthesized(plans: Planned) -> list[dict[str, Any]]:
    chart = NodePoolsChart(
        cdk8s.Testing.app(),
        "node-pools-train",
        node_class=plans.node_class,
        node_pools=plans.node_pools,
    )
    return cdk8s.Testing.synth(chart)


def mistakes(crds: CrdSet, plans: Planned) -> list[str]:
    """Return what an API server says against the NodePools of ``plans``."""
    return [each for pool in plans.node_pools for each in crds.validate(node_pool_manifest(pool))]


class TestValidity:
    @each_provisioner
    @each_cell
    def test_the_api_server_takes_the_pools_of_every_cell(
        self, crds: CrdSet, provisioner: str, cell: Mapping[str, Any]
    ) -> None:
        assert mistakes(crds, planned(provisioner, **cell)) == []

    @pytest.mark.parametrize("cell", ["on-demand", "odcr static", "spot with fallback"])
    def test_the_conservative_karpenter_takes_the_pools_that_are_made_for_it(
        self, cell: str
    ) -> None:
        pool = pool_document(provisioner="karpenter", **CELLS[cell])
        own = {"version": LONG_TERM_VERSION}
        plans = planned_cluster(make_cluster(pools=[SYSTEM_POOL, pool], karpenter=own))

        assert mistakes(karpenter_crds(KARPENTER_FOLDERS[0]), plans) == []

    @pytest.mark.parametrize("changes", [{}, STATIC], ids=["dynamic", "static"])
    def test_the_api_server_takes_startup_taints_and_the_pools_of_files(
        self, crds: CrdSet, changes: Mapping[str, Any]
    ) -> None:
        file = "auto-mode.yaml" if changes else "mixed-capacity.yaml"

        assert mistakes(crds, planned(storage=LUSTRE, **changes)) == []
        assert mistakes(crds, planned_file(file)) == []

    @settings(deadline=None, max_examples=12)
    @given(drawn_pools())
    def test_whatever_pool_is_drawn_is_valid_and_keeps_to_its_limit(
        self, crds: CrdSet, drawn: tuple[str, dict[str, Any]]
    ) -> None:
        provisioner, pool = drawn
        plans = planned(provisioner, **pool)
        nodes: dict[str, int] = pool["nodes"]
        allowed = max(nodes.values()) * pool.get("shards", 1)

        assert mistakes(crds, plans) == []
        assert sum(each.max_nodes for each in plans.node_pools) == allowed
        for each in plans.node_pools:
            found = [r.values for r in each.requirements if r.key == "karpenter.sh/capacity-type"]
            assert len(found) == 1
            assert len(found[0]) == 1
            assert {*found[0]} <= CAPACITY_TYPES


class TestSpec:
    def test_a_scaling_pool_is_limited_by_nodes_and_vcpus_and_has_a_weight(self) -> None:
        found = spec(purchase=ODCR)

        assert spec()["limits"] == {"nodes": "16", "cpu": "3072"}
        assert found["weight"] == 100
        assert "replicas" not in found

    @each_provisioner
    @pytest.mark.parametrize(("purchase", "count"), [(ODCR, 16), (CAPACITY_BLOCK, 0)])
    def test_a_static_pool_has_replicas_and_a_limit_of_as_many_nodes(
        self, provisioner: str, purchase: Mapping[str, Any], count: int
    ) -> None:
        """That of a block is applied empty."""
        found = spec(provisioner, purchase=purchase, **STATIC)

        assert (found["replicas"], found["limits"]) == (count, {"nodes": "16"})
        assert "weight" not in found

    def test_it_launches_from_the_class_of_its_provisioner_and_nodes_expire_under_no_job(
        self,
    ) -> None:
        own, auto = (spec(each)["template"]["spec"] for each in ("karpenter", "auto-mode"))

        of_karpenter = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}
        of_auto_mode = {"group": "eks.amazonaws.com", "kind": "NodeClass"}
        assert own["nodeClassRef"] == of_karpenter | {"name": "train"}
        assert auto["nodeClassRef"] == of_auto_mode | {"name": "train"}
        assert (own["expireAfter"], auto["expireAfter"]) == ("Never", "503h")

    def test_a_reserved_pool_is_left_alone_and_a_burst_pool_gives_back_what_is_empty(self) -> None:
        reserved = dict(spec(purchase=ODCR, role="reserved")["disruption"])
        burst = dict(spec()["disruption"])

        assert {reserved.pop("consolidationPolicy"), burst.pop("consolidationPolicy")} == {
            "WhenEmpty"
        }
        assert reserved == {"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}
        assert burst == {
            "consolidateAfter": "30m",
            "budgets": [
                {"nodes": "100%", "reasons": ["Empty"]},
                {"nodes": "0", "reasons": ["Drifted"]},
                {"nodes": "0", "reasons": ["Unhealthy"]},
            ],
        }

    def test_nodes_take_only_pods_that_ask_for_their_devices_and_none_until_they_can_mount(
        self,
    ) -> None:
        taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
        startup = {"key": "fsx.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
        mounts, gpu = (each["template"]["spec"] for each in (spec(storage=LUSTRE), spec()))

        assert (gpu["taints"], mounts["startupTaints"]) == ([taint], [startup])
        assert "startupTaints" not in gpu
        assert "taints" not in spec(instance_types=["m7g.8xlarge"])["template"]["spec"]


class TestChart:
    def test_the_class_comes_before_the_pools_that_launch_from_it(self) -> None:
        plans = planned(purchase=SPOT_WITH_FALLBACK, instance_types=G_TYPES)

        assert synthesized(plans) == [
            node_class_manifest(plans.node_class),
            *(node_pool_manifest(each) for each in plans.node_pools),
        ]

    @each_provisioner
    def test_the_most_interfaces_still_fit_into_what_cloudformation_hands_on(
        self, provisioner: str
    ) -> None:
        plans = planned(provisioner, instance_types=["p5.48xlarge"], tags={"a" * 128: "b" * 256})

        assert len(json.dumps(synthesized(plans))) < LARGEST_MANIFEST
