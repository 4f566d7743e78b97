"""Which nodes that run a change rolls: each costs dollars an hour, and may hold a job."""

from typing import Any

import pytest

from tests.changes import (
    STACK,
    Body,
    between,
    body,
    guard,
    launch_template,
    manifest,
    node_class,
    node_group,
    node_pool,
    pool_of,
)
from ultrascale.errors import QuestionError
from ultrascale.guard import Changes
from ultrascale.guard.figures import hourly

HELD = [{"nodes": "0", "reasons": ["Drifted"]}]


def group_with(key: str, value: object) -> Body:
    """Return a node group with another value of a property."""
    group = node_group()
    group["Properties"][key] = value
    return group


def group_changes(new: Body | None = None, *, guarded: bool = False, **data: Any) -> Changes:
    """Return what changes where a node group, or the data of its launch template, does."""
    rest = {"Guard": guard(guarded)}
    return between(
        {"Group": node_group(), "Template": launch_template(), **rest},
        {"Group": new or node_group(), "Template": launch_template(**data), **rest},
    )


# --- managed node groups ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"), [("ReleaseVersion", "1.35.9-20261030"), ("Version", "1.36")]
)
def test_a_new_release_or_version_rolls_every_node_of_a_managed_group(key: str, value: str) -> None:
    pool = pool_of(group_changes(group_with(key, value)), "train")

    assert (pool.rolling, pool.nodes, pool.at_once) == ("rolls", 16, "2 at a time, by EKS")
    assert pool.why[0].startswith(f"{key} from ")


def test_a_new_launch_template_rolls_the_group_that_follows_it() -> None:
    pool = pool_of(group_changes(ImageId="ami-2"), "train")

    assert pool.rolling == "rolls"
    assert pool.why == ("LaunchTemplateData/ImageId from nothing to ami-2",)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("AWS::EC2::SecurityGroup", "GroupDescription", {"Fn::GetAtt": ["Part", "GroupId"]}),
        ("AWS::EC2::PlacementGroup", "Strategy", {"Ref": "Part"}),
        ("AWS::IAM::InstanceProfile", "Path", {"Fn::Sub": "x-${Part.Arn}"}),
    ],
)
def test_a_group_rolls_where_something_in_its_launch_template_is_replaced(
    kind: str, key: str, value: object
) -> None:
    rest = {"Template": launch_template(Part=value), "Group": node_group(), "Guard": guard()}

    changes = between(
        {"Part": body(kind, {key: "a"}), **rest}, {"Part": body(kind, {key: "b"}), **rest}
    )

    pool = pool_of(changes, "train")
    assert (pool.rolling, pool.protected, changes.is_safe) == ("rolls", True, False)
    (why,) = pool.why
    assert why.startswith("LaunchTemplateData/Part from ")


def test_the_nodes_of_a_guarded_group_are_refused_to_roll() -> None:
    changes = group_changes(guarded=True, ImageId="ami-2")

    assert pool_of(changes, "train").protected
    assert not changes.is_safe
    assert changes.permit("train").is_safe


def test_the_name_of_a_pool_and_of_a_bucket_permits_neither() -> None:
    def stack(image: str, bucket: str) -> dict[str, Body]:
        return {
            "Group": node_group(),
            "Template": launch_template(ImageId=image),
            "Guard": guard(),
            "train": body("AWS::S3::Bucket", {"BucketName": bucket}),
        }

    changes = between(stack("ami-1", "a"), stack("ami-2", "b"))

    assert len(changes.protected) == 2
    with pytest.raises(QuestionError, match="train is the name of several"):
        changes.permit("train")


@pytest.mark.parametrize("key", ["Labels", "Taints", "UpdateConfig"])
def test_what_eks_changes_in_place_rolls_nothing(key: str) -> None:
    value: Any = [] if key == "Taints" else {"ultrascale.dev/pool": "train", "a": "b"}
    new = {"Group": group_with(key, value), "Template": launch_template()}

    assert between({"Group": node_group(), "Template": launch_template()}, new).pools == ()


