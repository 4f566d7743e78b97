"""The HyperPod cluster and its task governance, as CloudFormation is told."""

from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from tests.support.assembly import Assembly
from tests.support.construct_stacks import make_context, make_stack
from ultrascale.parts.hyperpod.model import HyperPodPlan, InstanceGroupPlan
from ultrascale.plan.model import Taint
from ultrascale_constructs.hyperpod.cluster import HyperPodCluster

CLUSTER = "AWS::SageMaker::Cluster"


def make_group(name: str = "train", **changes: Any) -> InstanceGroupPlan:
    fields: dict[str, Any] = {
        "name": name,
        "instance_types": ("ml.p5.48xlarge",),
        "nodes": 4,
        "training_plan": None,
        "deep_health_checks": (),
        "labels": {"node-type": name},
        "taints": (),
        "zones": ("us-west-2b",),
        "subnets": (),
        "addresses": 81,
        "volume_gib": 500,
        "volume_key": None,
        "mounts": {},
    }
    return InstanceGroupPlan(**fields | changes)


def template_of(*groups: InstanceGroupPlan, **changes: Any) -> Template:
    stack = make_stack()
    HyperPodCluster(
        stack,
        "HyperPod",
        plan=HyperPodPlan(
            name="research", node_recovery="Automatic", groups=groups, governance=None, **changes
        ),
        region="us-west-2",
        cluster=make_context(stack),
        subnet_ids={group.name: [f"subnet-{group.name}"] for group in groups},
        file_systems={"scratch": ("scratch.fsx", "abcdefgh")},
    )
    return Template.from_stack(stack)


def properties(template: Template) -> dict[str, Any]:
    (found,) = template.find_resources(CLUSTER).values()
    return found["Properties"]


@pytest.fixture(scope="module")
def two() -> Template:
    plain = make_group(
        "plain",
        instance_types=("ml.p5.48xlarge", "ml.p5en.48xlarge"),
        taints=(Taint(key="dedicated", value="hyperpod", effect="NoSchedule"),),
    )
    checked = make_group(
        deep_health_checks=("InstanceStress", "InstanceConnectivity"),
        training_plan="arn:aws:sagemaker:us-west-2:111122223333:training-plan/baseline",
        mounts={"scratch": "/fsx/scratch"},
    )
    return template_of(checked, plain)


class TestCluster:
    """A replaced or rolled HyperPod cluster leaves paid nodes idle."""

    def test_another_pool_does_not_replace_the_cluster(self, two: Template) -> None:
        one = properties(template_of(make_group("plain")))

        for key in ("ClusterName", "VpcConfig", "Orchestrator"):
            assert properties(two)[key] == one[key]

    def test_the_tag_by_which_the_operator_may_look_at_nodes_is_the_clusters(
        self, two: Template
    ) -> None:
        tagged = properties(template_of(make_group("plain"), tags={"SageMaker": "true"}))

        assert tagged["Tags"] == [{"Key": "SageMaker", "Value": "true"}]
        assert "Tags" not in properties(two)

    def test_missing_capacity_fails_no_deploy(self, two: Template) -> None:
        assert properties(two)["NodeProvisioningMode"] == "Continuous"
        assert not any("MinInstanceCount" in each for each in properties(two)["InstanceGroups"])

    def test_faulty_nodes_are_replaced_as_the_file_says(self, two: Template) -> None:
        assert properties(two)["NodeRecovery"] == "Automatic"

    def test_the_instances_wait_for_their_role_and_the_script_that_they_run(
        self, two: Template
    ) -> None:
        (found,) = two.find_resources(CLUSTER).values()
        resources = two.to_json()["Resources"]
        waited = {resources[name]["Type"] for name in found["DependsOn"]}

        assert {
            "AWS::EKS::AccessEntry",
            "AWS::IAM::Policy",
            "Custom::CDKBucketDeployment",
            "AWS::EC2::SecurityGroupIngress",
        } <= waited

    def test_the_bucket_of_scripts_is_one_that_hyperpod_reads_and_goes_with_the_stack(
        self, two: Template
    ) -> None:
        (bucket,) = two.find_resources("AWS::S3::Bucket").values()
        (first, *_) = bucket["Properties"]["BucketName"]["Fn::Join"][1]

        assert first.startswith("sagemaker-")
        assert bucket["DeletionPolicy"] == "Delete"

    def test_the_role_reads_no_other_bucket(self, two: Template) -> None:
        statements = [
            statement
            for policy in two.find_resources("AWS::IAM::Policy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Action"] in ("s3:GetObject", "s3:ListBucket")
        ]

        assert len(statements) == 2
        assert all("Lifecycle" in str(each["Resource"]) for each in statements)

    def test_nodes_join_by_an_entry_of_hyperpods_own_type(self, two: Template) -> None:
        two.has_resource_properties("AWS::EKS::AccessEntry", {"Type": "HYPERPOD_LINUX"})


