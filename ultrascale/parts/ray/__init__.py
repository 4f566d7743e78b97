"""Jobs of Ray, and the operator that runs them."""

from collections.abc import Iterable, Mapping, Sequence

from ultrascale import config
from ultrascale.core.part import HelmChart, Part
from ultrascale.parts.ray import facts
from ultrascale.parts.ray.model import Plan
from ultrascale.parts.ray.plan import RAY, has_ray, operator_size, plan_operator, plan_ray
from ultrascale.parts.ray.section import FileKeys, RayJob, runs_ray
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan, ControllerPlan, IngressPlan, JobPlan, NamespacePlan
from ultrascale.plan.stacks import Layer, LayerId


class _Part(Part[FileKeys, Plan]):
    name = "ray"
    section = FileKeys
    place = "scheduling"
    job_kind = RayJob
    controller_namespaces = (facts.NAMESPACE,)
    has_workloads = True
    has_checks = True
    controllers_in = "plan"
    charts = (
        HelmChart(
            location=facts.CHART, version=facts.VERSION, images=(facts.IMAGE,), defines_once=True
        ),
    )

    def namespaces(self, cluster: config.Cluster) -> Sequence[NamespacePlan]:
        there = has_ray(cluster)
        return [NamespacePlan(name=facts.NAMESPACE, pod_security="restricted")] if there else []

    def controllers_of_jobs(self, cluster: config.Cluster) -> Sequence[JobController]:
        return (RAY,) if has_ray(cluster) else ()

    def controller_of(self, request: JobRequest) -> JobController | None:
        return RAY if isinstance(request.job, RayJob) else None

    def ways_to_jobs(self, cluster: config.Cluster) -> Iterable[IngressPlan]:
        # The operator asks the head for the state of the entry point.
        if has_ray(cluster):
            yield IngressPlan(namespace=facts.NAMESPACE, port=facts.DASHBOARD_PORT)

    def closed_pods(self, cluster: config.Cluster) -> str | None:
        return facts.POD_LABEL if has_ray(cluster) else None

    def plan_on(self, cluster: config.Cluster, core: ClusterPlan) -> Plan | None:
        return plan_operator(cluster, core)

    def plan_job(self, request: JobRequest) -> JobPlan | None:
        return plan_ray(request, request.job) if isinstance(request.job, RayJob) else None

    def controllers(self, file: config.Parts, nodes: int) -> Mapping[str, Sequence[ControllerPlan]]:
        items = [placed.item for placed in file.placed]
        keys = next((item for item in items if isinstance(item, FileKeys)), None)
        return {"KubeRay": (operator_size(nodes),)} if runs_ray(keys, items) else {}

    @property
    def layers(self) -> Mapping[LayerId, Layer]:
        return {
            "ray-operator": Layer(
                exists=lambda plan: plan.part(Plan) is not None,
                after=("network", "cluster", "platform"),
                follows="platform",
                # Kueue looks for the kinds of jobs as it starts.
                before=("scheduling",),
            )
        }


PART = _Part()

__all__ = ["PART", "Plan"]