def test_a_lower_maximum_ends_the_nodes_above_it() -> None:
    pool = pool_of(group_changes(node_group(ScalingConfig={"MinSize": 0, "MaxSize": 12})), "train")

    assert (pool.rolling, pool.nodes) == ("ends", 4)


def test_a_replaced_group_ends_every_node_of_the_old_one() -> None:
    pool = pool_of(group_changes(node_group(Subnets=["subnet-2"])), "train")

    assert (pool.rolling, pool.nodes) == ("ends", 16)


def test_a_group_with_several_types_launches_other_nodes_for_another_launch_template() -> None:
    spec = {"LaunchTemplateSpecification": {"LaunchTemplateId": {"Ref": "Template"}}}
    properties = {"MaxSize": "8", "MixedInstancesPolicy": {"LaunchTemplate": spec}}
    group = body("AWS::AutoScaling::AutoScalingGroup", properties)

    changes = between(
        {"Group": group, "Template": launch_template()},
        {"Group": group, "Template": launch_template(ImageId="ami-2")},
    )

    assert pool_of(changes, STACK).rolling == "new nodes"


@pytest.mark.parametrize(
    ("kept", "zones", "rolls"),
    [(False, "ab", True), (False, "aa", False), (True, "ab", False)],
)
def test_a_self_managed_group_moves_to_other_zones_where_it_keeps_them_in_balance(
    kept: bool, zones: str, rolls: bool
) -> None:
    rest = {
        f"Subnet{index}": body("AWS::EC2::Subnet", {"AvailabilityZone": f"us-west-2{zone}"})
        for index, zone in enumerate(zones)
    } | {"Guard": guard()}
    if kept:
        rest["Zones"] = body("Custom::SuspendedZoneRebalancing", {"ServiceToken": "arn:f"})
    old, new = (
        body(
            "AWS::AutoScaling::AutoScalingGroup",
            {"MaxSize": "8", "VPCZoneIdentifier": [{"Ref": f"Subnet{index}"}]},
        )
        for index in (0, 1)
    )

    changes = between({"Group": old, **rest}, {"Group": new, **rest})

    assert changes.is_safe is not rolls
    assert [(each.rolling, each.nodes) for each in changes.pools] == [("rolls", 8)] * rolls


def scaling_group(**attributes: Any) -> Body:
    """Return a self-managed group that follows a launch template."""
    properties = {
        "LaunchTemplate": {
            "LaunchTemplateId": {"Ref": "Template"},
            "Version": {"Fn::GetAtt": ["Template", "LatestVersionNumber"]},
        },
        "MaxSize": "8",
        "Tags": [{"Key": "ultrascale.dev/pool", "Value": "trn"}],
    }
    return body("AWS::AutoScaling::AutoScalingGroup", properties, **attributes)


@pytest.mark.parametrize(
    ("policy", "rolling"),
    [
        (None, "new nodes"),
        ("AutoScalingRollingUpdate", "rolls"),
        ("AutoScalingReplacingUpdate", "may roll"),
    ],
)
def test_only_an_update_policy_lets_a_self_managed_group_roll_for_its_launch_template(
    policy: str | None, rolling: str
) -> None:
    group = scaling_group(**({} if policy is None else {"UpdatePolicy": {policy: {}}}))

    changes = between(
        {"Group": group, "Template": launch_template()},
        {"Group": group, "Template": launch_template(ImageId="ami-2")},
    )

    assert pool_of(changes, "trn").rolling == rolling
    assert changes.is_safe


# --- NodePools ----------------------------------------------------------------------------------


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


def test_other_instance_types_roll_those_nodes_alone_that_are_none_of_them() -> None:
    new = node_pool(instance_types=("p5.48xlarge", "p5en.48xlarge"))

    assert pool_of(pool_changes(node_pool(), new), "train").rolling == "may roll"


def test_a_node_class_that_changes_drifts_its_pool() -> None:
    before, after = node_class(role="a"), node_class(role="b")

    pool = pool_of(pool_changes(node_pool(), node_pool(), before, then=(after,)), "train")

    assert pool.why == ("EC2NodeClass.role from a to b",)


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


