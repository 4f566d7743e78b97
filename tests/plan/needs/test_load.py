"""Load on the control plane: each load that stopped a cluster is reported before it costs money."""

from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.needs import KARPENTER, POD_RANGES, planned
from tests.support.needs import price as price_of
from tests.support.pools import NEURON_POOL, ODCR, pool_document
from ultrascale import plan as plans
from ultrascale.catalog.prices import PriceList
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import LoadNeed
from ultrascale.plan.needs.load import beyond_published
from ultrascale.plan.needs.report import plan_needs

ULTRA = ROOT / "clusters" / "ultra-100k.yaml"
VOLCANO = {"queueing": "volcano"}


def load(plan: ClusterPlan) -> dict[tuple[str, str], LoadNeed]:
    return {(row.group, row.name): row for row in plan_needs(plan).load}


def value(plan: ClusterPlan, group: str, name: str) -> float:
    found = load(plan)[group, name].needed.value
    assert found is not None
    return found


def fleet(nodes: int, **changes: Any) -> ClusterPlan:
    pool = pool_document(provisioner="karpenter", purchase=ODCR, nodes={"max": nodes})
    document = {"karpenter": KARPENTER, "network": POD_RANGES, **changes}
    return planned(pool, **document)


@pytest.fixture(scope="module")
def ultra() -> ClusterPlan:
    return plans.load(ULTRA)


class TestPods:
    @for_each(
        {
            "every node": ("aws-node", 1_004),
            "nodes with GPUs alone": ("nvidia-device-plugin", 1_000),
            "the agent's own GPU server": ("dcgm-server", 1_000),
            "by architecture as well": ("dcgm-exporter", 1_000),
            "nodes with EFA alone": ("aws-efa-k8s-device-plugin", 1_000),
        }
    )
    def test_each_daemon_set_is_counted_where_its_selector_takes_it(
        self, name: str, pods: int
    ) -> None:
        assert value(fleet(1_000), "pods", name) == pods

    def test_controllers_of_queues_are_counted(self) -> None:
        found = fleet(10, scheduling={"queueing": "kueue"})
        assert [value(found, "pods", name) for name in ("kueue", "jobset")] == [2, 2]
        # A DaemonSet without a node has no row.
        assert ("pods", "neuron-device-plugin") not in load(found)

    def test_those_that_run_on_system_nodes_alone_are_few(self, ultra: ClusterPlan) -> None:
        for name in ("ebs-csi-node", "cloudwatch-agent", "fluent-bit"):
            assert value(ultra, "pods", name) == 9

    def test_what_nobody_published_is_refused(self) -> None:
        # 50,021 nodes held 642,243 pods; beside more nodes there were 101,533.
        few, many = load(fleet(50_000)), load(fleet(50_100))

        assert few["pods", "all pods"].state == "within"
        assert many["pods", "all pods"].state == "beyond"
        assert many["pods", "all pods"].most == 101_533

    def test_what_aws_granted_counts_unless_it_is_too_small(self) -> None:
        agreed = {"pods": 900_000, "database_gb": 32, "reference": "case 19"}
        rows = load(fleet(60_000, agreed_limits=agreed))
        small = load(fleet(60_000, agreed_limits=agreed | {"pods": 110_000}))
        assert rows["pods", "all pods"].state == "agreed"
        assert rows["objects", "bytes in etcd"].state in ("within", "agreed")
        assert small["pods", "all pods"].state == "beyond"


def test_the_database_that_refused_every_write_is_refused_here(ultra: ClusterPlan) -> None:
    row = load(ultra)["objects", "bytes in etcd"]
    lines = [*beyond_published(plan_needs(ultra).load)]
    assert (row.state, row.most) == ("beyond", 16)
    assert any(line.startswith("bytes in etcd: ") for line in lines)
    # What was seen to hold is within.
    held = load(fleet(5_000, kubernetes={"control_plane_tier": "xl"}))
    assert held["objects", "bytes in etcd"].state == "within"
    # Agents of all nodes would be above the account's quota of PutLogEvents.
    few = load(fleet(5_001, observability={}))["logs", "PutLogEvents"]
    assert (few.state, few.most) == ("within", 5_000)


