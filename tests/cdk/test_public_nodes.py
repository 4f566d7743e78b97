"""Launch templates, pools and calendars of the library in a CDK app of somebody else."""

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2

from tests.support.cases import for_each
from tests.support.foreign_apps import (
    BLOCK,
    REGION,
    define_calendar,
    define_pool,
    define_template,
    existing_cluster,
    imported_vpc,
    made,
    make_app,
    make_stack,
)
from tests.support.public_constructs import Resources, of, refused
from ultrascale_constructs.public import (
    CapacityReservation,
    KarpenterNodePool,
    Nodes,
)


class TestLaunchTemplate:
    def test_a_p5_has_every_efa_interface_at_its_place(self, plain: Resources) -> None:
        (template,) = of(plain, "AWS::EC2::LaunchTemplate", "Template")
        data = template["LaunchTemplateData"]
        places = [
            (nic["NetworkCardIndex"], nic["DeviceIndex"], nic["InterfaceType"])
            for nic in data["NetworkInterfaces"]
        ]

        first = [(0, 0, "interface"), (0, 1, "efa-only")]
        assert places == [*first, *((card, 0, "efa-only") for card in range(1, 32))]
        assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
        target = {"CapacityReservationId": "cr-0123456789abcdef0"}
        assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": target}
        # EFA traffic passes within its group both ways.
        (ingress,) = of(plain, "AWS::EC2::SecurityGroupIngress", "TemplateEfa")
        (egress,) = of(plain, "AWS::EC2::SecurityGroupEgress", "TemplateEfa")
        assert ingress["SourceSecurityGroupId"] == ingress["GroupId"]
        assert egress["DestinationSecurityGroupId"] == egress["GroupId"]
        assert ingress["IpProtocol"] == egress["IpProtocol"] == "-1"

    def test_further_groups_reach_nodes_without_efa(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        group = ec2.SecurityGroup(stack, "Further", vpc=cluster.vpc)

        define_template(
            stack, cluster=cluster, instance_type="m7g.2xlarge", security_groups=[group]
        )

        (template,) = of(made(stack), "AWS::EC2::LaunchTemplate")
        ids = template["LaunchTemplateData"]["SecurityGroupIds"]
        assert ids == ["sg-0123456789abcdef0", stack.resolve(group.security_group_id)]

    def test_two_templates_that_spill_take_two_names(self) -> None:
        """Names of resource groups are the account's: the second stack would fail."""
        app = make_app()
        spilling = CapacityReservation(reservation="cr-0123456789abcdef1", spill="on-demand")
        one, two = make_stack(app, "One"), make_stack(app, "Two")

        define_template(one, capacity_reservation=spilling)

        assert refused(lambda: define_template(two, capacity_reservation=spilling)) == (
            "Two/P5: name: One/P5 has the pool 'p5' of this cluster already; give each pool of a "
            "cluster its own name",
        )

    @for_each([REGION, None])
    def test_a_reservation_or_group_that_the_app_makes_is_taken_in_any_region(
        self, region: str | None
    ) -> None:
        stack = make_stack(region=region)
        one = cdk.CfnResource(stack, "One", type="AWS::EC2::CapacityReservation").ref
        group = cdk.CfnResource(stack, "Group", type="AWS::ResourceGroups::Group").get_att("Arn")
        taken = CapacityReservation(resource_group=group.to_string())

        cluster = existing_cluster(stack)
        more: dict[str, Any] = {"cluster": cluster, "instance_type": "trn2.48xlarge"}
        define_template(stack, cluster=cluster, capacity_reservation=one)
        define_template(stack, "T", **more, capacity_reservation=taken)

        by_id, by_group = (
            each["LaunchTemplateData"]["CapacityReservationSpecification"]
            for each in of(made(stack), "AWS::EC2::LaunchTemplate")
        )
        assert by_id == {
            "CapacityReservationTarget": {"CapacityReservationId": {"Ref": "One"}},
            "CapacityReservationPreference": "capacity-reservations-only",
        }
        arn = {"Fn::GetAtt": ["Group", "Arn"]}
        target = by_group["CapacityReservationTarget"]
        assert target == {"CapacityReservationResourceGroupArn": arn}


class TestNodePool:
    def test_nodes_of_a_foreign_cluster_carry_the_rights_of_the_cni_and_go_at_once(
        self, plain: Resources
    ) -> None:
        """Without the rights no node becomes ready, and all are paid for."""
        (foreign,) = of(plain, "AWS::IAM::Role", "SpillingNodeGroupOdcrRole")
        (own,) = of(plain, "AWS::IAM::Role", "systemNodeGroupRole")
        (reserved,) = of(plain, "AWS::ResourceGroups::Group")
        (group,) = of(plain, "AWS::AutoScaling::AutoScalingGroup")

        assert "AmazonEKS_CNI_Policy" in str(foreign)
        assert "AmazonEKS_CNI_Policy" not in str(own)
        # A reservation that spills has a group beside its pool.
        assert reserved["Name"] == "Theirs_1-spilling-reservation"
        # A hook that no handler completes would keep each ended node, paid, for an hour.
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
        cpu: dict[str, Any] = {
            "cluster": existing_cluster(stack, kubernetes_version=None),
            "instance_types": ["m7g.2xlarge"],
        }

        assert refused(lambda: define_pool(stack, "One", **cpu)) == (
            "Theirs/One: kubernetes_version: not known of this cluster, and EKS refuses a release "
            "that is newer than it; add kubernetes_version",
        )
        define_pool(stack, "Two", **cpu, kubernetes_version="1.36")
        (group,) = of(made(stack), "AWS::EKS::Nodegroup")
        assert group["ReleaseVersion"].startswith("1.36.")

    def test_a_block_has_its_calendar(self) -> None:
        stack = make_stack()
        define_pool(stack, nodes=Nodes(max=4), capacity_block=BLOCK)

        assert expressions(stack) == {"cron(30 11 1 12 ? *)", "rate(1 minute)"}
        # As `ultrascale advise` writes it: what is reserved is paid on without its nodes.
        (group,) = of(made(stack), "AWS::EKS::Nodegroup")
        assert group["Labels"]["ultrascale.dev/role"] == "reserved"

    def test_the_autoscaler_reads_how_many_pods_a_node_takes(self) -> None:
        """It would launch a node for a pod that then has no place on it."""
        stack = make_stack()
        cpu: dict[str, Any] = {"provisioner": "self-managed", "instance_types": ["m7g.2xlarge"]}
        define_pool(stack, nodes=Nodes(min=1, max=4), max_pods=20, **cpu)

        (group,) = of(made(stack), "AWS::AutoScaling::AutoScalingGroup")
        tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
        assert tags["k8s.io/cluster-autoscaler/node-template/resources/pods"] == "20"

    def test_a_subnet_may_state_the_id_of_its_zone(self) -> None:
        stack = make_stack()
        subnet = ec2.Subnet.from_subnet_attributes(
            stack, "Subnet", subnet_id="subnet-1", availability_zone="usw2-az4"
        )

        assert define_pool(stack, subnets=[subnet]).efa_interfaces == 32


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

    def test_its_class_finds_subnets_and_groups_by_their_ids_and_asks_for_nothing_of_ours(
        self,
    ) -> None:
        stack = make_stack()
        pool = self.define(stack, imported_vpc(stack))

        node_class, _ = (stack.resolve(manifest["spec"]) for manifest in pool.manifests)
        groups = [each["id"] for each in node_class["securityGroupSelectorTerms"]]
        assert node_class["subnetSelectorTerms"] == [{"id": "subnet-0123456789abcdef0"}]
        assert groups == ["sg-0123456789abcdef0", stack.resolve(pool.efa_security_group_id)]
        assert node_class["role"] == "KarpenterNodes"
        assert len(node_class["networkInterfaces"]) == 33
        # What a foreign cluster lacks would keep its nodes empty.
        assert [manifest["kind"] for manifest in pool.manifests] == ["EC2NodeClass", "NodePool"]
        assert "startupTaints" not in str(pool.manifests)
        assert "ipPrefixCount" not in str(pool.manifests)

    def test_zones_that_nobody_knows_are_those_of_its_subnets(self) -> None:
        """A requirement of a made-up zone would keep every node from coming."""
        stack = make_stack(region=None)
        pool = self.define(stack, ec2.Vpc(stack, "Net", max_azs=2))

        assert "topology." not in str(pool.manifests)
        assert "us-east-1" not in str(pool.manifests)

    def test_mistakes_are_told_together(self) -> None:
        stack = make_stack()

        assert refused(
            lambda: self.define(
                stack, imported_vpc(stack), max_nodes=0, karpenter_version="1.9.0", efa="all"
            )
        ) == (
            "Theirs/P5: karpenter_version: too old for EFA interfaces, as in this pool, got "
            "'1.9.0'; use 1.11.0 or later",
            "Theirs/P5: max_nodes: a pool that never has a node, got 0; write at least 1; min: 0 "
            "lets the pool be empty",
        )


def expressions(stack: cdk.Stack) -> set[str]:
    """Return when the schedules of a stack call."""
    return {each["ScheduleExpression"] for each in of(made(stack), "AWS::Scheduler::Schedule")}


def test_an_auto_scaling_group_is_emptied_before_the_block_ends() -> None:
    stack = make_stack()
    group = autoscaling.CfnAutoScalingGroup(stack, "Group", max_size="4", min_size="0")

    define_calendar(stack, existing_cluster(stack), group, 4)

    times = {"cron(30 11 1 12 ? *)", "cron(50 10 2 12 ? *)", "rate(1 minute)"}
    assert expressions(stack) == times
