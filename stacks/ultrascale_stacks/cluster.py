"""The network and the EKS control plane, its access entries, and its add-ons: a stack each."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ultrascale.plan.model import AccessPolicyPlan, AddonPlan, ClusterPlan, InterfaceCleanerPlan
from ultrascale.plan.model.cluster import PartT
from ultrascale.plan.names import stack_description
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.auto_mode import AutoModeNodeRole
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.control_plane import ControlPlane
from ultrascale_constructs.network import Network
from ultrascale_k8s import Charts

_StackT = TypeVar("_StackT", bound="LayerStack")


class ClusterStacks:
    """Stacks of a cluster that are already defined."""

    def __init__(self, *, app: App, plan: ClusterPlan, charts: Charts) -> None:
        self.app = app  # The app that holds them
        self.plan = plan  # The cluster
        self.charts = charts  # Its manifests
        self.stacks: dict[LayerId, list[LayerStack]] = {}  # Its stacks, by layer

    def get(self, kind: type[_StackT]) -> _StackT:
        """Return the one stack of a kind, which must be defined."""
        stacks = (stack for stacks in self.stacks.values() for stack in stacks)
        (stack,) = (stack for stack in stacks if isinstance(stack, kind))
        return stack

    def part(self, kind: type[PartT]) -> PartT:
        """Return the plan of a part that the cluster has."""
        plan = self.plan.part(kind)
        assert plan is not None, f"a cluster without {kind.__module__} has no such stack"
        return plan

    @cached_property
    def network(self) -> Network:
        """VPC of the cluster, with its subnets."""
        return self.get(ClusterStack).network

    @cached_property
    def context(self) -> ClusterContext:
        """Context of the cluster for later stacks."""
        cluster = self.get(ClusterStack)
        return ClusterContext(
            name=self.plan.name,
            endpoint=cluster.endpoint,
            certificate_authority=cluster.certificate_authority,
            service_cidr=str(self.plan.control_plane.service_cidr),
            security_group_id=cluster.security_group_id,
            vpc=self.network.vpc,
            private_subnet_ids=tuple(self.network.subnet_ids("private")),
        )

    def placeholders(self, *layers: LayerId) -> Mapping[str, str]:
        """Return the values of placeholders that the stacks of ``layers`` know, by placeholder."""
        return {
            key: value
            for layer in layers
            for stack in self.stacks.get(layer, ())
            for key, value in stack.placeholders.items()
        }


class LayerStack(Stack):
    """A stack of a layer, in the Region and, if the file names one, the account of its cluster."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        """Define the stack.

        Args:
            cluster: The cluster's stacks that are defined before this one.
            name: Name of the stack.
        """
        plan = cluster.plan
        super().__init__(
            cluster.app,
            name,
            env=Environment(account=plan.account, region=plan.region),
            description=stack_description(plan.name),
        )
        self.placeholders: Mapping[str, str] = {}  # Values of placeholders in the manifests


Builder = Callable[[ClusterStacks, StackName], LayerStack]


class NetworkStack(LayerStack):
    """Stack of a cluster's VPC."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        # The VPC and its subnets
        self.network = Network(
            self, "Network", plan=plan.network, cluster_name=plan.name, region=plan.region
        )
        if plan.network.existing is not None:
            return
        # Exported whether used or not: CloudFormation would have to delete an unused export before
        # it updates its last user, and refuses that.
        for value in (self.network.vpc_id, *self.network.subnet_ids()):
            self.export_value(value)


class ClusterStack(LayerStack):
    """Stack of the EKS control plane."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        if "network" in cluster.stacks:
            self.network = cluster.get(NetworkStack).network  # The VPC and its subnets
        else:
            # For an existing VPC to which no earlier stack adds anything.
            self.network = Network(
                self, "Network", plan=plan.network, cluster_name=plan.name, region=plan.region
            )
        control_plane = ControlPlane(
            self,
            "ControlPlane",
            name=plan.name,
            plan=plan.control_plane,
            vpc=self.network.vpc,
            subnet_ids=self.network.subnet_ids("control-plane"),
            tags_nodes=any(pool.tags for pool in plan.all_pools if pool.is_auto_mode),
        )
        self.security_group_id = control_plane.security_group_id  # Cluster security group
        self.endpoint = control_plane.endpoint  # URL of the API server
        # Certificate authority of the API server, in Base64
        self.certificate_authority = control_plane.certificate_authority
        # Exported whether used or not: see `NetworkStack`.
        for value in (self.security_group_id, self.endpoint, self.certificate_authority):
            self.export_value(value)


# --- Access entries of people, and the role of the nodes of EKS Auto Mode -------------------------
# The entries have a stack of their own, so that a wrong ARN breaks nothing else.


class AutoModeStack(LayerStack):
    """Stack of the Auto Mode nodes' role: nodes without it start and cost, and never join."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        assert plan.nodes.role is not None, "a cluster without Auto Mode has no such stack"
        AutoModeNodeRole(self, "NodeRole", cluster_name=plan.name, role_name=plan.nodes.role)


class AccessStack(LayerStack):
    """Stack of the access entries of administrators, and of the file's other roles."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan = cluster.plan
        for entry in plan.access.entries:
            eks.CfnAccessEntry(
                # In a scope of its own the logical id ends in a hash of the whole id, which
                # distinguishes `role/a/b` and `role/a-b`.
                Construct(self, _construct_id(entry.role)),
                "Resource",
                cluster_name=plan.name,
                principal_arn=entry.role,
                kubernetes_groups=list(entry.groups) or None,
                access_policies=[_policy(plan.partition, each) for each in entry.policies],
            )


def _policy(partition: str, plan: AccessPolicyPlan) -> eks.CfnAccessEntry.AccessPolicyProperty:
    scope = eks.CfnAccessEntry.AccessScopeProperty(type="cluster")
    if plan.namespaces:
        scope = eks.CfnAccessEntry.AccessScopeProperty(
            type="namespace", namespaces=list(plan.namespaces)
        )
    return eks.CfnAccessEntry.AccessPolicyProperty(
        policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{plan.name}",
        access_scope=scope,
    )


def _construct_id(arn: str) -> str:
    """Return a construct id for a role: its path and name, then its account.

    Names of roles have no colon, so no two roles share an id.
    """
    *_, account, role = arn.split(":")
    return f"{role.replace('/', ':')}:{account}"


# --- EKS add-ons: a stack for add-ons that nodes need, and a stack for add-ons that need nodes ----


class AddonsStack(LayerStack):
    """Stack of a set of EKS add-ons."""

    def __init__(
        self,
        cluster: ClusterStacks,
        name: StackName,
        *,
        addons: Sequence[AddonPlan],
        cleaner: InterfaceCleanerPlan | None = None,
    ) -> None:
        """Define the stack.

        Args:
            cluster: The cluster's stacks that are defined before this one.
            name: Name of the stack.
            addons: The stack's add-ons.
            cleaner: Deletes the interfaces of ended nodes; None: each node deletes its own.
        """
        super().__init__(cluster, name)
        cluster_name = cluster.plan.name
        for addon in addons:
            Addon(self, addon.name, plan=addon, cluster_name=cluster_name)
        if cleaner is not None:
            from ultrascale_constructs.interface_cleaner import InterfaceCleaner

            InterfaceCleaner(self, "InterfaceCleaner", plan=cleaner, cluster_name=cluster_name)
