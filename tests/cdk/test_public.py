"""Constructs of the library in a CDK app of somebody else."""

import inspect
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_v1
from aws_cdk import aws_eks_v2 as eks
from aws_cdk.assertions import Annotations, Match, Template

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.foreign_apps import (
    BLOCK,
    EVERY_FLAG,
    OUR_FLAGS,
    REGION,
    cdk_cluster,
    existing_cluster,
    imported_vpc,
    make_app,
    make_stack,
)
from tools.library_reference import arguments
from ultrascale.frozen import Frozen
from ultrascale_constructs import public
from ultrascale_constructs.cdk_types import anyone
from ultrascale_constructs.public import (
    ArgumentError,
    CapacityBlock,
    CapacityBlockCalendar,
    CapacityReservation,
    Cluster,
    ExistingCluster,
    HyperPodCluster,
    InstanceGroup,
    KarpenterNodePool,
    LaunchTemplate,
    LustreFileSystem,
    NodePool,
    Nodes,
    Taint,
    TrainingPlan,
    WriteLatencyCanary,
)

Resources = Mapping[str, Any]
EMPTY = eks.CfnNodegroup.ScalingConfigProperty(min_size=0, desired_size=0, max_size=64)


def every_construct(stack: cdk.Stack) -> None:
    """Define each construct of the library in ``stack``, against an imported VPC."""
    cluster = existing_cluster(stack)
    private = cluster.vpc.private_subnets
    template = LaunchTemplate(
        stack, "Template", cluster=cluster, instance_type="p5.48xlarge", capacity_block=BLOCK
    )
    group = eks.CfnNodegroup(
        stack,
        "Group",
        cluster_name=cluster.name,
        node_role="arn:aws:iam::111122223333:role/Nodes",
        subnets=[private[0].subnet_id],
        capacity_type=template.capacity_type,
        ami_type=template.ami_type,
        launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
            id=template.launch_template_id, version=template.latest_version
        ),
        scaling_config=EMPTY,
    )
    CapacityBlockCalendar(
        stack,
        "Calendar",
        cluster=cluster,
        node_group=group,
        instance_type="p5.48xlarge",
        nodes=4,
        capacity_block=BLOCK,
    )
    NodePool(
        stack,
        "Spilling",
        cluster=cluster,
        subnets=private[:1],
        instance_types=["p5.48xlarge"],
        nodes=4,
        capacity_reservation=CapacityReservation(
            reservation="cr-0123456789abcdef1", spill="on-demand"
        ),
    )
    NodePool(
        stack,
        "Self",
        cluster=cluster,
        provisioner="self-managed",
        subnets=private,
        instance_types=["g6.48xlarge"],
        nodes=Nodes(min=1, max=4),
        efa="none",
    )
    KarpenterNodePool(
        stack,
        "Elastic",
        cluster=cluster,
        subnets=private[:1],
        instance_types=["p5.48xlarge"],
        max_nodes=8,
        node_role="KarpenterNodes",
        karpenter_version="1.15.2",
    )
    LustreFileSystem(stack, "Data", cluster=cluster, subnet=private[0], capacity_gib=2400)
    WriteLatencyCanary(stack, "Canary", cluster=cluster, subnets=private)
    HyperPodCluster(
        stack,
        "HyperPod",
        name="theirs",
        cluster=cluster,
        subnets=private,
        instance_groups=[
            InstanceGroup(name="p5", instance_type="p5.48xlarge", nodes=4, subnets=private[:1])
        ],
    )
    own = Cluster(stack, "Own", name="own", vpc=cluster.vpc, subnets=private)
    system = NodePool(
        stack,
        "system",
        cluster=own,
        subnets=private,
        instance_types=["m7g.2xlarge"],
        nodes=Nodes(min=2, max=4),
    )
    own.add_workload_addons(system)


def make_net() -> cdk.Stack:
    """Return a stack with nothing but the VPC `Net`."""
    stack = make_stack()
    ec2.Vpc(stack, "Net", max_azs=2)
    return stack


def resources(flags: Mapping[str, Any] | None = None) -> Resources:
    stack = make_stack(make_app(flags))
    every_construct(stack)
    found: Resources = Template.from_stack(stack).to_json()["Resources"]
    return found


@pytest.fixture(scope="module")
def plain() -> Resources:
    """Every construct in an app without a feature flag."""
    return resources()


def of(found: Resources, kind: str, within: str = "") -> list[Mapping[str, Any]]:
    """Return the properties of the resources of a type, of those whose ids begin with a text."""
    return [
        each.get("Properties", {})
        for id, each in found.items()
        if each["Type"] == kind and id.startswith(within)
    ]


def refused(define: Callable[[], object]) -> tuple[str, ...]:
    with pytest.raises(ArgumentError) as caught:
        define()
    return caught.value.mistakes


def parameters(name: str) -> list[inspect.Parameter]:
    """Return the parameters of a public name; jsii hides those of constructs from its type."""
    kind = getattr(public, name)
    found = inspect.signature(kind if issubclass(kind, Frozen) else kind.__init__).parameters
    return [parameter for name, parameter in found.items() if name != "self"]


NAMES = [name for name in public.__all__ if name != "ArgumentError"]