def test_no_node_asks_ec2_for_left_interfaces_where_one_function_does() -> None:
    name = "EC2 DescribeNetworkInterfaces, for left interfaces"

    assert value(fleet(4_000), "requests", name) == pytest.approx(4_004 / 3_600)
    assert value(fleet(6_000), "requests", name) == pytest.approx(1 / 3_600)


class TestLogs:
    def test_the_audit_log_and_flow_logs_have_a_price(self) -> None:
        known = PriceList(
            price_of("us-west-2", "logs", item, usd)
            for item, usd in (("ingestion", 0.5), ("vended-to-s3", 0.25))
        )

        def price(name: str, **changes: Any) -> float:
            found = plan_needs(fleet(6_000, **changes), None, known)
            (row,) = (each for each in found.load if each.name == f"{name}, price")
            money = {each.name: each for each in found.money.items}
            if name in money:
                assert money[name].usd_per_month.value == pytest.approx(row.needed.value)
            assert row.needed.value is not None
            return row.needed.value

        s3 = POD_RANGES | {"flow_logs": "s3"}
        none = POD_RANGES | {"flow_logs": "none"}
        assert price("audit log") == 0
        assert price("audit log", kubernetes={"logs": ["audit"]}) > 300
        assert price("VPC flow logs (cloudwatch)") == 2 * price("VPC flow logs (s3)", network=s3)
        assert price("VPC flow logs (none)", network=none) == 0

    def test_log_data_has_no_price_where_money_has_none(self) -> None:
        """That of another Region is no price of this one, and what is not known is not free."""
        found = plan_needs(fleet(6_000, kubernetes={"logs": ["audit"]}))

        items = {each.name: each.usd_per_month.value for each in found.money.items}
        rows = {each.name: each.needed for each in found.load}
        for name in ("audit log", "VPC flow logs (cloudwatch)"):
            assert items[name.partition(" (")[0]] is None
            assert rows[f"{name}, price"].value is None
            assert rows[f"{name}, price"].formula.startswith("no price of logs ingestion in us-w")


class TestPulls:
    def test_what_no_cache_holds_is_told_with_its_pulls(self) -> None:
        rows = load(fleet(2_000, scheduling=VOLCANO))
        nvidia, docker = (rows["pulls", f"{host}, uncached"] for host in ("nvcr.io", "docker.io"))
        assert nvidia.needed.value == 2 * 2_000
        assert "ECR caches nothing of it" in nvidia.needed.formula
        assert (docker.needed.value, docker.most) == (6, 16)
        assert ("pulls", "registry.k8s.io, uncached") not in rows
        # A small cluster without a cache is told as well; a secret takes Docker Hub off the list.
        assert load(planned(NEURON_POOL))["pulls", "public.ecr.aws, uncached"].needed.value
        secret = (
            "arn:aws:secretsmanager:us-west-2:111122223333:secret:ecr-pullthroughcache/h-AbCdEf"
        )
        images = {"pull_through": [{"registry": "docker.io", "secret": secret}]}
        rows = load(fleet(2_000, scheduling=VOLCANO, images=images))
        assert ("pulls", "docker.io, uncached") not in rows


class TestRemarks:
    def test_what_is_open_because_the_cluster_is_large_is_said(self) -> None:
        def remarks(nodes: int) -> str:
            return " ".join(plan_needs(fleet(nodes)).remarks)

        assert remarks(500) == ""
        assert "No network policy selects the pods of jobs" in remarks(1_500)
        assert "Network policies are not enforced" in remarks(6_000)

    def test_no_policy_has_endpoints_for_every_node_to_watch(self) -> None:
        assert value(fleet(996), "objects", "PolicyEndpoints") == 2
        assert value(fleet(1_500), "objects", "PolicyEndpoints") == 0


def test_every_load_has_its_formula_and_every_limit_its_source(ultra: ClusterPlan) -> None:
    for row in plan_needs(ultra).load:
        assert row.needed.formula
        assert row.most is None or row.needed.sources, row.name
