"""SageMaker HyperPod: a provisioner of pools, with teams that share its nodes."""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.catalog.provisioners import HYPERPOD, Provisioner, ProvisionerFacts
from ultrascale.core.part import Part
from ultrascale.parts.hyperpod import chart_facts, rules
from ultrascale.parts.hyperpod.chart import plan_daemon_sets, plan_hyperpod_chart
from ultrascale.parts.hyperpod.isolation import plan_isolation
from ultrascale.parts.hyperpod.layers import LAYERS
from ultrascale.parts.hyperpod.metrics import plan_metrics_addon
from ultrascale.parts.hyperpod.model import Plan
from ultrascale.parts.hyperpod.plan import plan_hyperpod
from ultrascale.parts.hyperpod.provisioner import FACTS
from ultrascale.parts.hyperpod.section import FileKeys
from ultrascale.plan.model import ClusterPlan, PoolPlan, Watch
from ultrascale.plan.stacks import Layer, LayerId


class _Part(Part[FileKeys, Plan]):
    name = "hyperpod"
    section = FileKeys
    controller_namespaces = (chart_facts.AGENT_NAMESPACE,)
    has_checks = True
    has_guard = True
    has_teardown = True

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        pools = [pool for pool in core.all_pools if pool.is_hyperpod]
        if not pools:
            return None
        return Plan(
            cluster=plan_hyperpod(cluster, core.network, pools),
            chart_release=plan_hyperpod_chart(
                cluster.region,
                pools,
                governed=cluster.hyperpod.task_governance is not None,
                copies=core.copies,
            ),
            policy=plan_isolation(pools),
            metrics=plan_metrics_addon(cluster),
            daemons=tuple(plan_daemon_sets(pools)),
        )

    def watch(
        self,
        cluster: config.Cluster,
        pools: Sequence[PoolPlan],
        core: ClusterPlan,
        *,
        seconds: int,
    ) -> Watch:
        """Return how its nodes and teams are measured; labels of nodes are the same without any."""
        from ultrascale.parts.hyperpod.watch import watch_hyperpod

        return watch_hyperpod(cluster, pools, seconds)

    @property
    def provisioners(self) -> Mapping[Provisioner, ProvisionerFacts]:
        return {HYPERPOD: FACTS}

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        return LAYERS


PART = _Part()

__all__ = ["PART", "Plan", "rules"]
