"""The stacks of a cluster; network and EKS control plane, each where nothing else can fail."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from aws_cdk import App, Environment, Stack

from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.model.cluster import PartT
from ultrascale.plan.names import stack_description
from ultrascale.plan.stacks import LayerId, StackName
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
