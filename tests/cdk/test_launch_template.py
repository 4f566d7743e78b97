"""Launch templates of a pool: interfaces, disks, metadata and the document for nodeadm."""

from collections.abc import Sequence
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import flat, make_context, make_pool_plan, make_stack, the
from tests.support.pools import CAPACITY_BLOCK
from ultrascale import config
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.launch_template import NodeLaunchTemplate, SelfManaged, user_data

GROUPS = ["sg-cluster", "sg-efa"]
RESERVATION = "cr-0123456789abcdef0"
RESOURCE_GROUP = "arn:aws:resource-groups:us-west-2:111122223333:group/inference"
SPECIFICATION = "CapacityReservationSpecification.CapacityReservation"
CLUSTER = make_context(make_stack())
BLOCK = config.CapacityBlock.model_validate(CAPACITY_BLOCK)
SELF_MANAGED = SelfManaged(cluster=CLUSTER, instance_profile_arn="arn:profile")


def synthesize(plan: PoolPlan, *, groups: Sequence[str] = GROUPS, **others: Any) -> Template:
    stack = make_stack()
    arguments = dict.fromkeys(("placement_group_name", "reservation_group_arn", "self_managed"))
    NodeLaunchTemplate(
        stack,
        "Pool",
        plan=plan,
        cluster_name="research",
        security_group_ids=groups,
        **arguments | others,
    )
    return Template.from_stack(stack)


def data(template: Template) -> dict[str, Any]:
    return the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge"))


@pytest.fixture(scope="module")
def several() -> Template:
    return synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"), groups=GROUPS[:1])


@pytest.mark.parametrize(
    ("instance_type", "count"),
    [("p5.48xlarge", 33), ("trn1.32xlarge", 9), ("p6-b300.48xlarge", 17)],
)
def test_every_card_that_has_efa_gets_an_interface_in_every_group(
    instance_type: str, count: int
) -> None:
    """A node with a card too few is slow; one with a group too few is alone."""
    interfaces = data(synthesize(make_pool_plan(instance_type)))["NetworkInterfaces"]

    kinds = [nic["InterfaceType"] for nic in interfaces]
    assert kinds == ["interface", *["efa-only"] * (count - 1)]
    assert len({(n["NetworkCardIndex"], n["DeviceIndex"]) for n in interfaces}) == count
    for nic in interfaces:
        assert nic["Groups"] == GROUPS
        assert nic["DeleteOnTermination"]
        assert not nic.get("AssociatePublicIpAddress", False)


def test_without_efa_eks_lays_out_the_interface_and_its_group(several: Template) -> None:
    further = synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"))

    assert not {"NetworkInterfaces", "SecurityGroupIds", "InstanceType"} & data(several).keys()
    # Further groups come beside the cluster's.
    assert data(further)["SecurityGroupIds"] == GROUPS
    assert "NetworkInterfaces" not in data(further)


@pytest.mark.parametrize(
    ("purchase", "expected"),
    [
        (
            BLOCK,
            {
                "InstanceMarketOptions.MarketType": "capacity-block",
                f"{SPECIFICATION}Target.CapacityReservationId": RESERVATION,
            },
        ),
        # A full reservation fails the launch: nothing else is bought in its place.
        (
            config.Odcr(reservation=RESERVATION),
            {
                f"{SPECIFICATION}Target.CapacityReservationId": RESERVATION,
                f"{SPECIFICATION}Preference": "capacity-reservations-only",
            },
        ),
        (
            config.Odcr(resource_group=RESOURCE_GROUP, spill="never"),
            {
                f"{SPECIFICATION}Target.CapacityReservationResourceGroupArn": RESOURCE_GROUP,
                f"{SPECIFICATION}Preference": "capacity-reservations-only",
            },
        ),
        (
            config.Odcr(resource_group=RESOURCE_GROUP, spill="on-demand"),
            {f"{SPECIFICATION}Target.CapacityReservationResourceGroupArn": RESOURCE_GROUP},
        ),
        (config.OnDemand(), {}),
        (config.Spot(), {}),
    ],
    ids=["block", "ODCR", "group", "group that may spill", "On-Demand", "Spot"],
)
def test_paid_capacity_is_used_and_nothing_else_is_bought_without_consent(
    purchase: config.Purchase, expected: dict[str, str]
) -> None:
    arn = RESOURCE_GROUP if "Group" in str(expected) else None
    found = flat(data(synthesize(make_pool_plan(purchase=purchase), reservation_group_arn=arn)))

    market = ("InstanceMarketOptions", "CapacityReservation")
    assert {key: value for key, value in found.items() if key.startswith(market)} == expected


