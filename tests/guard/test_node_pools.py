"""Nodes of NodePools that a change rolls or ends, by drift or by a smaller number."""

import json

import pytest

from tests.support.changes import Body, between, body, manifest, node_class, node_pool, pool_of
from ultrascale.guard import Changes

HELD = [{"nodes": "0", "reasons": ["Drifted"]}]


def pool_changes(old: Body, new: Body, *others: Body, then: tuple[Body, ...] = ()) -> Changes:
    """Return what changes where a NodePool does, beside other objects."""
    return between({"M": manifest(old, *others)}, {"M": manifest(new, *(then or others))})


DRIFT: dict[str, Body] = {
    "taints": node_pool(node_spec={"taints": [{"key": "a", "effect": "NoSchedule"}]}),
    "lifetime": node_pool(node_spec={"expireAfter": "336h"}),
    "labels": node_pool(role="system"),
}


@pytest.mark.parametrize("new", DRIFT.values(), ids=list(DRIFT))
def test_what_a_node_is_made_of_drifts_within_the_budget(new: Body) -> None:
    pool = pool_of(pool_changes(node_pool(), new), "train")

    assert (pool.rolling, pool.nodes, pool.at_once) == ("rolls", 8, "10% at once, by drift")


def test_other_instance_types_and_another_node_class_drift_a_pool() -> None:
    new = node_pool(instance_types=("p5.48xlarge", "p5en.48xlarge"))
    before, after = node_class(role="a"), node_class(role="b")

    # Nodes that are none of the types roll, and no other.
    assert pool_of(pool_changes(node_pool(), new), "train").rolling == "may roll"
    changes = pool_changes(node_pool(), node_pool(), before, then=(after,))
    assert pool_of(changes, "train").why == ("EC2NodeClass.role from a to b",)


@pytest.mark.parametrize("new", [node_pool(weight=3), node_pool(nodes=9), node_pool(budgets=HELD)])
def test_weight_limits_and_budgets_are_no_drift(new: Body) -> None:
    assert pool_changes(node_pool(), new).pools == ()


@pytest.mark.parametrize(
    ("budgets", "rolling"),
    [
        (HELD, "held"),
        ([{"nodes": "0"}], "held"),
        ([{"nodes": "0", "reasons": ["Empty"]}], "rolls"),
        ([{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}], "rolls"),
        ([{"nodes": "5"}, {"nodes": "0%", "reasons": ["Drifted", "Empty"]}], "held"),
    ],
)
def test_only_a_budget_of_zero_at_all_times_holds_drift_back(
    budgets: list[Body], rolling: str
) -> None:
    new = node_pool(budgets=budgets, node_spec={"expireAfter": "1h"})

    assert pool_of(pool_changes(node_pool(), new), "train").rolling == rolling


def test_drift_of_a_reserved_pool_is_refused_unless_its_budget_holds_it_back() -> None:
    old = node_pool(role="reserved", budgets=HELD)
    held = node_pool(role="reserved", budgets=HELD, node_spec={"expireAfter": "1h"})
    rolls = node_pool(role="reserved", node_spec={"expireAfter": "1h"})

    assert pool_changes(old, held).is_safe
    assert not pool_changes(old, rolls).is_safe


def test_a_new_version_of_the_cluster_or_of_karpenter_drifts_every_pool() -> None:
    pool = {"M": manifest(node_pool())}
    versions = (
        {**pool, "C": body("AWS::EKS::Cluster", {"Version": each})} for each in ("1.34", "1.35")
    )
    before, after = (
        {**pool, "K": body("Custom::AWSCDK-EKS-HelmChart", {"Release": "karpenter"} | version)}
        for version in ({"Version": "1.15.0"}, {"Version": "1.16.0"})
    )

    why = ("the cluster's Version from 1.34 to 1.35",)
    assert pool_of(between(*versions), "train").why == why
    assert pool_of(between(before, after), "train").rolling == "may roll"
    # A chart that comes or goes drifts nothing.
    assert between(pool, before).pools == between(before, pool).pools == ()


