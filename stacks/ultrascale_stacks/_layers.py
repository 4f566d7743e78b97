"""The stacks of a cluster, and what each of them is given."""

from collections.abc import Mapping, Sequence

from aws_cdk import App, Stack

from ultrascale.plan import ClusterPlan
from ultrascale.plan.capacity import NODE_GROUPS, NODE_POOLS
from ultrascale.plan.model import AddonPlan, PoolPlan
from ultrascale.plan.names import stack as name
from ultrascale_constructs.calendar_function import ClusterApi
from ultrascale_constructs.node_config import ClusterAddress
from ultrascale_k8s import Charts, PlatformChart
from ultrascale_stacks.addons import AddonsStack
from ultrascale_stacks.auto_mode import AutoModeStack
from ultrascale_stacks.backend import BackendStack
from ultrascale_stacks.cluster import ClusterStack
from ultrascale_stacks.governance import GovernanceStack
from ultrascale_stacks.hyperpod import HyperPodStack
from ultrascale_stacks.hyperpod_chart import HyperPodChartStack
from ultrascale_stacks.hyperpod_observability import HyperPodObservabilityStack
from ultrascale_stacks.image_cache import ImageCacheStack
from ultrascale_stacks.images import ImagesStack
from ultrascale_stacks.karpenter import KarpenterStack
from ultrascale_stacks.network import NetworkStack
from ultrascale_stacks.node_group import NodeGroupStack
from ultrascale_stacks.node_pools import NodePoolsStack
from ultrascale_stacks.observability import ObservabilityStack
from ultrascale_stacks.platform import PlatformStack
from ultrascale_stacks.registry import RegistryStack
from ultrascale_stacks.scaling import ScalingStack
from ultrascale_stacks.storage import StorageStack

# They say what placeholders in the manifests stand for.
_Telling = ScalingStack | StorageStack | BackendStack | ImageCacheStack


