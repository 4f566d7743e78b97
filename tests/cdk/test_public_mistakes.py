"""Wrong arguments of the library's constructs."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks

from tests.support.cases import for_each
from tests.support.foreign_apps import (
    BLOCK,
    define_calendar,
    define_canary,
    define_file_system,
    define_pool,
    define_template,
    existing_cluster,
    make_app,
    make_stack,
)
from tests.support.public_constructs import refused
from ultrascale_constructs.public import (
    ArgumentError,
    CapacityBlock,
    Cluster,
    HyperPodCluster,
    InstanceGroup,
    LustreFileSystem,
    NodePool,
    Nodes,
    Taint,
    TrainingPlan,
    WriteLatencyCanary,
)


def node_group(stack: cdk.Stack, id: str, **sizes: float) -> eks.CfnNodegroup:
    """Return a node group of EKS for a Capacity Block, with or without sizes."""
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


class TestMistakes:
    """One error tells all mistakes, each by the name of its argument."""

    def test_of_a_launch_template(self) -> None:
        stack = make_stack()
        naked = eks.Cluster.from_cluster_attributes(stack, "Naked", cluster_name="naked")
        wrong = CapacityBlock(reservation="cr-1", starts="soon", ends=BLOCK.ends)

        assert refused(
            lambda: define_template(
                stack, cluster=naked, instance_type="p5.48xlrge", capacity_block=wrong, spot=True
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

        assert refused(
            lambda: define_pool(
                stack,
                cluster=existing_cluster(stack, endpoint=None),
                subnets=[],
                nodes=Nodes(min=2, max=1),
                provisioner="self-managed",
                taints=[Taint(key="nvidia.com/gpu", value="x")],
            )
        ) == (
            "Theirs/P5: cluster.endpoint: not known of this cluster; add it to ExistingCluster",
            "Theirs/P5: subnets: no subnet; name at least one",
            "Theirs/P5: nodes.min: more than max: 1, got 2; write at most 1",
            "Theirs/P5: taints[0].key: a taint that a controller, or the pool itself, sets, got "
            "nvidia.com/gpu; use a key of your own",
        )

    def test_values_of_a_wrong_kind_are_told_before_anything_reads_them(self) -> None:
        stack = make_stack()
        cluster: Any = existing_cluster(stack)
        wrong: Any = "p5.48xlarge"
        subnets = [*cluster.vpc.private_subnets[:1], wrong]
        values: dict[str, Any] = {"subnets": subnets, "instance_types": wrong}
        values |= {"taints": [wrong], "spot": wrong}

        assert refused(lambda: define_pool(stack, cluster=cluster, **values)) == (
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
            HyperPodCluster: {"cluster": cluster, "subnets": private, "instance_groups": [group]},
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

        assert refused(lambda: define_file_system(stack, cluster, capacity_gib=1300)) == (
            "Theirs/Data: capacity_gib: not a size at 250 MB/s per TiB, got 1300; nearest: 1200 or "
            "2400",
        )

    def test_of_a_calendar(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        group = node_group(stack, "Group", min_size=0, desired_size=0, max_size=65)
        group.capacity_type = None

        assert refused(lambda: define_calendar(stack, cluster, group, 65)) == (
            "Theirs/Calendar: node_group.capacity_type: a node group that launches nothing into a "
            "Capacity Block, got None; make it with capacity_type CAPACITY_BLOCK",
            "Theirs/Calendar: nodes: more nodes than a Capacity Block has instances, got 65; write "
            "at most 64, and add a pool for each further block",
        )
        assert refused(lambda: define_calendar(stack, cluster, group, "4", "Text"))[-1] == (
            "Theirs/Text: nodes: not a count, got '4'; write at least 1"
        )

    def test_of_a_group_that_its_calendar_cannot_fill(self) -> None:
        """EKS refuses the size at the start of the window, which is paid for."""
        stack = make_stack()
        cluster = existing_cluster(stack)

        def calendar(group: Any) -> Callable[[], object]:
            return lambda: define_calendar(stack, cluster, group, 16, f"Of{group.node.id}")

        sizes = node_group(stack, "Sizes", min_size=1, desired_size=2, max_size=8)
        scaling = autoscaling.CfnAutoScalingGroup(stack, "Scaling", max_size="8", min_size="1")
        unknown = cdk.CfnParameter(stack, "Most", type="Number").value_as_number

        assert refused(calendar(node_group(stack, "None"))) == (
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
        calendar(node_group(stack, "Unknown", min_size=0, desired_size=0, max_size=unknown))()

    def test_of_a_canary(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        define_canary(stack, "First", cluster=cluster)

        assert refused(lambda: define_canary(stack, "Second", cluster=cluster, threshold_ms=0)) == (
            "Theirs/Second: cluster: Theirs/First has the write canary of this cluster already; "
            "keep one: of two, one would write and both report",
            "Theirs/Second: threshold_ms: out of range, got 0; write at least 1",
        )

    def test_of_a_hyperpod_cluster(self) -> None:
        stack = make_stack()
        cluster = existing_cluster(stack)
        private = cluster.vpc.private_subnets
        plan = TrainingPlan(plan="arn", starts="2026-12-01T11:30:00Z", ends="2026-12-08T11:30:00Z")
        shared: dict[str, Any] = {"subnets": private[:1]}
        p5 = InstanceGroup(name="p5", instance_type="ml.p5.48xlarge", nodes=1, **shared)
        trn = InstanceGroup(
            name="trn", instance_type="trn1.32xlarge", nodes=0, training_plan=plan, **shared
        )
        values: dict[str, Any] = {
            "cluster": cluster,
            "subnets": private,
            "instance_groups": [p5, trn],
        }

        assert refused(lambda: HyperPodCluster(stack, "HyperPod", **values)) == (
            "Theirs/HyperPod: name: no name, and that of the EKS cluster is none for HyperPod; "
            "write one: a DNS label of at most 40 characters",
            "Theirs/HyperPod: instance_groups[0].instance_type: an instance type with SageMaker's "
            "prefix, got 'ml.p5.48xlarge'; write p5.48xlarge",
            "Theirs/HyperPod: instance_groups[1].training_plan.plan: not the ARN of a training "
            "plan, got 'arn'; write arn:aws:sagemaker:REGION:ACCOUNT:training-plan/NAME",
            "Theirs/HyperPod: instance_groups[1].nodes: a pool that never has a node, got 0; write "
            "at least 1, or max for a pool that may be empty",
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

    def test_a_name_serves_one_pool_of_a_cluster(self) -> None:
        """The guard and the calendar find a pool's nodes by its name."""
        app = make_app()
        one, two = make_stack(app, "One"), make_stack(app, "Two")
        define_pool(one, "cpu", instance_types=["m7g.2xlarge"])

        (line,) = refused(lambda: define_pool(two, "cpu", instance_types=["m7g.2xlarge"]))
        assert line.startswith("Two/cpu: name: One/cpu has the pool 'cpu' of this cluster")
