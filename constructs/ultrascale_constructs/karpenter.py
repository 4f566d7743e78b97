"""Karpenter: its roles, the interruption queue, and the values of its chart."""

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import Stack, Token
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct
from msgspec.structs import replace

from ultrascale.plan import names
from ultrascale.plan.model import KarpenterPlan
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_constructs.event_queue import EventQueue
from ultrascale_constructs.karpenter_policy import PolicyScope, controller_policies
from ultrascale_constructs.key import volume_key_permissions
from ultrascale_constructs.nodes import NODE_POLICIES, NodeRole

# A Spot Instance ends two minutes after its warning: older messages are useless.
_RETENTION_SECONDS = 300
# Source: https://karpenter.sh/v1.14/reference/cloudformation/
_INTERRUPTIONS: Mapping[str, tuple[str, str]] = {
    "Health": ("aws.health", "AWS Health Event"),
    "SpotInterruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "StateChange": ("aws.ec2", "EC2 Instance State-change Notification"),
    "ReservationInterruption": (
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
}
_OFFICIAL = "a statement that Karpenter documents; conditions on tags bound what it changes"


class Karpenter(Construct):
    """Defines the controller's role, the nodes' role and the interruption queue."""

    def __init__(
        self, scope: Construct, id: str, *, plan: KarpenterPlan, cluster_name: str
    ) -> None:
        super().__init__(scope, id)
        # Both roles are kept, whichever of them new nodes get: a running node without its role and
        # its access entry loses the API server.
        roles = [
            self._node_role(id, name, cluster_name, kind, with_profile=plan.is_isolated)
            for id, name, kind in (
                ("NodeRole", plan.node_role, "EC2_LINUX"),
                ("NodeRoleById", plan.node_role_by_id, "EC2"),
            )
        ]
        queue = EventQueue(
            self,
            "InterruptionQueue",
            name=plan.interruption_queue,
            retention_seconds=_RETENTION_SECONDS,
            patterns={
                id: {"source": [source], "detail-type": [kind]}
                for id, (source, kind) in _INTERRUPTIONS.items()
            },
        )
        stack = Stack.of(self)
        target = PolicyScope(
            partition=stack.partition,
            region=stack.region,
            account=stack.account,
            cluster=cluster_name,
            node_role_arns=tuple(role.role_arn for role in roles),
            reboots_nodes=plan.reboots_nodes,
            is_isolated=plan.is_isolated,
            queue_arn=queue.queue_arn,
        )
        role = iam.CfnRole(
            self,
            "ControllerRole",
            assume_role_policy_document=_document([_trust(cluster_name)]),
        )
        # Association of the controller's pods with their role and all its policies
        self.identity = eks.CfnPodIdentityAssociation(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=names.SYSTEM_NAMESPACE,
            service_account=names.KARPENTER_ACCOUNT,
            role_arn=role.attr_arn,
        )
        for policy in self._policies(role, target):
            self.identity.add_resource_dependency(policy)
        if plan.volume_key is not None:
            self.identity.add_resource_dependency(self._volume_key(role, plan.volume_key))

    def _node_role(
        self, id: str, name: str, cluster_name: str, kind: str, *, with_profile: bool
    ) -> NodeRole:
        """Define a role of nodes; the ``kind`` of the access entry determines the nodes' names.

        Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/examples/
        """
        return NodeRole(
            self,
            id,
            cluster_name=cluster_name,
            role_name=name,
            managed_policies=NODE_POLICIES,
            access_entry_type=kind,
            with_profile=with_profile,
        )

    def _policies(self, role: iam.CfnRole, target: PolicyScope) -> Iterator[iam.CfnManagedPolicy]:
        for name, statements in controller_policies(target).items():
            policy = iam.CfnManagedPolicy(
                self,
                f"{name}Policy",
                roles=[role.ref],
                policy_document=_document([s.document for s in statements]),
            )
            acknowledge(policy, {finding: _OFFICIAL for finding in _wildcards(name, target)})
            yield policy

    def _volume_key(self, role: iam.CfnRole, key_arn: str) -> iam.CfnManagedPolicy:
        statements = [
            {
                "Effect": "Allow",
                "Action": list(permission.actions),
                "Resource": list(permission.resources),
                "Condition": permission.conditions,
            }
            for permission in volume_key_permissions(Stack.of(self).region, key_arn)
        ]
        return iam.CfnManagedPolicy(
            self, "VolumeKeyPolicy", roles=[role.ref], policy_document=_document(statements)
        )


def _trust(cluster_name: str) -> Mapping[str, object]:
    """Return the statement that lets only the controller's pods assume the role.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-role.html
    """
    tags = {
        "eks-cluster-name": cluster_name,
        "kubernetes-namespace": names.SYSTEM_NAMESPACE,
        "kubernetes-service-account": names.KARPENTER_ACCOUNT,
    }
    return {
        "Effect": "Allow",
        "Principal": {"Service": "pods.eks.amazonaws.com"},
        "Action": ["sts:AssumeRole", "sts:TagSession"],
        "Condition": {"StringEquals": {f"aws:RequestTag/{key}": tags[key] for key in tags}},
    }


def _document(statements: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    return {"Version": "2012-10-17", "Statement": statements}


def _wildcards(policy: str, target: PolicyScope) -> Iterator[str]:
    """Yield the names that cdk-nag gives the wildcards in a policy of the controller."""
    account = "<AWS::AccountId>" if Token.is_unresolved(target.account) else target.account
    for statement in controller_policies(replace(target, account=account))[policy]:
        for resource in statement.resources:
            if resource.endswith("*"):
                yield f"AwsSolutions::AwsSolutions-IAM5[Resource::{resource}]"


def controller_values(plan: KarpenterPlan, *, cluster_name: str) -> dict[str, object]:
    """Return the values of the chart `karpenter`.

    The chart's own affinity stays: no node that Karpenter launches, and one replica a node.

    Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/charts/karpenter/values.yaml
    """
    return {
        "replicas": plan.replicas,
        "serviceAccount": {"name": names.KARPENTER_ACCOUNT},
        "nodeSelector": {names.ROLE_LABEL: names.SYSTEM_ROLE},
        "topologySpreadConstraints": [_zone_spread()],
        "controller": {
            **({} if plan.image is None else {"image": {"repository": plan.image}}),
            "env": [
                {"name": "KUBE_CLIENT_QPS", "value": str(plan.client_qps)},
                {"name": "KUBE_CLIENT_BURST", "value": str(plan.client_burst)},
            ],
            # No limit of CPU: a throttled controller reacts late to interruptions. The chart
            # derives the controller's concurrency from the request.
            "resources": {
                "requests": {"cpu": plan.cpu, "memory": plan.memory},
                "limits": {"memory": plan.memory},
            },
        },
        "settings": {
            "clusterName": cluster_name,
            "interruptionQueue": plan.interruption_queue,
            "batchIdleDuration": plan.batch_idle_duration,
            "batchMaxDuration": plan.batch_max_duration,
            "preferencePolicy": "Ignore" if plan.ignores_preferences else "Respect",
            "disableClusterStateObservability": plan.hides_cluster_state,
            # With this setting the controller calls neither IAM nor the Price List API, which it
            # cannot reach.
            "isolatedVPC": plan.is_isolated,
            "featureGates": {_camel(gate): on for gate, on in plan.feature_gates.items()},
            **_repair(plan),
        },
    }


def _repair(plan: KarpenterPlan) -> Mapping[str, object]:
    """Return the settings of node repair that only newer charts know."""
    if plan.legacy_node_repair is None:
        return {}
    return {
        "legacyNodeRepair": plan.legacy_node_repair,
        "awsFeatureGates": {_camel(gate): on for gate, on in plan.aws_feature_gates.items()},
    }


def _zone_spread() -> dict[str, object]:
    """Return the spread that prefers two zones, but allows both replicas in one zone.

    The chart's own rule would leave one replica pending.
    """
    return {
        "maxSkew": 1,
        "topologyKey": names.ZONE_LABEL,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "karpenter"}},
    }


def _camel(gate: str) -> str:
    return gate[0].lower() + gate[1:]