def test_one_type_stands_in_the_template_and_nothing_that_eks_refuses(p5: Template) -> None:
    """EKS refuses types in both places, or in neither."""
    found = data(p5)

    assert found["InstanceType"] == "p5.48xlarge"
    forbidden = {"IamInstanceProfile", "InstanceMarketOptions", "HibernationOptions", "ImageId"}
    # No SSH key opens a node.
    assert not (forbidden | {"KeyName"}) & found.keys()


def test_the_template_of_a_self_managed_node_sets_what_eks_would() -> None:
    plan = make_pool_plan("p5.48xlarge")
    found = data(synthesize(plan, self_managed=SELF_MANAGED))
    several = make_pool_plan("g6.24xlarge", "g6.48xlarge")
    expected = user_data(plan, cluster=CLUSTER)

    assert found["ImageId"] == f"{{{{resolve:ssm:{plan.ami_parameter}}}}}"
    assert plan.ami_parameter.endswith(f"{plan.ami_release.rpartition('-')[2]}/image_id")
    assert found["IamInstanceProfile"] == {"Arn": "arn:profile"}
    assert found["UserData"]["Fn::Base64"] == expected
    assert CLUSTER.endpoint in expected
    # Groups stand on the interfaces where there are any, and on the instance otherwise.
    assert "SecurityGroupIds" not in found
    assert all(nic["Groups"] == GROUPS for nic in found["NetworkInterfaces"])
    without = data(synthesize(several, self_managed=SELF_MANAGED))
    assert without["SecurityGroupIds"] == GROUPS


@pytest.mark.parametrize(
    ("instance_type", "size", "iops", "throughput"),
    [("p5.48xlarge", 100, 3000, 125), ("inf2.48xlarge", 500, 16000, 1000)],
)
def test_metadata_is_out_of_reach_of_pods_and_the_disk_is_encrypted_and_as_planned(
    instance_type: str, size: int, iops: int, throughput: int
) -> None:
    found = data(synthesize(make_pool_plan(instance_type)))

    assert found["MetadataOptions"] == {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}
    (disk,) = found["BlockDeviceMappings"]
    assert disk["DeviceName"] == "/dev/xvda"
    assert disk["Ebs"] == {"Encrypted": True, "DeleteOnTermination": True} | {
        "VolumeType": "gp3",
        "VolumeSize": size,
        "Iops": iops,
        "Throughput": throughput,
    }


def test_it_names_a_placement_group_where_there_is_one(p5: Template) -> None:
    placed = synthesize(make_pool_plan(), placement_group_name="close")

    assert data(placed)["Placement"] == {"GroupName": "close"}
    assert "Placement" not in data(p5)


@pytest.mark.parametrize("own", [{}, {"cost-center": "42"}])
def test_the_name_and_the_files_tags_are_on_what_is_paid_for(own: dict[str, str]) -> None:
    tagged = data(synthesize(make_pool_plan(tags=own)))["TagSpecifications"]

    tags = [
        {"Key": key, "Value": value} for key, value in ({"Name": "research-train"} | own).items()
    ]
    assert tagged == [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume")]


def test_the_template_carries_what_nodeadm_reads(p5: Template) -> None:
    assert data(p5)["UserData"] == {"Fn::Base64": user_data(make_pool_plan("p5.48xlarge"))}
