"""SageMaker HyperPod: a provisioner of pools, with teams that share its nodes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ultrascale import config
from ultrascale.catalog import addons, hyperpod, training_operator
from ultrascale.catalog.provisioners import HYPERPOD, Provisioner, ProvisionerFacts
from ultrascale.core.part import Part
from ultrascale.parts.hyperpod import chart_facts, governance, rules
from ultrascale.parts.hyperpod.chart import plan_daemon_sets, plan_hyperpod_chart
from ultrascale.parts.hyperpod.layers import LAYERS
from ultrascale.parts.hyperpod.model import Plan
from ultrascale.parts.hyperpod.plan import plan_hyperpod, plan_isolation, plan_metrics_addon
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

# Its image, and the device plugins, are its own or come with AWS's chart.
# Source: https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart
# Its instances are in an account of AWS.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-cli-command-update-cluster-software.html
_FACTS = ProvisionerFacts(
    name="SageMaker HyperPod",
    word="HyperPod",
    in_account=False,
    type_prefix=hyperpod.TYPE_PREFIX,
    runs_pinned_image=False,
    brings_plugins=True,
    is_fixed=True,
    nodes_per_group=hyperpod.INSTANCES_PER_GROUP,
    types_per_group=hyperpod.TYPES_PER_GROUP,
    needs_controllers=True,
    keeps_subnets=True,
    is_dedicated=True,
    has_single_addresses=True,
    is_set_up_by_build=True,
    states_kernel=False,
    # AWS's example for ml.p5.48xlarge asks for them, but no page says whether every release of the
    # image sets any aside.
    sets_huge_pages_aside=False,
    are_shared=True,
    have_claims=True,
    labels={hyperpod.COMPUTE_TYPE: hyperpod.COMPUTE_TYPE_HYPERPOD},
    well=(hyperpod.HEALTH_STATUS, hyperpod.HEALTHY),
    passed=(hyperpod.DEEP_HEALTH_STATUS, hyperpod.DEEP_HEALTHY),
    window="training plan",
    repairs="HyperPod reboots or replaces it, by the fault",
    keeps_slots="kept: SageMaker replaces instances within the plan",
    renewed_by="HyperPod renews its nodes itself: aws sagemaker update-cluster-software, or "
    "batch-replace-cluster-nodes",
    upgraded_by="HyperPod renews its image by a call of its own, which drains no pods and replaces "
    "root volumes: `aws sagemaker update-cluster-software` between jobs, once the control "
    "plane is upgraded",
    resized_by="HyperPod keeps the count of the file; write it there as nodes.static, and deploy",
)


class _Part(Part[FileKeys, Plan]):
    name = "hyperpod"
    section = FileKeys
    controller_namespaces = (chart_facts.AGENT_NAMESPACE,)
    has_checks = True
    has_guard = True
    has_teardown = True
    controllers_in = "controller"
    has_workloads = True

    def addons(self, cluster: config.Cluster) -> Iterator[str]:
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

    def hides_metadata(self, cluster: config.Cluster) -> bool:
        # Elsewhere EC2 does. The role that the service gives may change interfaces of the account.
        return any(pool.provisioner == "hyperpod" for pool in cluster.pools)

    def keeps_broken_nodes(self, cluster: config.Cluster) -> bool:
        return settings_of(cluster).node_recovery == "none"

    def refusals(self, question: "Question", candidate: "Candidate") -> "Iterator[Reason]":
        return rules.refusals(question, candidate)

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
        """Return the metrics of its nodes and teams; labels of nodes are the same without any."""
        from ultrascale.parts.hyperpod.watch import watch_hyperpod

        return watch_hyperpod(cluster, pools, seconds)

    @property
    def provisioners(self) -> Mapping[Provisioner, ProvisionerFacts]:
        return {HYPERPOD: _FACTS}

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        return LAYERS


PART = _Part()

__all__ = ["PART", "Plan", "governance", "rules"]
