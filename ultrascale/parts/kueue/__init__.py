"""Kueue, which admits jobs to nodes by the quotas of their queues, and JobSet, which runs them."""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.core.engine import QueueKinds
from ultrascale.core.part import HelmChart, Part
from ultrascale.parts.kueue import facts, jobset, rules
from ultrascale.parts.kueue.model import Plan
from ultrascale.parts.kueue.plan import controllers_for, plan_kueue
from ultrascale.plan.model import (
    ControllerPlan,
    NamespacePlan,
    PlannedPart,
    PoolPlan,
    Watch,
    copies_of,
)
from ultrascale.plan.stacks import Layer, LayerId


class _Part(Part[config.Section, Plan]):
    name = "kueue"
    controller_namespaces = (jobset.NAMESPACE, facts.NAMESPACE)
    has_workloads = True
    has_acceptance = True
    # No value of ours turns on another container: Kueue's dashboard is off by default.
    # Sources:
    #     https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/templates/manager/manager.yaml
    #     https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/charts/jobset/templates/controller/deployment.yaml
    charts = (
        HelmChart(location=facts.CHART, version=facts.VERSION, images=(f"{facts.IMAGE}:v",)),
        HelmChart(
            location=jobset.CHART,
            version=jobset.VERSION,
            images=(f"{jobset.IMAGE}:v",),
            defines_once=True,
        ),
    )
    controllers_in = "engine"
    is_engine = True

    def queue_kinds(self, cluster: config.Cluster) -> QueueKinds | None:
        # Task governance is a Kueue of its own.
        governed = cluster.section(config.Teams) is not None
        return facts.QUEUE_KINDS if governed or cluster.scheduling.engine == self.name else None

    def controllers(self, file: config.Parts, nodes: int) -> Mapping[str, Sequence[ControllerPlan]]:
        items = (placed.item for placed in file.placed)
        stated = (item for item in items if isinstance(item, config.Scheduling))
        if all(scheduling.engine != self.name for scheduling in stated):
            return {}
        sizes = controllers_for(nodes)
        return {"Kueue": (sizes.manager,), "JobSet": (sizes.jobset,)}

    def namespaces(self, cluster: config.Cluster) -> Sequence[NamespacePlan]:
        if cluster.scheduling.engine != self.name:
            return ()
        return [
            NamespacePlan(name=name, pod_security="restricted")
            for name in self.controller_namespaces
        ]

    def watch(self, cluster: config.Cluster, pools: Sequence[PoolPlan], *, seconds: int) -> Watch:
        from ultrascale.parts.kueue.watch import watch_kueue

        return watch_kueue(cluster, pools, seconds)

    def plan_with_pools(
        self, cluster: config.Cluster, pools: Sequence[PoolPlan], parts: Sequence[PlannedPart]
    ) -> Plan | None:
        return plan_kueue(cluster, pools, copies_of(parts))

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        return {
            # Kueue and JobSet run on system nodes, in namespaces and behind policies of the
            # platform.
            "scheduling": Layer(
                exists=lambda plan: plan.part(Plan) is not None,
                after=("network", "cluster", "platform"),
                follows="serving-controllers",
            ),
        }


PART = _Part()

__all__ = ["PART", "Plan", "rules"]