class TestSurface:
    """Public API for other people's apps; the changelog reports each change of it."""

    def test_arguments_keep_their_names(self) -> None:
        assert {
            name: " ".join(parameter.name for parameter in parameters(name)) for name in NAMES
        } == {
            "CapacityBlock": "reservation starts ends extended",
            "CapacityBlockCalendar": (
                "scope id cluster node_group instance_type nodes capacity_block name"
            ),
            "CapacityReservation": "reservation resource_group spill",
            "Cluster": (
                "scope id name vpc subnets kubernetes_version control_plane_tier public_cidrs "
                "admins service_cidr logs deletion_protection"
            ),
            "ExistingCluster": (
                "name vpc security_group_id endpoint certificate_authority service_cidr "
                "kubernetes_version"
            ),
            "HyperPodCluster": (
                "scope id cluster subnets instance_groups name node_recovery install_chart "
                "controller_node_selector after"
            ),
            "InstanceGroup": (
                "name instance_type nodes subnets training_plan deep_health_checks efa labels "
                "taints"
            ),
            "KarpenterNodePool": (
                "scope id cluster subnets instance_types max_nodes node_role karpenter_version "
                "name role capacity_block capacity_reservation spot efa placement_group labels "
                "taints tags kubernetes_version max_pods apply_manifests"
            ),
            "LaunchTemplate": (
                "scope id cluster instance_type efa capacity_block capacity_reservation spot "
                "placement_group security_groups kubernetes_version tags name"
            ),
            "LustreFileSystem": (
                "scope id cluster subnet capacity_gib throughput_mbps_per_tib encryption_key name"
            ),
            "NodePool": (
                "scope id cluster subnets instance_types nodes name provisioner role "
                "capacity_block capacity_reservation spot efa placement_group repair labels taints "
                "tags kubernetes_version cni_rights max_pods termination_handler"
            ),
            "Nodes": "min max static",
            "Taint": "key value effect",
            "TrainingPlan": "plan starts ends extended",
            "WriteLatencyCanary": (
                "scope id cluster subnets threshold_ms goal_percent apply_manifests"
            ),
        }

    @for_each(NAMES)
    def test_all_but_the_place_of_a_construct_is_named(self, name: str) -> None:
        positional = [each.name for each in parameters(name) if each.kind != each.KEYWORD_ONLY]

        assert positional in ([], ["scope", "id"])

    @for_each(NAMES)
    def test_every_argument_is_documented(self, name: str) -> None:
        documented = {each.name for each in arguments(name) if each.meaning}

        assert {each.name for each in parameters(name)} - {"scope", "id"} == documented


def test_an_app_without_node_js_gets_ours_with_the_library(tmp_path: Path) -> None:
    """Imported before the CDK, which looks for `node` on the PATH once."""
    code = (
        "from ultrascale_constructs.public import Nodes\n"
        "import aws_cdk as cdk\n"
        "cdk.App(outdir='.', builtin_cloud_formation_validation=False).synth()"
    )
    kept = {"HOME": os.environ.get("HOME", ""), "PATH": str(tmp_path)}
    search = os.pathsep.join(str(ROOT / name) for name in ("", "constructs", "stacks", "k8s"))

    subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**kept, "PYTHONPATH": search},
        check=True,
    )

    assert (tmp_path / "manifest.json").is_file()