class TestGroups:
    def test_a_group_lies_in_the_subnets_of_its_own_zone(self, two: Template) -> None:
        subnets = [
            group["OverrideVpcConfig"]["Subnets"] for group in properties(two)["InstanceGroups"]
        ]

        assert subnets == [["subnet-train"], ["subnet-plain"]]

    def test_efa_traffic_passes_and_the_api_server_is_reached(self, two: Template) -> None:
        for group in properties(two)["InstanceGroups"]:
            cluster, efa = group["OverrideVpcConfig"]["SecurityGroupIds"]
            assert cluster == "sg-0123456789abcdef0"
            assert "EfaSecurityGroup" in str(efa)

    def test_checks_and_the_plan_are_those_of_the_pool(self, two: Template) -> None:
        checked, plain = properties(two)["InstanceGroups"]

        assert checked["OnStartDeepHealthChecks"] == ["InstanceStress", "InstanceConnectivity"]
        assert checked["TrainingPlanArn"].endswith("training-plan/baseline")
        assert "Taints" not in checked["KubernetesConfig"]
        assert not {"OnStartDeepHealthChecks", "TrainingPlanArn"} & plain.keys()
        assert plain["KubernetesConfig"]["Taints"] == [
            {"Key": "dedicated", "Value": "hyperpod", "Effect": "NoSchedule"}
        ]

    def test_one_type_and_several_are_told_in_the_two_ways_that_exclude_each_other(
        self, two: Template
    ) -> None:
        checked, plain = properties(two)["InstanceGroups"]

        assert checked["InstanceType"] == "ml.p5.48xlarge"
        assert "InstanceRequirements" not in checked
        assert "InstanceType" not in plain
        assert plain["InstanceRequirements"]["InstanceTypes"] == [
            "ml.p5.48xlarge",
            "ml.p5en.48xlarge",
        ]

    def test_images_have_a_volume_and_file_systems_are_mounted(self, two: Template) -> None:
        checked, plain = properties(two)["InstanceGroups"]
        volume = {"EbsVolumeConfig": {"RootVolume": False, "VolumeSizeInGB": 500}}

        assert plain["InstanceStorageConfigs"] == [volume]
        assert checked["InstanceStorageConfigs"] == [
            volume,
            {
                "FsxLustreConfig": {
                    "DnsName": "scratch.fsx",
                    "MountName": "abcdefgh",
                    "MountPath": "/fsx/scratch",
                }
            },
        ]


class TestHybridFile:
    def test_the_reserved_pool_is_a_group_on_its_training_plan(self, hybrid: Assembly) -> None:
        ((stack, body),) = hybrid.resources(CLUSTER)
        (group,) = body["Properties"]["InstanceGroups"]

        assert stack == "hyperpod-groups"
        assert (group["InstanceType"], group["InstanceCount"]) == ("ml.p4de.24xlarge", 8)
        assert group["TrainingPlanArn"].endswith("training-plan/baseline-2026")
        assert group["KubernetesConfig"]["Labels"]["node-type"] == "hyperpod"
        assert group["KubernetesConfig"]["Labels"]["gpu-type"] == "a100-80gb"

    def test_the_group_lies_in_the_zone_of_the_plan(self, hybrid: Assembly) -> None:
        ((_, body),) = hybrid.resources(CLUSTER)
        (group,) = body["Properties"]["InstanceGroups"]
        (subnet,) = group["OverrideVpcConfig"]["Subnets"]
        exports = hybrid.templates["network"]["Outputs"].values()
        (name,) = (
            each["Value"]["Ref"]
            for each in exports
            if each["Export"]["Name"] == subnet["Fn::ImportValue"]
        )
        properties = hybrid.templates["network"]["Resources"][name]["Properties"]

        assert properties["AvailabilityZone"] == "us-east-1a"
        assert properties["CidrBlock"].startswith("100.64.")

    def test_priorities_are_weighed_and_each_team_has_its_nodes(self, hybrid: Assembly) -> None:
        template = Template.from_json(dict(hybrid.templates["governance"]))

        template.has_resource_properties(
            "AWS::SageMaker::ClusterSchedulerConfig",
            {
                "SchedulerConfig": {
                    "FairShare": "Enabled",
                    "PriorityClasses": Match.array_with([{"Name": "critical", "Weight": 100}]),
                }
            },
        )
        template.has_resource_properties(
            "AWS::SageMaker::ComputeQuota",
            {
                "ComputeQuotaTarget": {"TeamName": "research", "FairShareWeight": 40},
                "ComputeQuotaConfig": {
                    "ComputeQuotaResources": [{"InstanceType": "ml.p4de.24xlarge", "Count": 3}],
                    "PreemptTeamTasks": "LowerPriority",
                    "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
                },
            },
        )
        template.has_resource_properties(
            "AWS::SageMaker::ComputeQuota",
            {
                "ComputeQuotaTarget": {"TeamName": "production"},
                "ComputeQuotaConfig": {
                    "ComputeQuotaResources": [{"Count": 5}],
                    "ResourceSharingConfig": {"Strategy": "Lend", "BorrowLimit": Match.absent()},
                },
            },
        )

    def test_queues_come_after_the_add_on_that_makes_them(self, hybrid: Assembly) -> None:
        resources = hybrid.templates["governance"]["Resources"]

        for body in resources.values():
            if body["Type"].startswith("AWS::SageMaker::"):
                waited = {resources[name]["Type"] for name in body["DependsOn"]}
                assert "AWS::EKS::Addon" in waited
