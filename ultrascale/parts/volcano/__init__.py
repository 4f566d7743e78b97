"""Volcano, which starts all pods of a job at once or none."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.core.engine import QueueKinds
from ultrascale.core.part import Part
from ultrascale.parts.volcano import facts, rules
from ultrascale.parts.volcano.model import Plan
from ultrascale.parts.volcano.plan import plan_volcano
from ultrascale.plan.model import NamespacePlan, PlannedPart, PoolPlan, Watch


class _Part(Part[config.Section, Plan]):
    name = "volcano"
    controller_namespaces = (facts.NAMESPACE,)
    has_workloads = True
    queue_annotation = facts.QUEUE_ANNOTATION
    controllers_in = "engine"
    is_engine = True

    def queue_kinds(self, cluster: config.Cluster) -> QueueKinds | None:
        return facts.QUEUE_KINDS if cluster.scheduling.engine == self.name else None

    def namespaces(self, cluster: config.Cluster) -> Sequence[NamespacePlan]:
        if cluster.scheduling.engine != self.name:
            return ()
        return [NamespacePlan(name=facts.NAMESPACE, pod_security="restricted")]

    def watch(self, cluster: config.Cluster, pools: Sequence[PoolPlan], *, seconds: int) -> Watch:
        from ultrascale.parts.volcano.watch import watch_volcano

        return watch_volcano(cluster, pools, seconds)

    def plan_with_pools(
        self, cluster: config.Cluster, pools: Sequence[PoolPlan], parts: Sequence[PlannedPart]
    ) -> Plan | None:
        return plan_volcano(cluster, pools)


PART = _Part()

__all__ = ["PART", "Plan", "rules"]