class TestForeignApp:
    @pytest.mark.parametrize("flags", [OUR_FLAGS, EVERY_FLAG], ids=["ours", "every one"])
    def test_feature_flags_of_the_app_change_no_resource(
        self, plain: Resources, flags: Mapping[str, Any]
    ) -> None:
        """Policies apart, which a flag joins or parts, and log groups of the CDK's functions."""

        def counted(found: Resources) -> Counter[str]:
            policies = {"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::Logs::LogGroup"}
            return Counter(each["Type"] for each in found.values() if each["Type"] not in policies)

        assert counted(resources(flags)) == counted(plain)

    def test_no_finding_of_theirs_is_accepted_for_them(self, plain: Resources) -> None:
        stack = make_stack()
        every_construct(stack)

        accepted = [
            entry.type
            for construct in stack.node.root.node.find_all()
            for entry in construct.node.metadata
            if "acknowledg" in entry.type.lower()
        ]

        assert accepted == []
        assert "cdk_nag" not in str(plain)

    def test_their_own_resources_are_left_alone(self) -> None:
        def theirs(app: cdk.App, *, beside: bool) -> Any:
            stack = make_stack(app)
            ec2.Vpc(stack, "Net", max_azs=2)
            cdk.aws_s3.Bucket(stack, "Bucket")
            if beside:
                every_construct(make_stack(app, "Beside"))
            return Template.from_stack(stack).to_json()

        assert theirs(make_app(), beside=True) == theirs(make_app(), beside=False)

    def test_stacks_without_account_and_region_work(self) -> None:
        stack = make_stack(region=None)
        vpc = ec2.Vpc(stack, "Net", max_azs=2)
        cluster = cdk_cluster(stack, vpc)
        NodePool(
            stack,
            "P5",
            cluster=cluster,
            subnets=vpc.private_subnets[:1],
            instance_types=["p5.48xlarge"],
            nodes=Nodes(max=4),
            capacity_block=BLOCK,
        )
        LustreFileSystem(
            stack, "Data", cluster=cluster, subnet=vpc.private_subnets[0], capacity_gib=1200
        )

        (group,) = of(Template.from_stack(stack).to_json()["Resources"], "AWS::EKS::Nodegroup")
        assert group["CapacityType"] == "CAPACITY_BLOCK"

    def test_hyperpod_asks_for_the_region_of_its_stack(self) -> None:
        stack = make_stack(region=None)
        cluster = existing_cluster(stack)
        private = cluster.vpc.private_subnets
        group = InstanceGroup(name="p5", instance_type="p5.48xlarge", nodes=4, subnets=private[:1])

        lines = refused(
            lambda: HyperPodCluster(
                stack,
                "HyperPod",
                name="theirs",
                cluster=cluster,
                subnets=private,
                instance_groups=[group],
            )
        )

        assert lines == (
            "Theirs/HyperPod: env.region: a stack without a Region, and HyperPod is not in all; "
            "give the stack env=Environment(region=…)",
        )

    def test_a_vpc_that_is_looked_up_is_a_dummy_at_first(self) -> None:
        """The CDK synthesizes once before it asks the account; no rule may judge the dummy."""
        stack = make_stack()
        vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-0123456789abcdef0")
        cluster = Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)
        pool = NodePool(
            stack,
            "P5",
            cluster=cluster,
            subnets=vpc.private_subnets[:1],
            instance_types=["p5.48xlarge"],
            nodes=2,
        )

        assert pool.efa_interfaces == 32

    def test_nodes_live_in_another_stack_than_their_cluster(self) -> None:
        app = make_app()
        first, second = make_stack(app, "Clusters"), make_stack(app, "Nodes")
        vpc = imported_vpc(first)
        cluster = cdk_cluster(first, vpc)
        NodePool(
            second,
            "P5",
            cluster=cluster,
            subnets=vpc.private_subnets[:1],
            instance_types=["p5.48xlarge"],
            nodes=2,
        )

        (group,) = of(Template.from_stack(second).to_json()["Resources"], "AWS::EKS::Nodegroup")
        assert "Fn::ImportValue" in group["ClusterName"]

    def test_a_cluster_of_the_older_module_works(self) -> None:
        stack = make_stack()
        cluster = eks_v1.Cluster.from_cluster_attributes(
            stack,
            "Cluster",
            cluster_name="older",
            vpc=imported_vpc(stack),
            cluster_security_group_id="sg-0123456789abcdef0",
        )

        pool = LaunchTemplate(stack, "P4", cluster=cluster, instance_type="p4d.24xlarge")

        assert pool.efa_interfaces == 4

    def test_pools_of_one_stack_share_a_function(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        for id in ("One", "Two"):
            NodePool(
                stack,
                id,
                cluster=cluster,
                subnets=cluster.vpc.private_subnets,
                instance_types=["m7g.2xlarge"],
                nodes=2,
            )

        found = Template.from_stack(stack).to_json()["Resources"]
        assert len(of(found, "AWS::Lambda::Function")) == 1
        assert len(of(found, "AWS::EKS::Nodegroup")) == 2

    def test_objects_of_one_stack_share_a_kubectl_provider(self, plain: Resources) -> None:
        """Each is two functions, and an administrator of the cluster."""
        providers = {
            str(each["ServiceToken"]) for each in of(plain, "Custom::AWSCDK-EKS-KubernetesResource")
        }

        assert len(of(plain, "Custom::AWSCDK-EKS-KubernetesResource")) == 3
        assert len(providers) == 1

    def test_clusters_of_equal_stacks_are_two(self) -> None:
        """Each is called `Cluster` in its stack, and both may have a pool of the same name."""
        app = make_app()
        nodes = make_stack(app, "Nodes")
        for id in ("East", "West"):
            stack = make_stack(app, id)
            vpc = imported_vpc(stack)
            NodePool(
                nodes,
                f"Pool{id}",
                name="cpu",
                cluster=cdk_cluster(stack, vpc),
                subnets=vpc.private_subnets,
                instance_types=["m7g.2xlarge"],
                nodes=2,
            )

        found = Template.from_stack(nodes).to_json()["Resources"]
        assert len(of(found, "AWS::Lambda::Function")) == 2

    def test_a_name_serves_a_cluster_in_each_region_and_stage(self) -> None:
        app = make_app()
        stages = [cdk.Stage(app, name) for name in ("Test", "Production")]
        stacks = [
            *(cdk.Stack(stage, "Theirs", env=cdk.Environment(region=REGION)) for stage in stages),
            make_stack(app, "One"),
            make_stack(app, "Two", region="us-east-2"),
        ]

        for stack in stacks:
            cluster = existing_cluster(stack)
            WriteLatencyCanary(
                stack, "Canary", cluster=cluster, subnets=cluster.vpc.private_subnets
            )

    def test_logical_ids_follow_the_construct_alone(self) -> None:
        """Whatever stands beside it: CloudFormation would replace a file system for another id."""

        def data(stack: cdk.Stack) -> str:
            LustreFileSystem(
                stack,
                "Data",
                cluster=existing_cluster(stack),
                subnet=imported_vpc_of(stack).private_subnets[0],
                capacity_gib=1200,
            )
            found = Template.from_stack(stack).find_resources("AWS::FSx::FileSystem")
            (id,) = found
            return id

        def imported_vpc_of(stack: cdk.Stack) -> ec2.IVpc:
            return ec2.Vpc.from_vpc_attributes(
                stack,
                "Again",
                vpc_id="vpc-0123456789abcdef0",
                availability_zones=["us-west-2a"],
                private_subnet_ids=["subnet-0123456789abcdef0"],
            )

        crowded = make_stack()
        ec2.Vpc(crowded, "Net", max_azs=2)
        assert data(crowded) == data(make_stack()) == "DataFileSystemDBE65FE2"


class TestLaunchTemplate:
    def test_a_p5_has_every_efa_interface_at_its_place(self, plain: Resources) -> None:
        (template,) = of(plain, "AWS::EC2::LaunchTemplate", "Template")
        data = template["LaunchTemplateData"]
        places = [
            (nic["NetworkCardIndex"], nic["DeviceIndex"], nic["InterfaceType"])
            for nic in data["NetworkInterfaces"]
        ]

        assert places == [
            (0, 0, "interface"),
            (0, 1, "efa-only"),
            *((card, 0, "efa-only") for card in range(1, 32)),
        ]
        assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
        target = {"CapacityReservationId": "cr-0123456789abcdef0"}
        assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": target}

    def test_efa_traffic_passes_within_its_group_both_ways(self, plain: Resources) -> None:
        (ingress,) = of(plain, "AWS::EC2::SecurityGroupIngress", "TemplateEfa")
        (egress,) = of(plain, "AWS::EC2::SecurityGroupEgress", "TemplateEfa")

        assert ingress["SourceSecurityGroupId"] == ingress["GroupId"]
        assert egress["DestinationSecurityGroupId"] == egress["GroupId"]
        assert ingress["IpProtocol"] == egress["IpProtocol"] == "-1"

    def test_further_groups_reach_nodes_without_efa(self) -> None:
        stack = make_stack()
        vpc = imported_vpc(stack)
        group = ec2.SecurityGroup(stack, "Further", vpc=vpc)
        cluster = existing_cluster(stack, vpc=vpc)

        LaunchTemplate(
            stack,
            "Cpu",
            cluster=cluster,
            instance_type="m7g.2xlarge",
            security_groups=[group],
        )

        (template,) = of(
            Template.from_stack(stack).to_json()["Resources"], "AWS::EC2::LaunchTemplate"
        )
        ids = template["LaunchTemplateData"]["SecurityGroupIds"]
        assert ids == ["sg-0123456789abcdef0", stack.resolve(group.security_group_id)]

    def test_two_templates_that_spill_take_two_names(self) -> None:
        """Names of resource groups are the account's: the second stack would fail."""
        app = make_app()

        def define(id: str) -> object:
            stack = make_stack(app, id)
            return LaunchTemplate(
                stack,
                "P5",
                cluster=existing_cluster(stack),
                instance_type="p5.48xlarge",
                capacity_reservation=CapacityReservation(
                    reservation="cr-0123456789abcdef1", spill="on-demand"
                ),
            )

        define("One")

        assert refused(lambda: define("Two")) == (
            "Two/P5: name: One/P5 has the pool 'p5' of this cluster already; give each pool of a "
            "cluster its own name",
        )

    def test_a_reservation_that_the_app_makes_is_a_reference(self) -> None:
        stack = make_stack()
        reservation = ec2.CfnCapacityReservation(
            stack,
            "Reservation",
            availability_zone="us-west-2a",
            instance_count=2,
            instance_platform="Linux/UNIX",
            instance_type="p5.48xlarge",
        )

        LaunchTemplate(
            stack,
            "P5",
            cluster=existing_cluster(stack),
            instance_type="p5.48xlarge",
            capacity_reservation=reservation.ref,
        )

        found = Template.from_stack(stack).to_json()["Resources"]
        (template,) = of(found, "AWS::EC2::LaunchTemplate")
        specification = template["LaunchTemplateData"]["CapacityReservationSpecification"]
        assert specification == {
            "CapacityReservationTarget": {"CapacityReservationId": {"Ref": "Reservation"}},
            "CapacityReservationPreference": "capacity-reservations-only",
        }


class TestNodePool:
    def test_nodes_of_a_foreign_cluster_carry_the_rights_of_the_cni(self, plain: Resources) -> None:
        """Without them no node becomes ready, and all are paid for."""
        (foreign,) = of(plain, "AWS::IAM::Role", "SpillingNodeGroupOdcrRole")
        (own,) = of(plain, "AWS::IAM::Role", "systemNodeGroupRole")

        assert "AmazonEKS_CNI_Policy" in str(foreign)
        assert "AmazonEKS_CNI_Policy" not in str(own)

    def test_a_reservation_that_spills_has_a_group_beside_its_pool(self, plain: Resources) -> None:
        (group,) = of(plain, "AWS::ResourceGroups::Group")

        assert group["Name"] == "Theirs_1-spilling-reservation"

    def test_nodes_that_nothing_drains_go_at_once(self, plain: Resources) -> None:
        """A hook that no handler completes would keep each ended node, paid, for an hour."""
        (group,) = of(plain, "AWS::AutoScaling::AutoScalingGroup")

        assert not group.get("LifecycleHookSpecificationList")

    def test_the_function_reads_the_state_of_its_own_stack(self, plain: Resources) -> None:
        policies = [
            statement
            for policy in of(plain, "AWS::IAM::Policy", "UltrascaleNodeGroups")
            for statement in policy["PolicyDocument"]["Statement"]
            if statement["Action"] == "cloudformation:DescribeStacks"
        ]

        assert policies
        assert all(each["Resource"] == {"Ref": "AWS::StackId"} for each in policies)

    def test_a_pool_is_not_made_for_a_version_that_nobody_stated(self) -> None:
        """EKS would refuse a release of nodes that is newer than the control plane."""
        stack = make_stack()
        cluster = existing_cluster(stack, kubernetes_version=None)

        def define(id: str, **changes: Any) -> NodePool:
            return NodePool(
                stack,
                id,
                cluster=cluster,
                subnets=cluster.vpc.private_subnets,
                instance_types=["m7g.2xlarge"],
                nodes=2,
                **changes,
            )

        assert refused(lambda: define("One")) == (
            "Theirs/One: kubernetes_version: not known of this cluster, and EKS refuses a release "
            "that is newer than it; add kubernetes_version",
        )
        define("Two", kubernetes_version="1.36")
        (group,) = of(Template.from_stack(stack).to_json()["Resources"], "AWS::EKS::Nodegroup")
        assert group["ReleaseVersion"].startswith("1.36.")

    def test_a_block_has_its_calendar(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        NodePool(
            stack,
            "P5",
            cluster=cluster,
            subnets=cluster.vpc.private_subnets[:1],
            instance_types=["p5.48xlarge"],
            nodes=Nodes(max=4),
            capacity_block=BLOCK,
        )

        found = Template.from_stack(stack).to_json()["Resources"]
        expressions = {each["ScheduleExpression"] for each in of(found, "AWS::Scheduler::Schedule")}
        assert expressions == {"cron(30 11 1 12 ? *)", "rate(1 minute)"}


class TestKarpenterNodePool:
    @staticmethod
    def define(stack: cdk.Stack, vpc: ec2.IVpc, **changes: Any) -> KarpenterNodePool:
        values: dict[str, Any] = {
            "cluster": existing_cluster(stack, vpc=vpc),
            "subnets": vpc.private_subnets[:1],
            "instance_types": ["p5.48xlarge"],
            "max_nodes": 8,
            "node_role": "KarpenterNodes",
            "karpenter_version": "1.15.2",
            "apply_manifests": False,
        }
        return KarpenterNodePool(stack, "P5", **values | changes)

    def test_its_class_finds_subnets_and_groups_by_their_ids(self) -> None:
        stack = make_stack()
        pool = self.define(stack, imported_vpc(stack))

        node_class, _ = (stack.resolve(manifest["spec"]) for manifest in pool.manifests)
        groups = [each["id"] for each in node_class["securityGroupSelectorTerms"]]
        assert node_class["subnetSelectorTerms"] == [{"id": "subnet-0123456789abcdef0"}]
        assert groups[0] == "sg-0123456789abcdef0"
        assert groups[1] == stack.resolve(pool.efa_security_group_id)
        assert node_class["role"] == "KarpenterNodes"
        assert len(node_class["networkInterfaces"]) == 33

    def test_zones_that_nobody_knows_are_those_of_its_subnets(self) -> None:
        """A requirement of a made-up zone would keep every node from coming."""
        stack = make_stack(region=None)
        pool = self.define(stack, ec2.Vpc(stack, "Net", max_azs=2))

        assert "topology." not in str(pool.manifests)
        assert "us-east-1" not in str(pool.manifests)

    def test_nothing_that_a_foreign_cluster_lacks_keeps_its_nodes_empty(self) -> None:
        stack = make_stack()
        pool = self.define(stack, imported_vpc(stack))

        assert [manifest["kind"] for manifest in pool.manifests] == ["EC2NodeClass", "NodePool"]
        assert "startupTaints" not in str(pool.manifests)
        assert "ipPrefixCount" not in str(pool.manifests)

    def test_mistakes_are_told_together(self) -> None:
        stack = make_stack()

        assert refused(
            lambda: self.define(
                stack, imported_vpc(stack), max_nodes=0, karpenter_version="1.9.0", efa="all"
            )
        ) == (
            "Theirs/P5: karpenter_version: too old for EFA interfaces, as in pools[p5], got "
            "'1.9.0'; use 1.11.0 or later",
            "Theirs/P5: max_nodes: a pool that never has a node, got 0; write at least 1; min: 0 "
            "lets the pool be empty",
        )


class TestCalendar:
    def test_an_auto_scaling_group_is_emptied_before_the_block_ends(self) -> None:
        stack = make_stack()
        group = autoscaling.CfnAutoScalingGroup(stack, "Group", max_size="4", min_size="0")

        CapacityBlockCalendar(
            stack,
            "Calendar",
            cluster=existing_cluster(stack),
            node_group=group,
            instance_type="p5.48xlarge",
            nodes=4,
            capacity_block=BLOCK,
        )

        found = Template.from_stack(stack).to_json()["Resources"]
        expressions = {each["ScheduleExpression"] for each in of(found, "AWS::Scheduler::Schedule")}
        assert expressions == {"cron(30 11 1 12 ? *)", "cron(50 10 2 12 ? *)", "rate(1 minute)"}


class TestWriteLatency:
    def test_the_canary_comes_after_its_rights(self, plain: Resources) -> None:
        (schedule,) = (
            each
            for id, each in plain.items()
            if each["Type"] == "AWS::Scheduler::Schedule" and id.startswith("Canary")
        )

        assert any(id.startswith("CanaryManifests") for id in schedule["DependsOn"])

    @for_each(["1.33", "1.34", "1.35", "1.36", None])
    def test_a_cluster_of_any_kubernetes_has_it(self, version: str | None) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack, kubernetes_version=version)

        WriteLatencyCanary(stack, "Canary", cluster=cluster, subnets=cluster.vpc.private_subnets)

    def test_its_objects_are_there_for_who_applies_them(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        canary = WriteLatencyCanary(
            stack,
            "Canary",
            cluster=cluster,
            subnets=cluster.vpc.private_subnets,
            apply_manifests=False,
        )

        kinds = [str(manifest["kind"]) for manifest in canary.manifests]
        assert kinds[0] == "Namespace"
        assert {"Lease", "Role", "RoleBinding"} <= {*kinds}
        assert not of(
            Template.from_stack(stack).to_json()["Resources"],
            "Custom::AWSCDK-EKS-KubernetesResource",
        )


class TestHyperPodCluster:
    @staticmethod
    def define(stack: cdk.Stack, cluster: Any, **changes: Any) -> HyperPodCluster:
        private = changes.get("subnets") or cluster.vpc.private_subnets
        group = InstanceGroup(name="p5", instance_type="p5.48xlarge", nodes=4, subnets=private[:1])
        values: dict[str, Any] = {"name": "theirs", "subnets": private, "instance_groups": [group]}
        return HyperPodCluster(stack, "HyperPod", cluster=cluster, **values | changes)

    @staticmethod
    def placement(found: Resources) -> str:
        """Return what the build of the chart changes about its pods."""
        (project,) = of(found, "AWS::CodeBuild::Project")
        variables = project["Environment"]["EnvironmentVariables"]
        (value,) = (each["Value"] for each in variables if each["Name"] == "PLACEMENT")
        return str(value)

    def test_its_controllers_run_on_nodes_without_labels_of_ours(self, plain: Resources) -> None:
        """They would stay Pending on each cluster of somebody else, and the stack roll back."""
        assert "nodeSelector" not in self.placement(plain)

    def test_its_controllers_run_where_they_are_told_to(self) -> None:
        stack = make_stack()
        self.define(
            stack, existing_cluster(stack), controller_node_selector={"team.example/pool": "tools"}
        )

        placement = self.placement(Template.from_stack(stack).to_json()["Resources"])
        assert json.loads(json.loads(placement)["patches"][0]["patch"]) == [
            {
                "op": "add",
                "path": "/spec/template/spec/nodeSelector",
                "value": {"team.example/pool": "tools"},
            }
        ]

    def test_its_subnets_need_not_be_those_of_the_control_plane(self) -> None:
        stack = make_stack()
        vpc = imported_vpc(stack)
        others = [
            ec2.Subnet.from_subnet_attributes(
                stack, "Other", subnet_id="subnet-other", availability_zone="us-west-2a"
            )
        ]
        own = Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        self.define(stack, own, subnets=others)

        found = Template.from_stack(stack).to_json()["Resources"]
        (project,) = of(found, "AWS::CodeBuild::Project")
        (cluster,) = of(found, "AWS::SageMaker::Cluster")
        assert project["VpcConfig"]["Subnets"] == ["subnet-other"]
        assert cluster["VpcConfig"]["Subnets"] == ["subnet-other"]

    def test_its_chart_waits_for_the_network_of_pods_and_for_nodes(self) -> None:
        """Its build waits for pods that run, and fails after minutes."""
        stack = make_stack()
        vpc = imported_vpc(stack)
        own = Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)
        nodes = NodePool(
            stack,
            "system",
            cluster=own,
            subnets=vpc.private_subnets,
            instance_types=["m7g.2xlarge"],
            nodes=2,
        )

        self.define(stack, own, subnets=vpc.private_subnets, after=[nodes])

        found = Template.from_stack(stack).to_json()["Resources"]
        (build,) = (each for each in found.values() if each["Type"] == "Custom::Build")
        assert any("vpccni" in id for id in build["DependsOn"])
        assert any(id.startswith("systemNodeGroup") for id in build["DependsOn"])

    @for_each(["1.33", "1.34", "1.35"])
    def test_a_cluster_of_an_older_kubernetes_has_it(self, version: str) -> None:
        """Nothing that is defined here depends on the version."""
        stack = make_stack()

        self.define(stack, existing_cluster(stack, kubernetes_version=version))

    @for_each(["1.36", "1.99", "latest"])
    def test_a_version_that_hyperpod_does_not_know_is_refused(self, version: str) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack, kubernetes_version=version)

        (line,) = refused(lambda: self.define(stack, cluster))
        assert line.startswith("Theirs/HyperPod: kubernetes_version: ")

    def test_what_cannot_be_waited_for_or_selected_is_refused(self) -> None:
        stack = make_stack()
        wrong: Any = {"pool": 1}

        assert refused(
            lambda: self.define(
                stack,
                existing_cluster(stack),
                controller_node_selector=wrong,
                after=["NodePool"],
            )
        ) == (
            "Theirs/HyperPod: controller_node_selector: no labels, got {'pool': 1}; write such as "
            '{"ultrascale.dev/role": "system"}',
            "Theirs/HyperPod: after[0]: not a construct of the CDK, got 'NodePool'; pass such as "
            "a NodePool",
        )


