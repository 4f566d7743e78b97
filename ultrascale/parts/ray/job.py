"""RayJobs: a head and groups of workers, made for one entry point and deleted when it ends.

Source: https://github.com/ray-project/kuberay/tree/v1.7.0/ray-operator/apis/ray/v1
"""

from collections.abc import Iterator
from typing import cast

from msgspec.structs import replace

from ultrascale.documents import Json
from ultrascale.jobs.pod_template import deadline, metadata, pod_template, workload_metadata
from ultrascale.parts.ray import facts
from ultrascale.parts.ray.model import RayJobPlan
from ultrascale.plan import names
from ultrascale.plan.model import JobPlan, RolePlan


def objects(plan: JobPlan) -> Iterator[dict[str, Json]]:
    """Yield the network policy of the job's pods, and the RayJob."""
    ray = plan.operator
    assert isinstance(ray, RayJobPlan)
    if ray.closed:
        own: Json = {"podSelector": {"matchLabels": {names.JOB_LABEL: plan.name}}}
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata(plan),
            # The namespace's own policy lets the operator reach the dashboard.
            "spec": {**own, "policyTypes": ["Ingress"], "ingress": [{"from": [own]}]},
        }
    about = workload_metadata(plan)
    seconds = ray.starts_within_seconds
    yield {
        "apiVersion": facts.API_VERSION,
        "kind": "RayJob",
        "metadata": {**about, "labels": {**cast("Labels", about["labels"]), **ray.labels}},
        "spec": {
            "entrypoint": ray.entry_point,
            # The head's pod sends the entry point, and has its output.
            "submissionMode": "SidecarMode",
            "backoffLimit": plan.restarts,
            **deadline(plan),
            **({} if seconds is None else {"preRunningDeadlineSeconds": seconds}),
            # An ended job would hold its nodes.
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": 0,
            "rayClusterSpec": _cluster(plan, ray),
        },
    }


def _cluster(plan: JobPlan, ray: RayJobPlan) -> dict[str, Json]:
    head, *workers = (_template(plan, ray, role) for role in plan.roles)
    counts = ("replicas", "minReplicas", "maxReplicas")
    return {
        "rayVersion": ray.version,
        # Who reaches a port of Ray without a token runs code in its pods.
        "authOptions": {"mode": "token"},
        "headGroupSpec": {"rayStartParams": {}, "template": head},
        "workerGroupSpecs": [
            {
                "groupName": role.name,
                # The operator wants all three where Ray's own autoscaler is off.
                **dict.fromkeys(counts, role.pods),
                "rayStartParams": {},
                "template": template,
            }
            for role, template in zip(plan.roles[1:], workers, strict=True)
        ],
    }


Labels = dict[str, Json]


def _template(plan: JobPlan, ray: RayJobPlan, role: RolePlan) -> dict[str, Json]:
    own = {facts.NAME_LABEL: plan.name}
    if role.name == facts.HEAD:
        own[facts.INDEX_LABEL] = "0"
    placed = replace(plan, topology=ray.topologies.get(role.name))
    template = pod_template(placed, role, extra_labels=own, spec={"restartPolicy": "Never"})
    # A Service of the operator selects the head by the operator's own value of this label.
    del cast("dict[str, Labels]", template["metadata"])["labels"]["app.kubernetes.io/name"]
    return template
