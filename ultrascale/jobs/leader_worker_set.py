"""LeaderWorkerSets: services whose replicas are groups of pods; the first takes requests.

Sources:
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/api/leaderworkerset/v1/leaderworkerset_types.go
    https://github.com/kubernetes-sigs/lws/blob/v0.10.0/pkg/controllers/pod_controller.go
"""

from collections.abc import Mapping

from ultrascale.catalog import leaderworkerset, object_keys
from ultrascale.documents import Json
from ultrascale.jobs.pod_template import pod_template, workload_metadata
from ultrascale.plan.model import JobPlan, ServingPlan

API_VERSION = "leaderworkerset.x-k8s.io/v1"
KIND = "LeaderWorkerSet"


def leader_worker_set(
    plan: JobPlan, serving: ServingPlan, leader: Mapping[str, Json], spread: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the LeaderWorkerSet of a service.

    Args:
        plan: The service.
        serving: Its replicas.
        leader: Fields of the container that takes requests: its port, probes and hook.
        spread: Fields of the pods' spec that spread replicas over zones.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": workload_metadata(plan),
        "spec": {
            **replicas_of(serving),
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {
                    "partition": 0,
                    "maxSurge": 1 if serving.surge else 0,
                    "maxUnavailable": serving.replaced,
                },
            },
            "startupPolicy": "LeaderCreated",
            # Its own Service of the shared kind would have the name of the clients' Service.
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "leaderWorkerTemplate": {
                "size": serving.nodes,
                # No vLLM goes on without one of its nodes.
                "restartPolicy": "RecreateGroupOnPodRestart",
                **_templates(plan, serving, leader, spread),
            },
        },
    }


def _templates(
    plan: JobPlan, serving: ServingPlan, leader: Mapping[str, Json], spread: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the templates of the pods of a replica.

    Kueue takes each template for a kind of pods with a flavor of its own, and places both in one
    domain if they name the same group.

    Source:
    https://kueue.sigs.k8s.io/docs/tasks/run/leaderworkerset/#configure-topology-aware-scheduling
    """
    first = pod_template(plan, container=leader, spec=spread)
    if serving.nodes == 1:
        return {"workerTemplate": first}
    group = {} if plan.topology is None else {object_keys.TOPOLOGY_GROUP: plan.name}
    workers = {name: leader[name] for name in ("lifecycle",) if name in leader}
    return {
        "leaderTemplate": pod_template(
            plan, container=leader, spec=spread, extra_annotations=group
        ),
        "workerTemplate": pod_template(plan, container=workers, extra_annotations=group),
    }


def leader_label() -> dict[str, str]:
    """Return the label of the pods that take requests."""
    return {leaderworkerset.WORKER_LABEL: "0"}


def replicas_of(serving: ServingPlan) -> dict[str, Json]:
    """Return the number of replicas, which an autoscaler sets where they follow the load."""
    return {"replicas": serving.replicas} if serving.autoscale is None else {}