class TestCluster:
    def test_nodes_wait_for_what_lets_them_join(self, plain: Resources) -> None:
        (group,) = (
            each
            for id, each in plain.items()
            if each["Type"] == "AWS::EKS::Nodegroup" and id.startswith("system")
        )

        assert any("vpccni" in id for id in group["DependsOn"])

    def test_addons_with_pods_wait_for_nodes(self, plain: Resources) -> None:
        (dns,) = (
            each
            for each in plain.values()
            if each["Type"] == "AWS::EKS::Addon" and each["Properties"]["AddonName"] == "coredns"
        )

        assert any(id.startswith("systemNodeGroup") for id in dns["DependsOn"])

    @staticmethod
    def addon(found: Resources, name: str) -> Mapping[str, Any]:
        """Return the configuration of an add-on."""
        (addon,) = (each for each in of(found, "AWS::EKS::Addon") if each["AddonName"] == name)
        values: Mapping[str, Any] = json.loads(addon["ConfigurationValues"])
        return values

    def test_healthy_gpu_nodes_are_not_found_broken(self, plain: Resources) -> None:
        """The DCGM server must run on tainted nodes, or node repair replaces them."""
        agent = self.addon(plain, "eks-node-monitoring-agent")

        assert agent["dcgmAgent"]["tolerations"] == [{"operator": "Exists"}]

    def test_addons_run_on_whatever_nodes_there_are(self, plain: Resources) -> None:
        """Pods that stay pending fail the add-on, and the stack with it."""
        values = [self.addon(plain, name) for name in ("coredns", "aws-ebs-csi-driver")]

        assert "requiredDuringScheduling" not in str(values)
        assert "nodeSelector'" not in str(values)
        assert str(values).count("preferredDuringScheduling") == 4

    def test_dns_grows_with_whatever_nodes_come(self, plain: Resources) -> None:
        dns = self.addon(plain, "coredns")

        assert dns["autoScaling"]["maxReplicas"] > 4

    @staticmethod
    def admitted(*admins: str, stack: cdk.Stack | None = None) -> Resources:
        """Return the access entries of a cluster with these administrators, by their ids."""
        stack = stack or make_stack()
        vpc = imported_vpc(stack)
        subnets = vpc.private_subnets
        Cluster(stack, "Own", name="own", vpc=vpc, subnets=subnets, admins=admins)
        return Template.from_stack(stack).find_resources("AWS::EKS::AccessEntry")

    def test_administrators_may_be_roles_of_the_app(self) -> None:
        stack = make_stack(region=None)
        roles = [cdk.aws_iam.Role(stack, id, assumed_by=anyone()).role_arn for id in ("One", "Two")]
        named = [f"arn:aws:iam::{stack.account}:role/{name}" for name in ("Three", "Four")]

        entries = self.admitted(*roles, *named, stack=stack)

        arns = [str(entry["Properties"]["PrincipalArn"]) for entry in entries.values()]
        assert len(arns) == 4
        assert "stand-in" not in str(arns)

    def test_an_administrator_who_goes_leaves_the_others_alone(self) -> None:
        """An entry of another id for the same role is one too many, and the deployment fails."""
        one, two = (f"arn:aws:iam::111122223333:role/{name}" for name in ("One", "Two"))

        assert self.admitted(two).items() <= self.admitted(one, two).items()

    def test_subnets_of_the_app_get_no_tag(self) -> None:
        """A tag of load balancers on a shared subnet attracts those of other clusters."""
        stack = make_stack()
        vpc = ec2.Vpc(stack, "Net", max_azs=2)
        before = Template.from_stack(make_net()).find_resources("AWS::EC2::Subnet")

        Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        template = Template.from_stack(stack)
        assert template.find_resources("AWS::EC2::Subnet") == before

    def test_imported_subnets_bring_no_warning_of_tags(self) -> None:
        stack = make_stack()
        vpc = imported_vpc(stack)

        Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
        assert [
            each.id for each in found if "noSubnetRouteTableId" not in str(each.entry.data)
        ] == []

    def test_the_same_administrator_twice_is_told(self) -> None:
        stack = make_stack()
        arn = cdk.aws_iam.Role(stack, "One", assumed_by=anyone()).role_arn

        (line,) = refused(lambda: self.admitted(arn, arn, stack=stack))
        assert line.startswith("Theirs/Own: admins")
        assert "a token" in line