class Layers:
    """The network and the cluster, and how the stacks that lie in them are defined.

    A layer that the plan leaves empty has no stack.
    """

    def __init__(self, app: App, plan: ClusterPlan) -> None:
        self._app = app
        self._plan = plan
        self._network = NetworkStack(app, name(plan.name, "network"), plan=plan).network
        self.cluster = ClusterStack(
            app, name(plan.name, "cluster"), plan=plan, network=self._network
        )
        self._address = ClusterAddress(
            name=plan.name,
            endpoint=self.cluster.endpoint,
            certificate_authority=self.cluster.certificate_authority,
            service_cidr=str(plan.control_plane.service_cidr),
        )
        self._service_token: str | None = None

    def addons(self, layer: str, addons: Sequence[AddonPlan]) -> list[Stack]:
        if not addons:
            return []
        id = name(self._plan.name, layer)
        return [AddonsStack(self._app, id, plan=self._plan, addons=addons)]

    def auto_mode(self) -> list[Stack]:
        if not self._plan.control_plane.auto_mode:
            return []
        return [AutoModeStack(self._app, name(self._plan.name, "nodes"), plan=self._plan)]

    def scaling(self) -> list[ScalingStack]:
        if not any(pool.provisioner in NODE_GROUPS for pool in self._plan.all_pools):
            return []
        stack = ScalingStack(self._app, name(self._plan.name, "scaling"), plan=self._plan)
        self._service_token = stack.service_token
        return [stack]

    def node_groups(self, pools: Sequence[PoolPlan]) -> list[Stack]:
        return [
            NodeGroupStack(
                self._app,
                name(self._plan.name, pool.name),
                plan=self._plan,
                pool=pool,
                network=self._network,
                cluster=self._address,
                cluster_security_group_id=self.cluster.security_group_id,
                service_token=self._service_token,
            )
            for pool in pools
            if pool.provisioner in NODE_GROUPS
        ]

    def storage(self) -> list[StorageStack]:
        if not self._plan.lustre and not self._plan.buckets:
            return []
        return [
            StorageStack(
                self._app,
                name(self._plan.name, "storage"),
                plan=self._plan,
                network=self._network,
                cluster_security_group_id=self.cluster.security_group_id,
            )
        ]

    def backend(self) -> list[BackendStack]:
        """Define the backend's database and role; its pods come with the platform."""
        backend = self._plan.backend
        if backend is None or backend.database is None:
            return []
        return [
            BackendStack(
                self._app,
                name(self._plan.name, "backend"),
                plan=self._plan,
                backend=backend,
                database=backend.database,
                network=self._network,
                cluster_security_group_id=self.cluster.security_group_id,
            )
        ]

    def image_cache(self, charts: Charts) -> list[ImageCacheStack]:
        cache = self._plan.image_cache
        if cache is None:
            return []
        id = name(self._plan.name, "image-cache")
        return [
            ImageCacheStack(
                self._app, id, plan=self._plan, cache=cache, images=charts.published_images
            )
        ]

    def registry(self) -> None:
        """Define the repositories, and what fills them."""
        if not self._plan.repositories:
            return
        registry = RegistryStack(self._app, name(self._plan.name, "registry"), plan=self._plan)
        if self._plan.image_builds:
            id = name(self._plan.name, "images")
            ImagesStack(self._app, id, plan=self._plan, key=registry.key)

    def platform(
        self,
        charts: Sequence[PlatformChart],
        earlier: Sequence[_Telling],
    ) -> PlatformStack:
        return self._charts("platform", charts, _placeholders(earlier))

    def _charts(
        self, layer: str, charts: Sequence[PlatformChart], placeholders: Mapping[str, str]
    ) -> PlatformStack:
        return PlatformStack(
            self._app,
            name(self._plan.name, layer),
            plan=self._plan,
            network=self._network,
            cluster_security_group_id=self.cluster.security_group_id,
            charts=charts,
            placeholders=placeholders,
        )

    def karpenter(self) -> list[Stack]:
        if self._plan.karpenter is None:
            return []
        return [
            KarpenterStack(
                self._app,
                name(self._plan.name, "karpenter"),
                plan=self._plan,
                network=self._network,
                cluster_security_group_id=self.cluster.security_group_id,
            )
        ]

    def hyperpod_chart(self) -> list[Stack]:
        if self._plan.hyperpod_chart is None:
            return []
        return [
            HyperPodChartStack(
                self._app,
                name(self._plan.name, "hyperpod-chart"),
                plan=self._plan,
                network=self._network,
                cluster_security_group_id=self.cluster.security_group_id,
            )
        ]

    def hyperpod(self, storage: Sequence[StorageStack]) -> list[HyperPodStack]:
        plan = self._plan
        if plan.hyperpod is None:
            return []
        values = _placeholders(storage)
        return [
            HyperPodStack(
                self._app,
                name(plan.name, "hyperpod-groups"),
                plan=plan,
                network=self._network,
                cluster_security_group_id=self.cluster.security_group_id,
                file_systems={
                    each.name: (values[each.dns_name], values[each.mount_name])
                    for each in plan.lustre
                },
            )
        ]

    def governance(
        self,
        hyperpod: Sequence[HyperPodStack],
        teams: Sequence[PlatformChart],
        earlier: Sequence[_Telling],
    ) -> list[Stack]:
        """Define task governance, and what the namespaces hold that it makes."""
        if self._plan.hyperpod is None or self._plan.hyperpod.governance is None:
            return []
        (cluster,) = hyperpod
        governance = GovernanceStack(
            self._app,
            name(self._plan.name, "governance"),
            plan=self._plan,
            hyperpod_cluster_arn=cluster.hyperpod_cluster_arn,
        )
        namespaces = self._charts("teams", teams, _placeholders(earlier))
        deploy_after([namespaces], [governance])
        return [governance, namespaces]

    def observability(self, storage: Sequence[StorageStack]) -> list[Stack]:
        plan = self._plan.observability
        if plan is None:
            return []
        api = ClusterApi(
            address=self._address,
            vpc=self._network.vpc,
            subnet_ids=self._network.subnet_ids("private"),
            security_group_id=self.cluster.security_group_id,
        )
        return [
            ObservabilityStack(
                self._app,
                name(self._plan.name, "observability"),
                cluster=self._plan,
                plan=plan,
                api=api,
                placeholders=_placeholders(storage),
            )
        ]

    def hyperpod_observability(self) -> list[Stack]:
        plan = self._plan.observability
        if plan is None or plan.hyperpod_addon is None:
            return []
        id = name(self._plan.name, "hyperpod-metrics")
        addon = plan.hyperpod_addon
        return [HyperPodObservabilityStack(self._app, id, plan=self._plan, addon=addon)]

    def node_pools(
        self, layer: str, pools: Sequence[PoolPlan], charts: Sequence[PlatformChart]
    ) -> Stack:
        return NodePoolsStack(
            self._app,
            name(self._plan.name, layer),
            plan=self._plan,
            network=self._network,
            cluster=self._address,
            cluster_security_group_id=self.cluster.security_group_id,
            pools=[pool for pool in pools if pool.provisioner in NODE_POOLS],
            charts=charts,
        )


def deploy_after(stacks: Sequence[Stack], earlier: Sequence[Stack]) -> None:
    """Let each of ``stacks`` wait for all that come ``earlier``."""
    for stack in stacks:
        for other in earlier:
            stack.add_stack_dependency(other)


def _placeholders(stacks: Sequence[_Telling]) -> Mapping[str, str]:
    """Return what the placeholders of all ``stacks`` stand for in the manifests."""
    return {key: value for stack in stacks for key, value in stack.placeholders.items()}
