"""How the nodes of a pool start: interfaces, disks, metadata and what nodeadm is told."""

from email.message import Message
from email.parser import Parser
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Match, Template

from tests.construct_stacks import make_pool_plan, make_stack, the
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.launch_template import NodeLaunchTemplate, user_data

GROUPS = ["sg-cluster", "sg-efa"]


def synthesize(plan: PoolPlan, *, placement_group_name: str | None = None) -> Template:
    stack = make_stack()
    NodeLaunchTemplate(
        stack,
        "Pool",
        plan=plan,
        cluster_name="research",
        security_group_ids=GROUPS,
        placement_group_name=placement_group_name,
    )
    return Template.from_stack(stack)


def data(template: Template) -> dict[str, Any]:
    return the(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]


def has_data(template: Template, expected: dict[str, object]) -> None:
    template.has_resource_properties("AWS::EC2::LaunchTemplate", {"LaunchTemplateData": expected})


def node_config(text: str) -> dict[str, Any]:
    """Return the one NodeConfig of a MIME document."""
    message = Parser().parsestr(text)
    assert not message.defects
    (part,) = (part for part in message.walk() if not part.is_multipart())
    assert isinstance(part, Message)
    assert part.get_content_type() == "application/node.eks.aws"
    (document,) = (item for item in yaml.safe_load_all(str(part.get_payload())) if item)
    return document


@pytest.fixture(scope="module")
def p5() -> Template:
    return synthesize(make_pool_plan("p5.48xlarge"))


@pytest.fixture(scope="module")
def several() -> Template:
    return synthesize(make_pool_plan("g6.24xlarge", "g6.48xlarge"))


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
        has_data(
            several,
            {"NetworkInterfaces": Match.absent(), "SecurityGroupIds": Match.absent()},
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


class TestHardening:
    """What a pod that broke out would look for."""

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


class TestUserData:
    """What nodeadm reads; a document that it cannot read leaves a node that never joins."""

    def test_the_template_carries_it_encoded(self, p5: Template) -> None:
        text = data(p5)["UserData"]["Fn::Base64"]

        assert node_config(text)["kind"] == "NodeConfig"
        assert node_config(text)["apiVersion"] == "node.eks.aws/v1alpha1"

    @pytest.mark.parametrize(
        ("instance_type", "expected"),
        [
            (
                "p5.48xlarge",
                {
                    "kubelet": {"config": {"maxPods": 250}},
                    "instance": {"localStorage": {"strategy": "RAID0"}},
                    "featureGates": {"FastImagePull": True},
                },
            ),
            (
                "inf2.xlarge",
                {
                    "kubelet": {"config": {"maxPods": 110}},
                    "featureGates": {"FastImagePull": True},
                },
            ),
            ("m7g.2xlarge", {"kubelet": {"config": {"maxPods": 110}}}),
        ],
        ids=["NVMe disks", "no NVMe disk", "no accelerator"],
    )
    def test_nodes_join_with_the_pods_disks_and_pull_of_their_plan(
        self, instance_type: str, expected: dict[str, object]
    ) -> None:
        assert node_config(user_data(make_pool_plan(instance_type)))["spec"] == expected
