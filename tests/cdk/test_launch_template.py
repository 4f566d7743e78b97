"""Launch templates of a pool: interfaces, disks, metadata and the document for nodeadm."""

from collections.abc import Sequence
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from tests.support.construct_stacks import make_context, make_pool_plan, make_stack, the
from tests.support.pools import CAPACITY_BLOCK
from ultrascale import config
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.launch_template import NodeLaunchTemplate, SelfManaged, user_data

GROUPS = ["sg-cluster", "sg-efa"]
RESERVATION = "cr-0123456789abcdef0"
RESOURCE_GROUP = "arn:aws:resource-groups:us-west-2:111122223333:group/inference"
CLUSTER = make_context(make_stack())
BLOCK = config.CapacityBlock.model_validate(CAPACITY_BLOCK)
SELF_MANAGED = SelfManaged(cluster=CLUSTER, instance_profile_arn="arn:profile")


def synthesize(
    plan: PoolPlan,
    *,
    groups: Sequence[str] = GROUPS,
    placement_group_name: str | None = None,
    reservation_group_arn: str | None = None,
    self_managed: SelfManaged | None = None,
) -> Template:
    stack = make_stack()
    NodeLaunchTemplate(
        stack,
        "Pool",
        plan=plan,
        cluster_name="research",
        security_group_ids=groups,
        placement_group_name=placement_group_name,
        reservation_group_arn=reservation_group_arn,
        self_managed=self_managed,
    )
    return Template.from_stack(stack)


def data(template: Template) -> dict[str, Any]:
    return the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


def has_data(template: Template, expected: dict[str, object]) -> None:
    template.has_resource_properties("AWS::EC2::LaunchTemplate", {"LaunchTemplateData": expected})


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge"))


@pytest.fixture(scope="module")
def own() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge"), self_managed=SELF_MANAGED)


@pytest.fixture(scope="module")
def several() -> Template:
    return synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"), groups=GROUPS[:1])


class TestInterfaces:
    """A node with a card too few is slow; one with a group too few is alone."""

    @pytest.mark.parametrize(
        ("instance_type", "count"),
        [("p5.48xlarge", 33), ("trn1.32xlarge", 9), ("p6-b300.48xlarge", 17)],
    )
    def test_every_card_that_has_efa_gets_an_interface(
        self, instance_type: str, count: int
    ) -> None:
        interfaces = data(synthesize(make_pool_plan(instance_type)))["NetworkInterfaces"]

        assert len(interfaces) == count
        assert [nic["InterfaceType"] for nic in interfaces] == [
            "interface",
            *["efa-only"] * (count - 1),
        ]
        assert len({(n["NetworkCardIndex"], n["DeviceIndex"]) for n in interfaces}) == count

    def test_every_interface_is_in_every_group(self, p5: Template) -> None:
        assert all(nic["Groups"] == GROUPS for nic in data(p5)["NetworkInterfaces"])

    def test_no_interface_is_left_behind(self, p5: Template) -> None:
        assert all(nic["DeleteOnTermination"] for nic in data(p5)["NetworkInterfaces"])

    def test_no_interface_has_a_public_address(self, p5: Template) -> None:
        for nic in data(p5)["NetworkInterfaces"]:
            assert not nic.get("AssociatePublicIpAddress", False)

    def test_without_efa_eks_lays_out_the_interface_and_its_group(self, several: Template) -> None:
        has_data(several, {"NetworkInterfaces": Match.absent(), "SecurityGroupIds": Match.absent()})

    def test_without_efa_further_groups_come_beside_the_cluster_s(self) -> None:
        template = synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"))

        has_data(template, {"NetworkInterfaces": Match.absent(), "SecurityGroupIds": GROUPS})