def test_a_new_version_of_the_cluster_drifts_every_pool() -> None:
    old, new = (
        {"C": body("AWS::EKS::Cluster", {"Version": each}), "M": manifest(node_pool())}
        for each in ("1.34", "1.35")
    )

    pool = pool_of(between(old, new), "train")

    assert pool.why == ("the cluster's Version from 1.34 to 1.35",)


def test_a_new_karpenter_may_drift_every_pool() -> None:
    old, new = (
        {
            "K": body(
                "Custom::AWSCDK-EKS-HelmChart", {"Release": "karpenter", "Version": f"1.{each}.0"}
            ),
            "M": manifest(node_pool()),
        }
        for each in (15, 16)
    )

    assert pool_of(between(old, new), "train").rolling == "may roll"


def test_a_chart_that_comes_or_goes_drifts_nothing() -> None:
    pool = {"M": manifest(node_pool())}
    chart = body("Custom::AWSCDK-EKS-HelmChart", {"Release": "karpenter", "Version": "1.15.0"})

    assert between(pool, {**pool, "K": chart}).pools == ()
    assert between({**pool, "K": chart}, pool).pools == ()


def test_fewer_nodes_of_a_static_pool_end_the_others() -> None:
    old, new = (node_pool(nodes=each, replicas=0) for each in (8, 5))

    pool = pool_of(pool_changes(old, new), "train")

    assert (pool.rolling, pool.nodes) == ("ends", 3)


def test_a_node_pool_that_leaves_ends_its_nodes() -> None:
    pool = pool_of(between({"M": manifest(node_pool())}, {}), "train")

    assert (pool.rolling, pool.nodes) == ("ends", 8)


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


# --- HyperPod -----------------------------------------------------------------------------------


def hyperpod(*groups: Body) -> dict[str, Body]:
    return {"H": body("AWS::SageMaker::Cluster", {"ClusterName": "h", "InstanceGroups": [*groups]})}


def instance_group(**changes: Any) -> Body:
    return {
        "InstanceGroupName": "hp",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 8,
        "TrainingPlanArn": "arn:plan",
    } | changes


def test_an_instance_group_that_leaves_is_refused_with_its_nodes() -> None:
    other = instance_group(InstanceGroupName="other")

    changes = between(hyperpod(instance_group(), other), hyperpod(other))

    assert (pool_of(changes, "hp").nodes, pool_of(changes, "hp").protected) == (8, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [("InstanceType", "ml.p5en.48xlarge"), ("ImageId", "ami-2"), ("TrainingPlanArn", "arn:other")],
)
def test_other_instances_of_a_hyperpod_group_are_refused(key: str, value: str) -> None:
    changes = between(hyperpod(instance_group()), hyperpod(instance_group(**{key: value})))

    assert pool_of(changes, "hp").protected


def test_fewer_instances_of_a_hyperpod_group_end_the_others() -> None:
    changes = between(hyperpod(instance_group()), hyperpod(instance_group(InstanceCount=6)))

    assert (pool_of(changes, "hp").rolling, pool_of(changes, "hp").nodes) == ("ends", 2)
    assert changes.is_safe


def test_more_instances_of_a_hyperpod_group_concern_none_that_run() -> None:
    assert (
        between(hyperpod(instance_group()), hyperpod(instance_group(InstanceCount=9))).pools == ()
    )


# --- money --------------------------------------------------------------------------------------


def test_the_nodes_are_priced_by_the_dearest_of_their_types() -> None:
    one, other = (hourly(1, [each], "us-east-1") or 0 for each in ("g6e.12xlarge", "g6e.48xlarge"))

    assert hourly(3, ["g6e.12xlarge", "g6e.48xlarge"], "us-east-1") == 3 * max(one, other) > 0


@pytest.mark.parametrize("types", [[], ["nobody.knows"], ["g6e.12xlarge", "nobody.knows"]])
def test_a_price_that_is_not_known_is_no_number(types: list[str]) -> None:
    assert hourly(3, types, "us-east-1") is None


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
