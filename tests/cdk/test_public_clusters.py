"""Clusters of the library, and canaries, in a CDK app of somebody else."""

import json
from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match, Template

from tests.support.cases import for_each
from tests.support.foreign_apps import (
    define_canary,
    define_pool,
    existing_cluster,
    imported_vpc,
    made,
    make_stack,
)
from tests.support.public_constructs import Resources, make_net, of, refused
from ultrascale_constructs.cdk_types import anyone
from ultrascale_constructs.public import (
    Cluster,
    HyperPodCluster,
    InstanceGroup,
)


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

        define_canary(stack, cluster=existing_cluster(stack, kubernetes_version=version))

    def test_its_objects_are_there_for_who_applies_them(self) -> None:
        stack = make_stack()
        canary = define_canary(stack, apply_manifests=False)

        kinds = [str(manifest["kind"]) for manifest in canary.manifests]
        assert kinds[0] == "Namespace"
        assert {"Lease", "Role", "RoleBinding"} <= {*kinds}
        assert not of(made(stack), "Custom::AWSCDK-EKS-KubernetesResource")


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

    def test_its_controllers_run_where_they_are_told_to(self, plain: Resources) -> None:
        """With labels of ours they would stay Pending on a cluster of somebody else."""
        stack = make_stack()
        tools = {"team.example/pool": "tools"}
        self.define(stack, existing_cluster(stack), controller_node_selector=tools)

        assert "nodeSelector" not in self.placement(plain)
        placement = json.loads(self.placement(made(stack)))
        (operation,) = json.loads(placement["patches"][0]["patch"])
        assert (operation["op"], operation["value"]) == ("add", tools)
        assert operation["path"] == "/spec/template/spec/nodeSelector"

    def test_its_subnets_need_not_be_those_of_the_control_plane(self) -> None:
        stack = make_stack()
        vpc = imported_vpc(stack)
        other = ec2.Subnet.from_subnet_attributes(
            stack, "Other", subnet_id="subnet-other", availability_zone="us-west-2a"
        )
        own = Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        self.define(stack, own, subnets=[other])

        for kind in ("AWS::CodeBuild::Project", "AWS::SageMaker::Cluster"):
            (found,) = of(made(stack), kind)
            assert found["VpcConfig"]["Subnets"] == ["subnet-other"]

    def test_its_chart_waits_for_the_network_of_pods_and_for_nodes(self) -> None:
        """Its build waits for pods that run, and fails after minutes."""
        stack = make_stack()
        vpc = imported_vpc(stack)
        subnets = vpc.private_subnets
        own = Cluster(stack, "Own", name="own", vpc=vpc, subnets=subnets)
        types = ["m7g.2xlarge"]
        nodes = define_pool(stack, "system", cluster=own, subnets=subnets, instance_types=types)

        self.define(stack, own, subnets=subnets, after=[nodes])

        (build,) = (each for each in made(stack).values() if each["Type"] == "Custom::Build")
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
                stack, existing_cluster(stack), controller_node_selector=wrong, after=["NodePool"]
            )
        ) == (
            "Theirs/HyperPod: controller_node_selector: no labels, got {'pool': 1}; write such as "
            '{"ultrascale.dev/role": "system"}',
            "Theirs/HyperPod: after[0]: not a construct of the CDK, got 'NodePool'; pass such as "
            "a NodePool",
        )


class TestCluster:
    def test_nodes_wait_for_what_lets_them_join_and_addons_with_pods_for_nodes(
        self, plain: Resources
    ) -> None:
        (group,) = (
            each
            for id, each in plain.items()
            if each["Type"] == "AWS::EKS::Nodegroup" and id.startswith("system")
        )
        (dns,) = (
            each
            for each in plain.values()
            if each["Type"] == "AWS::EKS::Addon" and each["Properties"]["AddonName"] == "coredns"
        )

        assert any("vpccni" in id for id in group["DependsOn"])
        assert any(id.startswith("systemNodeGroup") for id in dns["DependsOn"])

    @staticmethod
    def addon(found: Resources, name: str) -> Mapping[str, Any]:
        """Return the configuration of an add-on."""
        (addon,) = (each for each in of(found, "AWS::EKS::Addon") if each["AddonName"] == name)
        values: Mapping[str, Any] = json.loads(addon["ConfigurationValues"])
        return values

    def test_addons_run_on_whatever_nodes_there_are_and_dns_grows_with_them(
        self, plain: Resources
    ) -> None:
        """Pods that stay pending fail the add-on, and the stack with it."""
        dns, driver = (self.addon(plain, name) for name in ("coredns", "aws-ebs-csi-driver"))
        agent = self.addon(plain, "eks-node-monitoring-agent")

        text = str((dns, driver))
        assert "requiredDuringScheduling" not in text
        assert "nodeSelector'" not in text
        assert text.count("preferredDuringScheduling") == 4
        assert dns["autoScaling"]["maxReplicas"] > 4
        # The DCGM server must run on tainted nodes, or node repair replaces healthy GPU nodes.
        assert agent["dcgmAgent"]["tolerations"] == [{"operator": "Exists"}]

    @staticmethod
    def admitted(*admins: str, stack: cdk.Stack | None = None) -> Resources:
        """Return the access entries of a cluster with these administrators, by their ids."""
        stack = stack or make_stack()
        vpc = imported_vpc(stack)
        subnets = vpc.private_subnets
        Cluster(stack, "Own", name="own", vpc=vpc, subnets=subnets, admins=admins)
        return Template.from_stack(stack).find_resources("AWS::EKS::AccessEntry")

    def test_administrators_may_be_roles_of_the_app_and_leave_each_other_alone(self) -> None:
        stack = make_stack(region=None)
        roles = [cdk.aws_iam.Role(stack, id, assumed_by=anyone()).role_arn for id in ("One", "Two")]
        named = [f"arn:aws:iam::{stack.account}:role/{name}" for name in ("Three", "Four")]
        one, two = (f"arn:aws:iam::111122223333:role/{name}" for name in ("One", "Two"))

        entries = self.admitted(*roles, *named, stack=stack)

        arns = [str(entry["Properties"]["PrincipalArn"]) for entry in entries.values()]
        assert len(arns) == 4
        assert "stand-in" not in str(arns)
        # An entry of another id for the same role is one too many, and the deployment fails.
        assert self.admitted(two).items() <= self.admitted(one, two).items()
        again = make_stack()
        arn = cdk.aws_iam.Role(again, "One", assumed_by=anyone()).role_arn
        (line,) = refused(lambda: self.admitted(arn, arn, stack=again))
        assert line.startswith("Theirs/Own: admins")
        assert "a token" in line

    def test_subnets_of_the_app_get_no_tag(self) -> None:
        """A tag of load balancers on a shared subnet attracts those of other clusters."""
        stack = make_net()
        before = Template.from_stack(make_net()).find_resources("AWS::EC2::Subnet")
        vpc: Any = stack.node.find_child("Net")

        Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        assert Template.from_stack(stack).find_resources("AWS::EC2::Subnet") == before

    def test_imported_subnets_bring_no_warning_of_tags(self) -> None:
        stack = make_stack()
        vpc = imported_vpc(stack)

        Cluster(stack, "Own", name="own", vpc=vpc, subnets=vpc.private_subnets)

        found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
        assert [
            each.id for each in found if "noSubnetRouteTableId" not in str(each.entry.data)
        ] == []
