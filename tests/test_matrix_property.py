"""Whatever pool a file asks for, it is refused with a way out, or what it becomes is valid."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from k8s import define_charts
from stacks.rules import violations
from tests.auto_mode_crd import AUTO_MODE
from tests.crd_schemas import CRD_FOLDERS, CrdSet
from tests.node_group_templates import node_group_template
from tests.pools import CAPACITY_BLOCK, ODCR, ON_DEMAND, SPOT, SYSTEM_POOL, make_document
from tests.template_lint import lint
from ultrascale import config
from ultrascale.catalog import matrix
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.capacity import NODE_GROUPS

PROVISIONERS = [each for each in matrix.PROVISIONERS if each != "hyperpod"]
PURCHASES = [
    ON_DEMAND,
    SPOT,
    SPOT | {"fallback": "on-demand"},
    SPOT | {"fallback": "on-demand", "fallback_max": 2},
    ODCR,
    ODCR | {"spill": "on-demand"},
    {"option": "odcr", "reservation_tags": {"team": "a"}},
    CAPACITY_BLOCK,
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
    folder = CRD_FOLDERS / "karpenter-v1.14.1"
    return CrdSet.from_folder(folder) if folder.is_dir() else None


def outcome(pool: dict[str, Any]) -> ClusterPlan | tuple[str, ...]:
    karpenter = {"version": "1.15.1"} if pool["provisioner"] == "karpenter" else None
    document = make_document(pools=[SYSTEM_POOL, pool], karpenter=karpenter)
    try:
        return plan_cluster(config.loads(yaml.safe_dump(document)))
    except ConfigError as error:
        return error.mistakes


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pool=POOLS)
def test_any_pool_of_the_matrix_is_refused_with_a_way_out_or_becomes_something_valid(
    pool: dict[str, Any], karpenter_crds: CrdSet | None
) -> None:
    plan = outcome(pool)

    if isinstance(plan, tuple):
        assert plan
        assert all(line.startswith(("pools.1", "network.")) and "; " in line for line in plan)
    elif pool["provisioner"] in NODE_GROUPS:
        for group in plan.pools:
            template = node_group_template(plan, group)
            assert [rule.name for rule, _ in violations(template)] == []
            assert lint(json.dumps(template), region=plan.region) == []
    else:
        objects = [each for chart in define_charts(plan).node_pools for each in chart.manifests]
        kinds = [str(each["kind"]) for each in objects]
        assert kinds.count("NodePool") == len(plan.node_pools) >= pool["shards"]
        for each in objects:
            if each["kind"] == "NodeClass":
                assert AUTO_MODE.validate(each) == []
            elif karpenter_crds is not None and "karpenter" in str(each["apiVersion"]):
                assert karpenter_crds.validate(each) == []
