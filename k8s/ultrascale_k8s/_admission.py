"""Parts of admission policies that the API server itself evaluates, in CEL.

Sources:
    https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    https://kubernetes.io/docs/reference/using-api/cel/
"""

import json
from collections.abc import Sequence

API_VERSION = "admissionregistration.k8s.io/v1"
# Kubernetes sets it on every namespace.
# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-metadata-name
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def asks_for(pod: str, wanted: str) -> str:
    """Return the expression that is true where a container of a pod asks for a resource.

    Args:
        pod: Expression of the specification of the pod.
        wanted: Expression that is true of a resource by its ``name``.
    """
    all_of_them = f"({pod}.containers + (has({pod}.initContainers) ? {pod}.initContainers : []))"
    return containers_ask_for(all_of_them, wanted)


def containers_ask_for(containers: str, wanted: str) -> str:
    """Return the expression that is true where one of ``containers`` asks for a resource.

    A limit alone is a request as well, and charts write 0 for none.

    Args:
        containers: Expression of a list of containers.
        wanted: Expression that is true of a resource by its ``name``.
    """
    return f"""\
{containers}.exists(container, has(container.resources) && (
(has(container.resources.limits) && container.resources.limits.exists(name,
string(container.resources.limits[name]) != "0" &&
{wanted})) ||
(has(container.resources.requests) && container.resources.requests.exists(name,
string(container.resources.requests[name]) != "0" &&
{wanted}))))"""


def asks_for_one_of(resources: Sequence[str]) -> str:
    """Return the expression that is true of a resource, by its ``name``, that is one of some."""
    return f"name in {json.dumps(list(resources))}"


def leader_worker_set_asks_for(leader_worker_set: str, wanted: str) -> str:
    """Return the expression that is true where a pod of a LeaderWorkerSet asks for a resource.

    Args:
        leader_worker_set: Expression of the LeaderWorkerSet.
        wanted: Expression that is true of a resource by its ``name``.
    """
    template = f"{leader_worker_set}.spec.leaderWorkerTemplate"
    of_workers = asks_for(f"{template}.workerTemplate.spec", wanted)
    of_leader = asks_for(f"{template}.leaderTemplate.spec", wanted)
    return f"({of_workers}) ||\n(has({template}.leaderTemplate) && ({of_leader}))"


def jobset_asks_for(jobset: str, wanted: str) -> str:
    """Return the expression that is true where a pod of a JobSet asks for a resource.

    Args:
        jobset: Expression of the JobSet.
        wanted: Expression that is true of a resource by its ``name``.
    """
    role = "role.template.spec.template.spec"
    of_role = containers_ask_for(f"{role}.containers", wanted)
    of_start = containers_ask_for(f"{role}.initContainers", wanted)
    return (
        f"{jobset}.spec.replicatedJobs.exists(role, {of_role} ||\n"
        f"(has({role}.initContainers) && {of_start}))"
    )