class TestCapacity:
    """Paid capacity is used, and nothing else is bought in its place without consent."""

    def test_a_block_is_launched_into_by_its_id(self) -> None:
        found = data(synthesize(make_pool_plan(purchase=BLOCK)))

        assert found["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
        assert found["CapacityReservationSpecification"] == {
            "CapacityReservationTarget": {"CapacityReservationId": RESERVATION}
        }

    def test_a_full_reservation_fails_the_launch(self) -> None:
        plan = make_pool_plan(purchase=config.Odcr(reservation=RESERVATION))

        assert data(synthesize(plan))["CapacityReservationSpecification"] == {
            "CapacityReservationTarget": {"CapacityReservationId": RESERVATION},
            "CapacityReservationPreference": "capacity-reservations-only",
        }

    @pytest.mark.parametrize(
        ("spill", "preference"),
        [
            ("never", {"CapacityReservationPreference": "capacity-reservations-only"}),
            ("on-demand", {}),
        ],
    )
    def test_a_full_group_spills_only_where_it_may(
        self, spill: Any, preference: dict[str, str]
    ) -> None:
        purchase = config.Odcr(resource_group=RESOURCE_GROUP, spill=spill)

        template = synthesize(
            make_pool_plan(purchase=purchase), reservation_group_arn=RESOURCE_GROUP
        )

        target = {"CapacityReservationResourceGroupArn": RESOURCE_GROUP}
        found = data(template)["CapacityReservationSpecification"]
        assert found == {"CapacityReservationTarget": target, **preference}

    def test_a_reservation_is_no_market(self) -> None:
        plan = make_pool_plan(purchase=config.Odcr(reservation=RESERVATION))

        has_data(synthesize(plan), {"InstanceMarketOptions": Match.absent()})

    @pytest.mark.parametrize("purchase", [config.OnDemand(), config.Spot()])
    def test_nothing_is_said_where_nothing_is_reserved(self, purchase: config.Purchase) -> None:
        has_data(
            synthesize(make_pool_plan(purchase=purchase)),
            {
                "InstanceMarketOptions": Match.absent(),
                "CapacityReservationSpecification": Match.absent(),
            },
        )


class TestInstanceType:
    """EKS refuses types in both places, or in neither."""

    def test_one_type_stands_in_the_template(self, p5: Template) -> None:
        has_data(p5, {"InstanceType": "p5.48xlarge"})

    def test_several_types_do_not(self, several: Template) -> None:
        has_data(several, {"InstanceType": Match.absent()})


class TestWhatEksForbids:
    """A managed node group refuses a template with these keys."""

    @pytest.mark.parametrize(
        "key", ["IamInstanceProfile", "InstanceMarketOptions", "HibernationOptions", "ImageId"]
    )
    def test_it_is_not_there(self, p5: Template, key: str) -> None:
        has_data(p5, {key: Match.absent()})

    def test_no_ssh_key_opens_a_node(self, p5: Template) -> None:
        has_data(p5, {"KeyName": Match.absent()})


class TestWhatEksFillsIn:
    """The template of a self-managed node sets everything, because EKS adds nothing."""

    def test_the_image_is_the_pinned_one_of_the_type(self, own: Template) -> None:
        plan = make_pool_plan("p5.48xlarge")

        has_data(own, {"ImageId": f"{{{{resolve:ssm:{plan.ami_parameter}}}}}"})
        assert plan.ami_parameter.endswith(f"{plan.ami_release.rpartition('-')[2]}/image_id")

    def test_the_nodes_have_their_profile(self, own: Template) -> None:
        has_data(own, {"IamInstanceProfile": {"Arn": "arn:profile"}})

    def test_the_user_data_names_the_cluster(self, own: Template) -> None:
        expected = user_data(make_pool_plan("p5.48xlarge"), cluster=CLUSTER)

        assert data(own)["UserData"]["Fn::Base64"] == expected
        assert CLUSTER.endpoint in expected

    def test_groups_stand_on_the_interfaces_where_there_are_any(self, own: Template) -> None:
        has_data(own, {"SecurityGroupIds": Match.absent()})
        assert all(nic["Groups"] == GROUPS for nic in data(own)["NetworkInterfaces"])

    def test_they_stand_on_the_instance_where_there_are_none(self) -> None:
        template = synthesize(
            make_pool_plan("g6.24xlarge", "g6.48xlarge"), self_managed=SELF_MANAGED
        )

        has_data(template, {"SecurityGroupIds": GROUPS})


class TestHardening:
    """Node settings that limit a pod after a container escape."""

    def test_metadata_takes_tokens_only_and_is_out_of_reach_of_pods(self, p5: Template) -> None:
        options = {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}

        has_data(p5, {"MetadataOptions": options})

    @pytest.mark.parametrize(
        ("instance_type", "size", "iops", "throughput"),
        [("p5.48xlarge", 100, 3000, 125), ("inf2.48xlarge", 500, 16000, 1000)],
    )
    def test_root_disk_is_encrypted_and_as_planned(
        self, instance_type: str, size: int, iops: int, throughput: int
    ) -> None:
        (disk,) = data(synthesize(make_pool_plan(instance_type)))["BlockDeviceMappings"]

        assert disk["DeviceName"] == "/dev/xvda"
        assert disk["Ebs"] == {
            "VolumeType": "gp3",
            "VolumeSize": size,
            "Iops": iops,
            "Throughput": throughput,
            "Encrypted": True,
            "DeleteOnTermination": True,
        }


class TestPlacementGroup:
    """A group that nobody asked for makes capacity harder to find."""

    def test_it_is_named_where_there_is_one(self) -> None:
        template = synthesize(make_pool_plan(), placement_group_name="close")

        has_data(template, {"Placement": {"GroupName": "close"}})

    def test_it_is_absent_otherwise(self, p5: Template) -> None:
        has_data(p5, {"Placement": Match.absent()})


@pytest.mark.parametrize("kind", ["instance", "volume"])
def test_nodes_and_their_disks_bear_the_name_of_cluster_and_pool(p5: Template, kind: str) -> None:
    tags = {"ResourceType": kind, "Tags": [{"Key": "Name", "Value": "research-train"}]}

    has_data(p5, {"TagSpecifications": Match.array_with([tags])})


@pytest.mark.parametrize("kind", ["instance", "volume"])
def test_the_files_tags_are_on_what_is_paid_for(kind: str) -> None:
    template = synthesize(make_pool_plan(tags={"cost-center": "42"}))

    tags = [{"Key": "Name", "Value": "research-train"}, {"Key": "cost-center", "Value": "42"}]
    has_data(
        template, {"TagSpecifications": Match.array_with([{"ResourceType": kind, "Tags": tags}])}
    )


def test_the_template_carries_what_nodeadm_reads(p5: Template) -> None:
    assert data(p5)["UserData"] == {"Fn::Base64": user_data(make_pool_plan("p5.48xlarge"))}