@pytest.mark.parametrize("gates", [(False, True), (True, False)], ids=["on", "off"])
def test_a_gate_of_karpenter_restarts_its_controller_and_no_node(gates: tuple[bool, bool]) -> None:
    """The first pool that names a reservation comes, or the last one goes."""
    old, new = (
        {
            "K": body(
                "Custom::AWSCDK-EKS-HelmChart",
                {
                    "Release": "karpenter",
                    "Version": "1.15.2",
                    "Values": json.dumps(
                        {"settings": {"featureGates": {"reservedCapacity": gate}}}
                    ),
                },
            ),
            "M": manifest(node_pool()),
        }
        for gate in gates
    )

    changes = between(old, new)

    assert (changes.pools, changes.is_safe) == ((), True)
    assert [each.action for each in changes.resources] == ["updated"]


@pytest.mark.parametrize(("role", "safe"), [("reserved", False), ("burst", True)])
@pytest.mark.parametrize("replicas", [(8, 5), (0, 0)], ids=["by the file", "by a calendar"])
def test_fewer_nodes_of_a_static_pool_end_the_others_and_are_refused_where_they_are_reserved(
    role: str, safe: bool, replicas: tuple[int, int]
) -> None:
    old, new = (
        node_pool(role=role, nodes=nodes, replicas=each)
        for nodes, each in zip((8, 5), replicas, strict=True)
    )

    changes = pool_changes(old, new)

    pool = pool_of(changes, "train")
    assert (pool.rolling, pool.nodes) == ("ends", 3)
    assert changes.is_safe is safe
    assert changes.permit(*([] if safe else ["train"])).is_safe


def test_a_node_pool_that_leaves_ends_its_nodes_and_a_lower_limit_none() -> None:
    pool = pool_of(between({"M": manifest(node_pool())}, {}), "train")
    old, new = (node_pool(role="reserved", nodes=each) for each in (8, 5))

    assert (pool.rolling, pool.nodes) == ("ends", 8)
    assert pool_changes(old, new).pools == ()


def test_a_static_pool_is_read_as_its_patch_leaves_it() -> None:
    def patched(lifetime: str) -> Body:
        patch = (
            f'[{{"op": "add", "path": "/spec/template/spec/expireAfter", "value": "{lifetime}"}}]'
        )
        return body(
            "Custom::AWSCDK-EKS-KubernetesPatch",
            {
                "ResourceName": "nodepools.karpenter.sh/train",
                "PatchType": "json",
                "ApplyPatchJson": patch,
            },
        )

    seed = manifest(node_pool())
    changes = between({"M": seed, "P": patched("1h")}, {"M": seed, "P": patched("2h")})

    assert pool_of(changes, "train").why == ("spec.expireAfter from 1h to 2h",)


@pytest.mark.parametrize(("budget", "rolling"), [("10%", "may roll"), ("0", None)])
def test_a_budget_that_held_drift_back_and_goes_lets_drifted_nodes_roll(
    budget: str, rolling: str | None
) -> None:
    old, new = (
        manifest(node_class(), node_pool(role="reserved", budgets=[{"nodes": nodes}]))
        for nodes in ("0", budget)
    )

    changes = between({"M": old}, {"M": new})

    assert [each.rolling for each in changes.pools] == ([rolling] if rolling else [])
    assert changes.is_safe is (rolling is None)


@pytest.mark.parametrize(("kind", "rolls"), [("NodeClass", True), ("EC2NodeClass", False)])
def test_the_nodes_of_auto_mode_end_when_it_is_disabled_whatever_holds_drift_back(
    kind: str, rolls: bool
) -> None:
    reference = {"nodeClassRef": {"kind": kind, "name": "train"}}
    budgets: list[Body] = [{"nodes": "0"}]
    pool = manifest(node_pool(role="reserved", budgets=budgets, node_spec=reference))
    old, new = (
        body("AWS::EKS::Cluster", {"ComputeConfig": {"Enabled": enabled}})
        for enabled in (True, False)
    )

    changes = between({"Cluster": old, "Pool": pool}, {"Cluster": new, "Pool": pool})

    assert [(each.rolling, each.protected) for each in changes.pools] == [("rolls", True)] * rolls
    assert changes.is_safe is not rolls
