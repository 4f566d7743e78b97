"""Nodes that a change rolls; each costs dollars an hour and may hold a job."""

from typing import Any

import pytest

from tests.support.changes import (
    STACK,
    Body,
    between,
    body,
    guard,
    launch_template,
    node_group,
    pool_of,
)
from ultrascale.errors import QuestionError
from ultrascale.guard import Changes
from ultrascale.guard.model import hourly


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
    ("group", "data", "rolling", "why"),
    [
        (group_with("ReleaseVersion", "1.35.9-20261030"), {}, "rolls", "ReleaseVersion from "),
        (group_with("Version", "1.36"), {}, "rolls", "Version from "),
        (None, {"ImageId": "ami-2"}, "rolls", "LaunchTemplateData/ImageId from nothing to ami-2"),
        (node_group(Subnets=["subnet-2"]), {}, "ends", "Subnets"),
    ],
    ids=["release", "version", "launch template", "replaced"],
)
def test_what_rolls_or_ends_every_node_of_a_managed_group(
    group: Body | None, data: Body, rolling: str, why: str
) -> None:
    pool = pool_of(group_changes(group, **data), "train")

    assert (pool.rolling, pool.nodes) == (rolling, 16)
    assert pool.at_once == "2 at a time, by EKS" or rolling == "ends"
    assert pool.why[0].startswith(why)


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


@pytest.mark.parametrize(
    ("role", "verdict"), [("burst", "ends running nodes"), ("reserved", "ends reserved nodes")]
)
def test_nodes_are_called_reserved_where_a_reservation_holds_them(role: str, verdict: str) -> None:
    labels = {"ultrascale.dev/pool": "train", "ultrascale.dev/role": role}

    def stack(image: str) -> dict[str, Body]:
        group, template = node_group(Labels=labels), launch_template(ImageId=image)
        return {"Group": group, "Template": template, "Guard": guard(True)}

    rolled = between(stack("ami-1"), stack("ami-2"))
    gone = between(stack("ami-1"), {})

    assert rolled.verdicts == gone.verdicts == {verdict}
    for lost in (pool_of(rolled, "train").lost, *(change.lost for change in gone.protected)):
        assert ("reservation" in lost) == (role == "reserved")


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


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize(
    ("sizes", "ended"),
    [
        ({"MaxSize": 12}, 4),
        ({"DesiredSize": 9}, 7),
        ({"MinSize": 1, "DesiredSize": 9, "MaxSize": 12}, 7),
    ],
    ids=str,
)
def test_a_lower_size_ends_nodes_and_is_refused_where_they_are_to_be_left_alone(
    guarded: bool, sizes: dict[str, int], ended: int
) -> None:
    bounds = {"MinSize": 2, "MaxSize": 16, "DesiredSize": 16}
    old, new = (
        {"Group": node_group(ScalingConfig=each), "Guard": guard(guarded)}
        for each in (bounds, bounds | sizes)
    )

    changes = between(old, new)

    pool = pool_of(changes, "train")
    assert (pool.rolling, pool.nodes) == ("ends", ended)
    assert (pool.protected, changes.is_safe) == (guarded, not guarded)
    assert changes.permit(*(["train"] if guarded else [])).is_safe


@pytest.mark.parametrize(
    "sizes",
    [
        {"MinSize": 0},
        {"MaxSize": 20, "DesiredSize": 20},
        {"DesiredSize": {"Fn::GetAtt": ["Size", "DesiredSize"]}},
    ],
    ids=["a lower minimum", "a higher size", "the size that the group has"],
)
def test_no_other_size_ends_a_node(sizes: dict[str, Any]) -> None:
    bounds = {"MinSize": 2, "MaxSize": 16, "DesiredSize": 16}
    old, new = (
        {"Group": node_group(ScalingConfig=each), "Guard": guard()}
        for each in (bounds, bounds | sizes)
    )

    assert between(old, new).pools == ()


@pytest.mark.parametrize("size", ["MaxSize", "DesiredCapacity"])
def test_a_lower_size_of_a_self_managed_group_ends_nodes_as_well(size: str) -> None:
    old, new = (
        {"Group": body("AWS::AutoScaling::AutoScalingGroup", {size: each}), "Guard": guard()}
        for each in ("8", "5")
    )

    (pool,) = between(old, new).protected

    assert pool == pool_of(between(old, new), STACK)
    assert pool_of(between(old, new), STACK).nodes == 3


def test_a_self_managed_group_launches_other_nodes_for_other_instance_types() -> None:
    old, new = (
        {
            "Group": body(
                "AWS::AutoScaling::AutoScalingGroup",
                {
                    "MaxSize": "8",
                    "MixedInstancesPolicy": {
                        "LaunchTemplate": {"Overrides": [{"InstanceType": each}]}
                    },
                },
            )
        }
        for each in ("g6.12xlarge", "g6e.12xlarge")
    )

    pool = pool_of(between(old, new), STACK)

    assert pool.rolling == "new nodes"
    assert pool.why == (
        "MixedInstancesPolicy/LaunchTemplate/Overrides/0/InstanceType from g6.12xlarge to "
        "g6e.12xlarge",
    )


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
    ("kept", "zones", "rolls"), [(False, "ab", True), (False, "aa", False), (True, "ab", False)]
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


# --- Capacity Blocks ----------------------------------------------------------------------------


def calendar(until: str) -> dict[str, Body]:
    window = {"Starts": "2026-12-01T11:30:00Z", "UsableUntil": until}
    return {"C": body("Custom::BlockCalendar", {"Pool": "gpu", "Size": "16", "Window": window})}


def test_a_block_that_its_calendar_would_empty_earlier_is_refused() -> None:
    later, earlier = (calendar(f"2026-12-{day}T10:50:00Z") for day in ("15", "09"))
    changes = between(later, earlier)

    pool = pool_of(changes, "gpu")
    assert (pool.rolling, pool.nodes, pool.protected) == ("ends", 16, True)
    assert "2026-12-09T10:50:00Z" in pool.why[0]
    assert changes.permit("gpu").is_safe
    assert between(earlier, later).pools == ()


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

    pool = pool_of(changes, "hp")
    assert pool.protected
    # Nothing gives an instance group 0 nodes: `scale` leaves it to the file, which refuses a 0.
    assert "scale a node group to 0" in pool.instead


@pytest.mark.parametrize("reserved", [True, False])
def test_fewer_instances_of_a_hyperpod_group_end_the_others(reserved: bool) -> None:
    group = instance_group()
    if not reserved:
        del group["TrainingPlanArn"]

    changes = between(hyperpod(group), hyperpod(group | {"InstanceCount": 6}))

    assert (pool_of(changes, "hp").rolling, pool_of(changes, "hp").nodes) == ("ends", 2)
    assert changes.is_safe is not reserved
    # More concern none that run.
    assert between(hyperpod(group), hyperpod(group | {"InstanceCount": 9})).pools == ()


# --- money --------------------------------------------------------------------------------------


def test_the_nodes_are_priced_by_the_dearest_of_their_types() -> None:
    one, other = (hourly(1, [each], "us-east-1") or 0 for each in ("g6e.12xlarge", "g6e.48xlarge"))

    assert hourly(3, ["g6e.12xlarge", "g6e.48xlarge"], "us-east-1") == 3 * max(one, other) > 0


@pytest.mark.parametrize("types", [[], ["nobody.knows"], ["g6e.12xlarge", "nobody.knows"]])
def test_a_price_that_is_not_known_is_no_number(types: list[str]) -> None:
    assert hourly(3, types, "us-east-1") is None