class TestMistakes:
    """One error tells all mistakes, each by the name of its argument."""

    def test_of_a_launch_template(self) -> None:
        stack = make_stack()
        naked = eks.Cluster.from_cluster_attributes(stack, "Naked", cluster_name="naked")

        assert refused(
            lambda: LaunchTemplate(
                stack,
                "P5",
                cluster=naked,
                instance_type="p5.48xlrge",
                capacity_block=CapacityBlock(reservation="cr-1", starts="soon", ends=BLOCK.ends),
                spot=True,
            )
        ) == (
            "Theirs/P5: capacity_block and spot: capacity bought in two ways; keep one, such as "
            "capacity_block",
            "Theirs/P5: cluster.vpc: not known of this cluster; give it to "
            "from_cluster_attributes, or use ExistingCluster",
            "Theirs/P5: cluster.cluster_security_group_id: not known of this cluster; give it to "
            "from_cluster_attributes, or use ExistingCluster",
            "Theirs/P5: instance_type: unknown instance type 'p5.48xlrge'; did you mean "
            "p5.48xlarge?",
            "Theirs/P5: capacity_block.reservation: not the id of a capacity reservation, got "
            "'cr-1'; copy it from `aws ec2 describe-capacity-reservations`, such as "
            "cr-0123456789abcdef0",
            "Theirs/P5: capacity_block.starts: not an ISO 8601 time, got 'soon'; write it as "
            "2026-12-01T11:30:00Z",
        )

    def test_of_a_node_pool(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack, endpoint=None)

        assert refused(
            lambda: NodePool(
                stack,
                "P5",
                cluster=cluster,
                subnets=[],
                instance_types=["p5.48xlarge"],
                nodes=Nodes(min=2, max=1),
                provisioner="self-managed",
                taints=[Taint(key="nvidia.com/gpu", value="x")],
            )
        ) == (
            "Theirs/P5: cluster.endpoint: not known of this cluster; add it to ExistingCluster",
            "Theirs/P5: subnets: no subnet; name at least one",
            "Theirs/P5: nodes.min: more than max: 1, got 2; write at most 1",
            "Theirs/P5: taints[0].key: a taint that others set, or that follows from the pool, got "
            "nvidia.com/gpu; use a key of your own",
        )

    def test_values_of_a_wrong_kind_are_told_before_anything_reads_them(self) -> None:
        stack = make_stack()
        cluster: Any = existing_cluster(stack)
        wrong: Any = "p5.48xlarge"

        assert refused(
            lambda: NodePool(
                stack,
                "P5",
                cluster=cluster,
                subnets=[*cluster.vpc.private_subnets[:1], wrong],
                instance_types=wrong,
                nodes=2,
                taints=[wrong],
                spot=wrong,
            )
        ) == (
            "Theirs/P5: instance_types: not a list, got 'p5.48xlarge'; write it in brackets",
            "Theirs/P5: subnets[1]: not a construct of the CDK, got 'p5.48xlarge'; pass such as "
            "vpc.private_subnets",
            "Theirs/P5: taints[0]: not a Taint, got 'p5.48xlarge'; write Taint(…)",
            "Theirs/P5: spot: not a flag, got 'p5.48xlarge'; write True or False",
        )

    @for_each([None, 5, "x", [], {}])
    def test_no_value_ends_in_a_bare_error_of_python(self, value: Any) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        private = cluster.vpc.private_subnets
        group = InstanceGroup(name="p5", instance_type="p5.48xlarge", nodes=1, subnets=private[:1])
        constructs: Mapping[Callable[..., object], Mapping[str, Any]] = {
            Cluster: {"name": "own", "vpc": cluster.vpc, "subnets": private},
            HyperPodCluster: {
                "cluster": cluster,
                "subnets": private,
                "instance_groups": [group],
            },
            LustreFileSystem: {"cluster": cluster, "subnet": private[0], "capacity_gib": 1200},
            NodePool: {
                "cluster": cluster,
                "subnets": private,
                "instance_types": ["m7g.large"],
                "nodes": 1,
            },
            WriteLatencyCanary: {"cluster": cluster, "subnets": private},
        }

        for number, (kind, stated) in enumerate(constructs.items()):
            for key in stated:
                with suppress(ArgumentError):
                    kind(stack, f"{key}{number}", **{**stated, key: value})

    def test_of_a_file_system(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)

        assert refused(
            lambda: LustreFileSystem(
                stack,
                "Data",
                cluster=cluster,
                subnet=cluster.vpc.private_subnets[0],
                capacity_gib=1300,
            )
        ) == (
            "Theirs/Data: capacity_gib: not a size at 250 MB/s per TiB, got 1300; nearest: 1200 or "
            "2400",
        )

    def test_of_a_calendar(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        group = eks.CfnNodegroup(
            stack,
            "Group",
            cluster_name="theirs",
            node_role="arn",
            subnets=["subnet-1"],
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(
                min_size=0, desired_size=0, max_size=65
            ),
        )

        assert refused(
            lambda: CapacityBlockCalendar(
                stack,
                "Calendar",
                cluster=cluster,
                node_group=group,
                instance_type="p5.48xlarge",
                nodes=65,
                capacity_block=BLOCK,
            )
        ) == (
            "Theirs/Calendar: node_group.capacity_type: a node group that launches nothing into a "
            "Capacity Block, got None; make it with capacity_type CAPACITY_BLOCK",
            "Theirs/Calendar: nodes: more nodes than a Capacity Block has instances, got 65; write "
            "at most 64, and add a pool for each further block",
        )

    def test_of_a_group_that_its_calendar_cannot_fill(self) -> None:
        """EKS refuses the size at the start of the window, which is paid for."""
        stack = make_stack()
        cluster = existing_cluster(stack)

        def group(id: str, **sizes: float) -> eks.CfnNodegroup:
            values: Any = sizes
            config = eks.CfnNodegroup.ScalingConfigProperty(**values) if sizes else None
            return eks.CfnNodegroup(
                stack,
                id,
                cluster_name="theirs",
                node_role="arn",
                subnets=["subnet-1"],
                capacity_type="CAPACITY_BLOCK",
                scaling_config=config,
            )

        def calendar(node_group: Any) -> Callable[[], object]:
            return lambda: CapacityBlockCalendar(
                stack,
                f"Of{node_group.node.id}",
                cluster=cluster,
                node_group=node_group,
                instance_type="p5.48xlarge",
                nodes=16,
                capacity_block=BLOCK,
            )

        sizes = group("Sizes", min_size=1, desired_size=2, max_size=8)
        scaling = autoscaling.CfnAutoScalingGroup(stack, "Scaling", max_size="8", min_size="1")
        unknown = cdk.CfnParameter(stack, "Most", type="Number").value_as_number
        tokens: Any = {"min_size": 0, "desired_size": 0, "max_size": unknown}

        assert refused(calendar(group("None"))) == (
            "Theirs/OfNone: node_group.scaling_config: none, by which EKS launches two nodes at "
            "once; write min_size=0, desired_size=0, max_size=16",
        )
        assert refused(calendar(sizes)) == (
            "Theirs/OfSizes: node_group.scaling_config.min_size: nodes outside of the block's "
            "window, which would find no capacity, got 1; write 0",
            "Theirs/OfSizes: node_group.scaling_config.desired_size: nodes outside of the block's "
            "window, which would find no capacity, got 2; write 0",
            "Theirs/OfSizes: node_group.scaling_config.max_size: fewer than the 16 nodes of the "
            "block, got 8; write at least 16",
        )
        assert [line.split(":")[1] for line in refused(calendar(scaling))] == [
            " node_group.min_size",
            " node_group.max_size",
        ]
        calendar(group("Unknown", **tokens))()

    def test_of_a_canary(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        private = cluster.vpc.private_subnets
        WriteLatencyCanary(stack, "First", cluster=cluster, subnets=private)

        assert refused(
            lambda: WriteLatencyCanary(
                stack, "Second", cluster=cluster, subnets=private, threshold_ms=0
            )
        ) == (
            "Theirs/Second: cluster: Theirs/First has the write canary of this cluster already; "
            "keep one: of two, one would write and both report",
            "Theirs/Second: threshold_ms: out of range, got 0; write at least 1",
        )

    def test_of_a_hyperpod_cluster(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        private = cluster.vpc.private_subnets
        plan = TrainingPlan(plan="arn", starts="2026-12-01T11:30:00Z", ends="2026-12-08T11:30:00Z")

        assert refused(
            lambda: HyperPodCluster(
                stack,
                "HyperPod",
                cluster=cluster,
                subnets=private,
                instance_groups=[
                    InstanceGroup(
                        name="p5", instance_type="ml.p5.48xlarge", nodes=1, subnets=private[:1]
                    ),
                    InstanceGroup(
                        name="trn",
                        instance_type="trn1.32xlarge",
                        nodes=0,
                        subnets=private[:1],
                        training_plan=plan,
                    ),
                ],
            )
        ) == (
            "Theirs/HyperPod: name: no name, and that of the EKS cluster is none for HyperPod; "
            "write one: a DNS label of at most 40 characters",
            "Theirs/HyperPod: instance_groups[0].instance_type: an instance type with SageMaker's "
            "prefix, got 'ml.p5.48xlarge'; write p5.48xlarge",
            "Theirs/HyperPod: instance_groups[1].training_plan.plan: not the ARN of a training "
            "plan, got 'arn'; write arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
            "Theirs/HyperPod: instance_groups[1].nodes: a pool that never has a node, got 0; write "
            "at least 1; a pool that may be empty has a max instead",
        )

    def test_of_a_cluster(self) -> None:
        stack = make_stack()
        vpc = ec2.Vpc(stack, "Net", max_azs=2, ip_addresses=ec2.IpAddresses.cidr("172.20.0.0/16"))

        assert refused(
            lambda: Cluster(
                stack, "Own", name="Own", vpc=vpc, subnets=vpc.private_subnets[:1], admins=["me"]
            )
        )[:1] == (
            "Theirs/Own: name: not a DNS label of at most 40 characters, got 'Own'; use lower-case "
            "letters, digits and '-', from a letter to a letter or digit",
        )

    def test_a_calendar_wants_a_count(self) -> None:
        stack = make_stack()
        wrong: Any = "4"

        (line,) = refused(
            lambda: CapacityBlockCalendar(
                stack,
                "Calendar",
                cluster=existing_cluster(stack),
                node_group=autoscaling.CfnAutoScalingGroup(
                    stack, "Group", max_size="4", min_size="0"
                ),
                instance_type="p5.48xlarge",
                nodes=wrong,
                capacity_block=BLOCK,
            )
        )
        assert line == "Theirs/Calendar: nodes: not a count, got '4'; write at least 1"

    def test_a_name_serves_one_pool_of_a_cluster(self) -> None:
        """The guard and the calendar find a pool's nodes by its name."""
        app = make_app()
        for id in ("One", "Two"):
            stack = make_stack(app, id)
            cluster = existing_cluster(stack)

            def define(stack: cdk.Stack = stack, cluster: ExistingCluster = cluster) -> object:
                return NodePool(
                    stack,
                    "cpu",
                    cluster=cluster,
                    subnets=cluster.vpc.private_subnets,
                    instance_types=["m7g.2xlarge"],
                    nodes=2,
                )

            if id == "One":
                define()
            else:
                (line,) = refused(define)
                assert line.startswith("Two/cpu: name: One/cpu has the pool 'cpu' of this cluster")
