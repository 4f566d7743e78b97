"""Canaries of the latency of writes to an API server."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from msgspec.structs import replace

from ultrascale import config
from ultrascale.documents import JsonObject
from ultrascale.parts.observability import WRITE_CANARY
from ultrascale.parts.observability.section import WriteLatencySlo
from ultrascale.parts.observability.write_latency import plan_write_latency
from ultrascale_constructs.observability import WriteLatency
from ultrascale_constructs.public.arguments import Arguments, defining
from ultrascale_constructs.public.cluster import AnyCluster, context_of
from ultrascale_k8s.observability import write_canary_objects


class WriteLatencyCanary(Construct):
    """Defines a canary that writes to the API server each second, an objective, and three alarms.

    A Lambda function in the VPC patches a Lease and reports the time of each write as a metric;
    CloudWatch Application Signals keeps the objective over seven days.
    The alarms report slow writes, a missed objective and a silent canary; they have no actions.

    The Lease, its namespace and the function's right to it are Kubernetes objects: the construct
    applies them by a kubectl provider, or leaves them to you as `manifests`. The access
    configuration of the cluster needs the mode `API` or `API_AND_CONFIG_MAP`. A cluster has one
    canary.

    Sources:
        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-ServiceLevelObjectives.html
        https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html
    """

    manifests: Sequence[JsonObject]
    """The Kubernetes objects."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        subnets: Sequence[ec2.ISubnet],
        threshold_ms: int = 1000,
        goal_percent: float = 99.0,
        apply_manifests: bool = True,
    ) -> None:
        """Define the canary.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster whose API server it writes to.
            subnets: Private subnets of the cluster's VPC from which its API server, STS and EKS are
                reached, through NAT or endpoints.
            threshold_ms: Longest time of a good write, in milliseconds.
            goal_percent: Share of good writes over the last seven days, in percent.
            apply_manifests: Whether the objects are applied here, by functions in the subnets:
                where these have no NAT, also endpoints of Lambda and S3. Otherwise apply
                `manifests` before.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.lists(subnets=subnets)
        arguments.subnets("subnets", subnets)
        arguments.flags(apply_manifests=apply_manifests)
        arguments.stop()
        ids = tuple(subnet.subnet_id for subnet in subnets)
        context = context_of(cluster, arguments, "vpc", "security_group_id", private_subnet_ids=ids)
        zones = arguments.zones(subnets)
        if context is not None:
            arguments.claim(
                "the write canary of this cluster",
                of=context.name,
                argument="cluster",
                todo="keep one: of two, one would write and both report",
            )
        reading = arguments.judge(
            config.Stated(
                kind=WriteLatencySlo,
                at=("this objective",),
                keys={"threshold_ms": threshold_ms, "goal_percent": goal_percent},
            ),
            zones=zones,
        )
        assert context is not None, "a cluster that lacks something is refused"
        (slo,) = reading.every(WriteLatencySlo)
        (kubernetes,) = reading.every(config.Kubernetes)
        canary = plan_write_latency(context.name, slo)
        self.manifests = write_canary_objects(
            canary, namespace=WRITE_CANARY, kubernetes_version=kubernetes.version
        )
        context = replace(context, private_subnet_ids=ids)
        with defining():
            resource = WriteLatency(self, "WriteLatency", plan=canary, cluster=context)
            if apply_manifests:
                # Most apps need no kubectl provider.
                from ultrascale_constructs.public.manifests import manifests_of

                applier = manifests_of(self, context)
                applier.apply("write-canary", self.manifests, retain=False)
                applier.before(resource)
