"""SageMaker HyperPod: a provisioner of pools, with teams that share its nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ultrascale import config
from ultrascale.catalog import addons, training_operator
from ultrascale.catalog.provisioners import HYPERPOD, Provisioner, ProvisionerFacts
from ultrascale.core.part import Part
from ultrascale.parts.hyperpod import chart_facts, governance, rules
from ultrascale.parts.hyperpod.chart import plan_daemon_sets, plan_hyperpod_chart
from ultrascale.parts.hyperpod.layers import LAYERS
from ultrascale.parts.hyperpod.model import Plan
from ultrascale.parts.hyperpod.plan import plan_hyperpod, plan_isolation, plan_metrics_addon
from ultrascale.parts.hyperpod.provisioner import FACTS
from ultrascale.parts.hyperpod.section import FileKeys, settings_of
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan, IngressPlan, PoolPlan, Watch
from ultrascale.plan.model.jobs import TopologyPlan
from ultrascale.plan.namespaces import plan_team_namespaces
from ultrascale.plan.stacks import Layer, LayerId

if TYPE_CHECKING:
    from ultrascale.plan.advice.model import Candidate, Question, Reason

# The operator starts and watches the processes of a job through the agent in each of its pods.
_AGENTS = IngressPlan(namespace=training_operator.NAMESPACE, port=training_operator.AGENT_PORT)


class _Part(Part[FileKeys, Plan]):
    name = "hyperpod"
    section = FileKeys
    controller_namespaces = (chart_facts.AGENT_NAMESPACE,)
    has_checks = True
    has_guard = True
    has_teardown = True
    has_controllers = True
    has_workloads = True

    def addons(self, cluster: config.Cluster) -> Iterator[str]:
        """Yield the add-ons of task governance and of the training operator."""
        settings = settings_of(cluster)
        if settings.task_governance is not None:
            yield addons.GOVERNANCE_ADDON
        if settings.training_operator:
            yield addons.TRAINING_OPERATOR

    def needs_certificates(self, cluster: config.Cluster) -> bool:
        return settings_of(cluster).training_operator

    def controllers_of_jobs(self, cluster: config.Cluster) -> Iterator[JobController]:
        from ultrascale.parts.hyperpod.controller import OPERATED, PYTORCH

        if any(pool.is_hyperpod for pool in cluster.pools):
            yield PYTORCH
        if settings_of(cluster).training_operator:
            yield OPERATED

    def controller_of(self, request: JobRequest) -> JobController | None:
        from ultrascale.parts.hyperpod.controller import controller_of

        return controller_of(request)

    def job_notes(self, request: JobRequest) -> Iterator[str]:
        return governance.notes(request)

    def restart_notes(
        self, request: JobRequest, pools: Sequence[PoolPlan], controller: JobController
    ) -> Iterator[str]:
        from ultrascale.parts.hyperpod.controller import restart_notes

        return restart_notes(request, pools, controller)

    def topology_of(self, job: config.TrainingJob) -> TopologyPlan | None:
        return governance.topology_of(job)

    def closeness_mistakes(
        self, request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]
    ) -> Iterator[config.Mistake] | None:
        if request.engine.queues_jobs or not governance.on_hyperpod(pools):
            return None
        return governance.closeness_mistakes(request, job, pools)

    def ways_to_jobs(self, cluster: config.Cluster) -> Sequence[IngressPlan]:
        return (_AGENTS,) if settings_of(cluster).training_operator else ()

    def keeps_broken_nodes(self, cluster: config.Cluster) -> bool:
        return settings_of(cluster).node_recovery == "none"

    def refusals(self, question: "Question", candidate: "Candidate") -> "Iterator[Reason]":
        from ultrascale.parts.hyperpod.advice import refusals

        return refusals(question, candidate)

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        pools = [pool for pool in core.all_pools if pool.is_hyperpod]
        if not pools:
            return None
        return Plan(
            cluster=plan_hyperpod(cluster, core.network, pools),
            chart_release=plan_hyperpod_chart(
                cluster.region,
                pools,
                governed=settings_of(cluster).task_governance is not None,
                copies=core.copies,
            ),
            policy=plan_isolation(pools),
            metrics=plan_metrics_addon(cluster),
            daemons=tuple(plan_daemon_sets(pools)),
            governed_namespaces=plan_team_namespaces(cluster),
        )

    def watch(self, cluster: config.Cluster, pools: Sequence[PoolPlan], *, seconds: int) -> Watch:
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

__all__ = ["PART", "Plan", "governance", "rules"]
