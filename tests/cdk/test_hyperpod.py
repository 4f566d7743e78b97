"""The HyperPod cluster and its task governance, as CloudFormation is told."""

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.assembly import Assembly
from tests.support.construct_stacks import flat, make_context, make_stack
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


def statements_of(template: Template) -> list[dict[str, Any]]:
    return [
        statement
        for policy in template.find_resources("AWS::IAM::Policy").values()
        if "Role" in str(policy["Properties"]["Roles"])
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if "s3:" not in str(statement["Action"])
    ]


def flat_list(value: str | list[Any]) -> list[Any]:
    return value if isinstance(value, list) else [value]


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

    def test_another_pool_does_not_replace_the_cluster_and_missing_capacity_fails_no_deploy(
        self, two: Template
    ) -> None:
        found = properties(two)
        tagged = properties(template_of(make_group("plain"), tags={"SageMaker": "true"}))

        for key in ("ClusterName", "VpcConfig", "Orchestrator"):
            assert found[key] == tagged[key]
        # Faulty nodes are replaced.
        assert (found["NodeProvisioningMode"], found["NodeRecovery"]) == ("Continuous", "Automatic")
        assert not any("MinInstanceCount" in each for each in found["InstanceGroups"])
        two.has_resource_properties("AWS::EKS::AccessEntry", {"Type": "HYPERPOD_LINUX"})
        # By this tag the operator may look at nodes.
        assert tagged["Tags"] == [{"Key": "SageMaker", "Value": "true"}]
        assert "Tags" not in found

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

    def test_its_role_changes_no_interface_of_another_vpc_where_the_file_says_so(self) -> None:
        """Whoever has the role could detach the interfaces of other people's instances."""
        statements = statements_of(template_of(make_group(), least_privilege=True))
        free = {
            (action, resource.rpartition(":")[2].strip("'[]}"))
            for each in statements
            if "Condition" not in each
            for action in flat_list(each["Action"])
            for resource in map(str, flat_list(each["Resource"]))
            if "NetworkInterface" in action and "Describe" not in action
        }

        assert free == {
            ("ec2:CreateNetworkInterface", "network-interface/*"),
            ("ec2:AttachNetworkInterface", "instance/*"),
            ("ec2:DetachNetworkInterface", "instance/*"),
            ("ec2:ModifyNetworkInterfaceAttribute", "instance/*"),
        }
        for each in statements:
            if "Condition" in each:
                assert ":*:vpc/vpc-1" in str(each["Condition"]["ArnLike"]["ec2:Vpc"])
        (join,) = (each for each in statements if "eks-auth" in str(each["Action"]))
        assert ":cluster/research" in str(join["Resource"])

    def test_its_role_is_else_the_documented_one(self, two: Template) -> None:
        statements = statements_of(two)

        assert not any("Condition" in each for each in statements)
        (wide,) = (each for each in statements if "eks-auth" in str(each["Action"]))
        assert "ec2:DetachNetworkInterface" in wide["Action"]
        assert wide["Resource"] == "*"

    def test_its_bucket_of_scripts_goes_with_the_stack_and_its_role_reads_no_other(
        self, two: Template
    ) -> None:
        (bucket,) = two.find_resources("AWS::S3::Bucket").values()
        (first, *_) = bucket["Properties"]["BucketName"]["Fn::Join"][1]
        statements = [
            statement
            for policy in two.find_resources("AWS::IAM::Policy").values()
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            if statement["Action"] in ("s3:GetObject", "s3:ListBucket")
        ]

        assert first.startswith("sagemaker-")  # HyperPod reads no other.
        assert bucket["DeletionPolicy"] == "Delete"
        assert len(statements) == 2
        assert all("Lifecycle" in str(each["Resource"]) for each in statements)


