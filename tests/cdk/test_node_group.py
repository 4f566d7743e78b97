"""The managed node group of a pool, and what its nodes need around them."""

from typing import Any

import pytest
from aws_cdk.assertions import Match, Template
from msgspec.structs import replace

from tests.support.construct_stacks import make_pool_plan, the
from tests.support.managed_groups import BLOCK, CLUSTER_GROUP, NODE_GROUP, ODCR, synthesize
from ultrascale import config
from ultrascale.catalog import versions
from ultrascale.plan.model import Taint


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge", nodes=config.Nodes(min=2, max=16)))


@pytest.fixture(scope="module")
def system() -> Template:
    return synthesize(
        make_pool_plan("m7g.2xlarge", name="system", role="system", nodes=config.Nodes(static=3))
    )


@pytest.fixture(scope="module")
def several() -> Template:
    return synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"))


class TestGroup:
    """Properties of the node group in EKS."""

    def test_nodes_lie_in_the_subnets_of_the_pool_alone(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"ClusterName": "research", "Subnets": ["subnet-b"]})

    def test_a_replacement_can_stand_beside_it(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"NodegroupName": Match.absent()})

    @pytest.mark.parametrize(
        ("fixture", "ami_type"),
        [("p5", "AL2023_x86_64_NVIDIA"), ("system", "AL2023_ARM_64_STANDARD")],
    )
    def test_the_image_is_pinned_and_has_the_drivers(
        self, request: pytest.FixtureRequest, fixture: str, ami_type: str
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(
            NODE_GROUP,
            {"AmiType": ami_type, "ReleaseVersion": versions.ami_release("1.35").version},
        )

    def test_several_types_stand_in_the_group_in_their_order(self, several: Template) -> None:
        several.has_resource_properties(
            NODE_GROUP, {"InstanceTypes": ["g6.24xlarge", "g6.48xlarge"]}
        )

    def test_one_type_stands_in_the_template_alone(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"InstanceTypes": Match.absent()})

    def test_a_new_template_version_reaches_the_nodes(self, p5: Template) -> None:
        reference = the(p5, NODE_GROUP)["LaunchTemplate"]
        (template,) = p5.find_resources("AWS::EC2::LaunchTemplate")

        assert reference == {
            "Id": {"Ref": template},
            "Version": {"Fn::GetAtt": [template, "LatestVersionNumber"]},
        }

    @pytest.mark.parametrize(("fixture", "strategy"), [("p5", "MINIMAL"), ("system", "DEFAULT")])
    def test_an_update_asks_for_spare_capacity_only_where_there_is_some(
        self, request: pytest.FixtureRequest, fixture: str, strategy: str
    ) -> None:
        template: Template = request.getfixturevalue(fixture)

        template.has_resource_properties(
            NODE_GROUP, {"UpdateConfig": {"MaxUnavailable": 1, "UpdateStrategy": strategy}}
        )

    def test_an_update_takes_no_more_nodes_away_than_planned(self) -> None:
        template = synthesize(replace(make_pool_plan(), max_unavailable=4))

        template.has_resource_properties(NODE_GROUP, {"UpdateConfig": {"MaxUnavailable": 4}})

    def test_broken_nodes_are_replaced(self, p5: Template) -> None:
        p5.has_resource_properties(NODE_GROUP, {"NodeRepairConfig": {"Enabled": True}})

    def test_broken_nodes_of_a_reservation_are_left_to_whoever_runs_the_jobs(self) -> None:
        template = synthesize(make_pool_plan(purchase=ODCR))

        template.has_resource_properties(NODE_GROUP, {"NodeRepairConfig": {"Enabled": False}})

    @pytest.mark.parametrize(
        ("purchase", "capacity_type"),
        [
            (config.OnDemand(), "ON_DEMAND"),
            (config.Spot(), "SPOT"),
            (ODCR, "ON_DEMAND"),
            (BLOCK, "CAPACITY_BLOCK"),
        ],
        ids=["On-Demand", "Spot", "ODCR", "Capacity Block"],
    )
    def test_it_is_bought_as_the_file_says(
        self, purchase: config.Purchase, capacity_type: str
    ) -> None:
        template = synthesize(make_pool_plan(purchase=purchase))

        template.has_resource_properties(NODE_GROUP, {"CapacityType": capacity_type})

    def test_every_interface_is_in_the_clusters_group_and_in_that_for_efa(
        self, p5: Template
    ) -> None:
        (efa,) = p5.find_resources("AWS::EC2::SecurityGroup")
        interfaces = the(p5, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["NetworkInterfaces"]

        both = [CLUSTER_GROUP, {"Fn::GetAtt": [efa, "GroupId"]}]
        assert all(nic["Groups"] == both for nic in interfaces)

    def test_nodes_share_a_placement_group_where_the_file_asks_for_it(self) -> None:
        template = synthesize(make_pool_plan("trn1.32xlarge", placement_group=True))

        (group,) = template.find_resources("AWS::EC2::PlacementGroup")
        placement = the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["Placement"]
        assert placement == {"GroupName": {"Ref": group}}

    def test_a_reservation_that_may_spill_is_targeted_through_a_group(self) -> None:
        purchase = config.Odcr(reservation="cr-0123456789abcdef0", spill="on-demand")

        template = synthesize(make_pool_plan(purchase=purchase))

        (group,) = template.find_resources("AWS::ResourceGroups::Group")
        data = the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
        target = {"CapacityReservationResourceGroupArn": {"Fn::GetAtt": [group, "Arn"]}}
        assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": target}


class TestLabelsAndTaints:
    """EKS spells effects its own way; a wrong word fails the deploy."""

    def test_labels_are_those_of_the_plan(self, p5: Template) -> None:
        assert the(p5, NODE_GROUP)["Labels"] == dict(make_pool_plan().labels)

    def test_accelerated_nodes_keep_other_pods_off(self, p5: Template) -> None:
        taint = {"Key": "nvidia.com/gpu", "Value": "true", "Effect": "NO_SCHEDULE"}

        p5.has_resource_properties(NODE_GROUP, {"Taints": [taint]})

    def test_system_nodes_take_every_pod(self, system: Template) -> None:
        system.has_resource_properties(NODE_GROUP, {"Taints": Match.absent()})

    @pytest.mark.parametrize(
        ("effect", "spelled"),
        [
            ("NoSchedule", "NO_SCHEDULE"),
            ("NoExecute", "NO_EXECUTE"),
            ("PreferNoSchedule", "PREFER_NO_SCHEDULE"),
        ],
    )
    def test_every_effect_is_spelled_as_eks_does(self, effect: Any, spelled: str) -> None:
        taint = Taint(key="dedicated", value="x", effect=effect)

        template = synthesize(replace(make_pool_plan("m7g.2xlarge"), taints=(taint,)))

        assert the(template, NODE_GROUP)["Taints"][0]["Effect"] == spelled
