"""Properties of pools: each is refused with a way out, or becomes valid resources."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.auto_mode_crd import AUTO_MODE
from tests.support.crd_schemas import CRD_FOLDERS, KARPENTER_FOLDERS, CrdSet
from tests.support.crd_schemas import karpenter_crds as upstream_crds
from tests.support.node_group_templates import node_group_template
from tests.support.node_overlay_crd import NODE_OVERLAY
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    as_text,
    loads_own,
    make_document,
)
from tests.support.template_lint import lint
from ultrascale.catalog.provisioners import NODE_GROUPS, NODE_POOLS
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale_k8s import define_charts
from ultrascale_stacks.rules import violations

PROVISIONERS = [*NODE_GROUPS, *NODE_POOLS]
PURCHASES = [
    ON_DEMAND,
    SPOT,
    SPOT | {"fallback": "on-demand"},
    SPOT | {"fallback": "on-demand", "fallback_max": 2},
    ODCR,
    ODCR | {"spill": "on-demand"},
    {"option": "odcr", "reservation_tags": {"team": "a"}},
    {"option": "odcr", "resource_group": "arn:aws:resource-groups:us-west-2:111122223333:group/g"},
    {"option": "odcr"},
    CAPACITY_BLOCK,
    CAPACITY_BLOCK | {"ends": "2026-12-29T11:30:00Z"},
    CAPACITY_BLOCK | {"ends": "2026-12-21T11:30:00Z"},
    CAPACITY_BLOCK | {"ends": "2026-12-21T11:30:00Z", "extended": True},
    CAPACITY_BLOCK | {"starts": "2026-12-08T11:00:00Z"},
    CAPACITY_BLOCK | {"starts": "2026-12-02T04:17:00Z"},
    {key: value for key, value in CAPACITY_BLOCK.items() if key != "reservation"}
    | {"reservation_tags": {"team": "a"}},
]
G_TYPES = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]
# Of few interfaces: the rules of the CRD compare each with each, in Python for seconds.
TYPES = [["trn1.32xlarge"], ["trn1.32xlarge"], G_TYPES, ["m7g.8xlarge"], ["p4d.24xlarge"]]
NODES = st.one_of(
    st.fixed_dictionaries({"static": st.integers(1, 64)}),
    st.fixed_dictionaries({"max": st.integers(1, 600)}),
    st.fixed_dictionaries({"min": st.integers(0, 4), "max": st.integers(1, 64)}),
)
POOLS = st.fixed_dictionaries(
    {
        "name": st.just("drawn"),
        "provisioner": st.sampled_from(PROVISIONERS),
        "purchase": st.sampled_from(PURCHASES),
        "nodes": NODES,
        "role": st.sampled_from(["reserved", "burst"]),
        "instance_types": st.sampled_from(TYPES),
        "zones": st.sampled_from([["us-west-2b"], ["us-west-2b"], ["us-west-2a", "us-west-2b"]]),
        "placement_group": st.sampled_from([False, False, True]),
        "efa": st.sampled_from(["auto", "auto", "none", "all"]),
        "shards": st.sampled_from([1, 1, 2]),
        "labels": st.sampled_from([{}, {"example.com/team": "ml"}]),
        "tags": st.sampled_from([{}, {"cost-center": "42"}]),
    }
)


@pytest.fixture(scope="module")
def karpenter_crds() -> CrdSet | None:
    return upstream_crds() if (CRD_FOLDERS / KARPENTER_FOLDERS[-1]).is_dir() else None


def outcome(pool: dict[str, Any]) -> ClusterPlan | list[str]:
    karpenter = {"version": "1.15.2"} if pool["provisioner"] == "karpenter" else None
    document = make_document(pools=[SYSTEM_POOL, pool], karpenter=karpenter)
    try:
        return plan_cluster(loads_own(as_text(document), source=""))
    except ConfigError as error:
        return [*error.mistakes]


def limits(examples: int) -> settings:
    """Return the settings of a test of that many examples.

    To shrink a failure would take minutes, and the pool that failed is small as it is.
    """
    return settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@limits(200)
@given(pool=POOLS)
def test_a_pool_that_is_refused_is_told_a_way_out(pool: dict[str, Any]) -> None:
    lines = outcome(pool)

    if isinstance(lines, list):
        assert lines
        assert all(line.startswith(("pools[drawn]", "network.")) and "; " in line for line in lines)


@limits(60)
@given(pool=POOLS, provisioner=st.sampled_from(NODE_POOLS))
def test_an_accepted_pool_becomes_node_pools_that_the_api_server_takes(
    pool: dict[str, Any], provisioner: str, karpenter_crds: CrdSet | None
) -> None:
    plan = outcome(pool | {"provisioner": provisioner})

    if not isinstance(plan, list):
        objects = [each for chart in define_charts(plan).node_pools for each in chart.manifests]
        kinds = [str(each["kind"]) for each in objects]
        assert kinds.count("NodePool") == len(plan.nodes.node_pools) >= pool["shards"]
        for each in objects:
            assert validated(each, karpenter_crds) == []


@limits(25)
@given(pool=POOLS, provisioner=st.sampled_from(NODE_GROUPS))
def test_an_accepted_pool_becomes_node_groups_that_cfn_lint_takes(
    pool: dict[str, Any], provisioner: str
) -> None:
    plan = outcome(pool | {"provisioner": provisioner})

    if not isinstance(plan, list):
        for group in plan.pools:
            template = node_group_template(plan, group)
            assert [rule.name for rule, _ in violations(template)] == []
            assert lint(json.dumps(template), region=plan.region) == []


def validated(each: Mapping[str, Any], karpenter_crds: CrdSet | None) -> list[str]:
    if each["kind"] == "NodeClass":
        return AUTO_MODE.validate(each)
    if each["kind"] == "NodeOverlay":
        return NODE_OVERLAY.validate(each)
    if karpenter_crds is not None and "karpenter" in str(each["apiVersion"]):
        return karpenter_crds.validate(each)
    return []