def test_a_group_has_its_zone_its_network_its_plan_its_checks_and_its_volumes(
    two: Template,
) -> None:
    checked, plain = (flat(group) for group in properties(two)["InstanceGroups"])
    (efa,) = two.find_resources("AWS::EC2::SecurityGroup")
    network = "OverrideVpcConfig"
    volume = {
        "InstanceStorageConfigs.0.EbsVolumeConfig.RootVolume": False,
        "InstanceStorageConfigs.0.EbsVolumeConfig.VolumeSizeInGB": 500,
    }
    both = {
        "InstanceCount": 4,
        f"{network}.SecurityGroupIds.0": "sg-0123456789abcdef0",
        f"{network}.SecurityGroupIds.1": {"Fn::GetAtt": [efa, "GroupId"]},
        "LifeCycleConfig.OnCreate": "on_create.sh",
        **volume,
    }

    for group in (checked, plain):
        assert both.items() <= group.items()
        for key in (*both, "ExecutionRole", "LifeCycleConfig.SourceS3Uri"):
            del group[key]
    mount = "InstanceStorageConfigs.1.FsxLustreConfig"
    assert checked == {
        "InstanceGroupName": "train",
        "InstanceType": "ml.p5.48xlarge",
        f"{network}.Subnets.0": "subnet-train",
        "OnStartDeepHealthChecks.0": "InstanceStress",
        "OnStartDeepHealthChecks.1": "InstanceConnectivity",
        "TrainingPlanArn": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/baseline",
        f"{mount}.DnsName": "scratch.fsx",
        f"{mount}.MountName": "abcdefgh",
        f"{mount}.MountPath": "/fsx/scratch",
        "KubernetesConfig.Labels.node-type": "train",
    }
    taint = "KubernetesConfig.Taints.0"
    # One type and several are told in two ways that exclude each other.
    assert plain == {
        "InstanceGroupName": "plain",
        "InstanceRequirements.InstanceTypes.0": "ml.p5.48xlarge",
        "InstanceRequirements.InstanceTypes.1": "ml.p5en.48xlarge",
        f"{network}.Subnets.0": "subnet-plain",
        "KubernetesConfig.Labels.node-type": "plain",
        f"{taint}.Key": "dedicated",
        f"{taint}.Value": "hyperpod",
        f"{taint}.Effect": "NoSchedule",
    }


class TestHybridFile:
    def test_the_reserved_pool_is_a_group_on_its_training_plan_in_its_zone(
        self, hybrid: Assembly
    ) -> None:
        ((stack, body),) = hybrid.resources(CLUSTER)
        (group,) = body["Properties"]["InstanceGroups"]
        (subnet,) = group["OverrideVpcConfig"]["Subnets"]
        (name,) = (
            each["Value"]["Ref"]
            for each in hybrid.templates["network"]["Outputs"].values()
            if each["Export"]["Name"] == subnet["Fn::ImportValue"]
        )
        found = hybrid.templates["network"]["Resources"][name]["Properties"]

        assert stack == "hyperpod-groups"
        assert (group["InstanceType"], group["InstanceCount"]) == ("ml.p4de.24xlarge", 8)
        assert group["TrainingPlanArn"].endswith("training-plan/baseline-2026")
        assert found["AvailabilityZone"] == "us-east-1a"
        assert found["CidrBlock"].startswith("100.64.")

    def test_priorities_are_weighed_and_each_team_has_its_nodes(self, hybrid: Assembly) -> None:
        ((_, scheduler),) = hybrid.resources("AWS::SageMaker::ClusterSchedulerConfig")
        quotas = {
            found["ComputeQuotaTarget.TeamName"]: found
            for _, body in hybrid.resources("AWS::SageMaker::ComputeQuota")
            for found in [flat(body["Properties"])]
        }
        prefix = "ComputeQuotaConfig"

        config = scheduler["Properties"]["SchedulerConfig"]
        assert config["FairShare"] == "Enabled"
        assert {"Name": "critical", "Weight": 100} in config["PriorityClasses"]
        assert (
            quotas["research"].items()
            >= {
                "ComputeQuotaTarget.FairShareWeight": 40,
                f"{prefix}.ComputeQuotaResources.0.InstanceType": "ml.p4de.24xlarge",
                f"{prefix}.ComputeQuotaResources.0.Count": 3,
                f"{prefix}.PreemptTeamTasks": "LowerPriority",
                f"{prefix}.ResourceSharingConfig.Strategy": "LendAndBorrow",
                f"{prefix}.ResourceSharingConfig.BorrowLimit": 50,
            }.items()
        )
        assert quotas["production"][f"{prefix}.ComputeQuotaResources.0.Count"] == 5
        assert quotas["production"][f"{prefix}.ResourceSharingConfig.Strategy"] == "Lend"
        assert f"{prefix}.ResourceSharingConfig.BorrowLimit" not in quotas["production"]

    def test_queues_come_after_the_add_on_that_makes_them(self, hybrid: Assembly) -> None:
        resources = hybrid.templates["governance"]["Resources"]

        for body in resources.values():
            if body["Type"].startswith("AWS::SageMaker::"):
                waited = {resources[name]["Type"] for name in body["DependsOn"]}
                assert "AWS::EKS::Addon" in waited
