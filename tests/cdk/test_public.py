"""Constructs of the library in a CDK app of somebody else."""

import inspect
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks as eks_v1
from aws_cdk.assertions import Template

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.foreign_apps import (
    BLOCK,
    EVERY_FLAG,
    OUR_FLAGS,
    REGION,
    cdk_cluster,
    define_canary,
    define_file_system,
    define_pool,
    define_template,
    existing_cluster,
    imported_vpc,
    made,
    make_app,
    make_stack,
)
from tests.support.public_constructs import Resources, every_construct, of, refused, resources
from tools.library_reference import arguments
from ultrascale.frozen import Frozen
from ultrascale_constructs import public
from ultrascale_constructs.public import (
    Cluster,
    HyperPodCluster,
    InstanceGroup,
    Nodes,
)


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
    def test_all_but_the_place_of_a_construct_is_named_and_documented(self, name: str) -> None:
        positional = [each.name for each in parameters(name) if each.kind != each.KEYWORD_ONLY]
        documented = {each.name for each in arguments(name) if each.meaning}

        assert positional in ([], ["scope", "id"])
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
        [sys.executable, "-c", code], cwd=tmp_path, env={**kept, "PYTHONPATH": search}, check=True
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
        cluster, subnet = cdk_cluster(stack, vpc), vpc.private_subnets[0]
        define_pool(
            stack, cluster=cluster, subnets=[subnet], nodes=Nodes(max=4), capacity_block=BLOCK
        )
        define_file_system(stack, cluster, subnet=subnet)

        (group,) = of(made(stack), "AWS::EKS::Nodegroup")
        assert group["CapacityType"] == "CAPACITY_BLOCK"

    def test_hyperpod_asks_for_the_region_of_its_stack(self) -> None:
        stack = make_stack(region=None)
        cluster = existing_cluster(stack)
        private = cluster.vpc.private_subnets
        group = InstanceGroup(name="p5", instance_type="p5.48xlarge", nodes=4, subnets=private[:1])
        values: dict[str, Any] = {
            "cluster": cluster,
            "subnets": private,
            "instance_groups": [group],
        }

        assert refused(lambda: HyperPodCluster(stack, "HyperPod", name="theirs", **values)) == (
            "Theirs/HyperPod: env.region: a stack without a Region, and HyperPod is not in all; "
            "give the stack env=Environment(region=…)",
        )

    def test_a_vpc_that_is_looked_up_is_a_dummy_at_first(self) -> None:
        """The CDK synthesizes once before it asks the account; no rule may judge the dummy."""
        stack = make_stack()
        vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-0123456789abcdef0")
        cluster = Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        pool = define_pool(stack, cluster=cluster, subnets=vpc.private_subnets[:1])

        assert pool.efa_interfaces == 32

    def test_nodes_live_in_another_stack_than_their_cluster(self) -> None:
        app = make_app()
        first, second = make_stack(app, "Clusters"), make_stack(app, "Nodes")
        vpc = imported_vpc(first)
        define_pool(second, cluster=cdk_cluster(first, vpc), subnets=vpc.private_subnets[:1])

        (group,) = of(made(second), "AWS::EKS::Nodegroup")
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

        pool = define_template(stack, "P4", cluster=cluster, instance_type="p4d.24xlarge")

        assert pool.efa_interfaces == 4

    def test_pools_of_one_stack_share_a_function(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        for id in ("One", "Two"):
            define_pool(stack, id, cluster=cluster, instance_types=["m7g.2xlarge"])

        found = made(stack)
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
            cluster, subnets = cdk_cluster(stack, vpc), vpc.private_subnets
            types = ["m7g.2xlarge"]
            define_pool(
                nodes, f"Pool{id}", name="c", cluster=cluster, subnets=subnets, instance_types=types
            )

        assert len(of(made(nodes), "AWS::Lambda::Function")) == 2

    def test_a_name_serves_a_cluster_in_each_region_and_stage(self) -> None:
        app = make_app()
        stages = [cdk.Stage(app, name) for name in ("Test", "Production")]
        env = cdk.Environment(region=REGION)
        stacks = [
            *(cdk.Stack(stage, "Theirs", env=env) for stage in stages),
            make_stack(app, "One"),
            make_stack(app, "Two", region="us-east-2"),
        ]

        for stack in stacks:
            define_canary(stack)

    def test_logical_ids_follow_the_construct_alone(self) -> None:
        """Whatever stands beside it: CloudFormation would replace a file system for another id."""

        def data(stack: cdk.Stack) -> str:
            define_file_system(stack, existing_cluster(stack))
            (id,) = Template.from_stack(stack).find_resources("AWS::FSx::FileSystem")
            return id

        crowded = make_stack()
        ec2.Vpc(crowded, "Net", max_azs=2)
        assert data(crowded) == data(make_stack()) == "DataFileSystemDBE65FE2"
