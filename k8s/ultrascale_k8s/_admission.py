"""Parts of admission policies in CEL, which the API server evaluates without a webhook.

Sources:
    https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    https://kubernetes.io/docs/reference/using-api/cel/
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from ultrascale.documents import Json, JsonObject
from ultrascale.frozen import Frozen
from ultrascale.plan.names import ACCESS_GROUP
from ultrascale_k8s.objects import labels

API_VERSION = "admissionregistration.k8s.io/v1"
# Label that Kubernetes sets on every namespace.
# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-metadata-name
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


IS_PERSON = (
    "has(request.userInfo.groups) && request.userInfo.groups.exists(group, "
    f'group == "{ACCESS_GROUP}" || group == "system:serviceaccounts:" + request.namespace)'
)
"""CEL expression: true if somebody of `kubernetes.access` below cluster-admin asks, or a pod of the
namespace. Controllers of Kubernetes and of the platform are others.

Source: https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/
"""


class Kinds(Frozen):
    """Kinds of objects that a policy checks."""

    group: str  # API group of the kinds; empty for Kubernetes' core
    version: str  # Its version
    resources: tuple[str, ...]  # Plurals of the kinds
    # Whether only kinds that have namespaces: a binding's namespaces leave out no others.
    # Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/validating-admission-policy-binding-v1/
    namespaced: bool = False


PODS = Kinds(group="", version="v1", resources=("pods",))
JOBS = Kinds(group="batch", version="v1", resources=("jobs",))
LEADER_WORKER_SETS = Kinds(
    group="leaderworkerset.x-k8s.io", version="v1", resources=("leaderworkersets",)
)


RAY_JOBS = Kinds(group="ray.io", version="v1", resources=("rayjobs",))


def policy(
    name: str,
    *,
    component: str,
    kinds: Sequence[Kinds],
    operations: Sequence[str],
    conditions: Mapping[str, str],
    validations: Iterable[tuple[str, str]],
    reason: str,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> JsonObject:
    """Return a ValidatingAdmissionPolicy; an error in it refuses all requests that it checks.

    Args:
        name: Its name.
        component: Component in its labels.
        kinds: Kinds that it checks.
        operations: Requests that it checks.
        conditions: Conditions by name; an object that breaks one passes unchecked.
        validations: Conditions that a checked object must keep, each with its error message.
        reason: Reason of a refusal, in Kubernetes' words.
        variables: Expressions by name, which later expressions and the validations use.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"labels": labels(component), "name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": [kind.version],
                        "operations": list(operations),
                        "resources": list(kind.resources),
                        **({"scope": "Namespaced"} if kind.namespaced else {}),
                    }
                    for kind in kinds
                ]
            },
            "matchConditions": [
                {"name": condition, "expression": expression}
                for condition, expression in conditions.items()
            ],
            **_variables(variables),
            "validations": [
                {"expression": expression, "message": message, "reason": reason}
                for expression, message in validations
            ],
        },
    }


def _variables(variables: Mapping[str, str]) -> JsonObject:
    if not variables:
        return {}
    named: list[Json] = [
        {"name": name, "expression": expression} for name, expression in variables.items()
    ]
    return {"variables": named}


def binding(name: str, *, component: str, namespaces: Sequence[str]) -> JsonObject:
    """Return the binding of the policy ``name`` to ``namespaces``."""
    here: Json = {"key": NAMESPACE_LABEL, "operator": "In", "values": list(namespaces)}
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"labels": labels(component), "name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [here]}},
        },
    }


def asks_for(pod: str, wanted: str) -> str:
    """Return a CEL expression: true if any container of a pod requests the resource.

    Args:
        pod: CEL expression for the specification of the pod.
        wanted: CEL condition on the resource's ``name``.
    """
    # To the type check of the API server they are lists of two types, which it does not add, and in
    # a Job those of the second have no limits.
    first = f"has({pod}.initContainers) ? dyn({pod}.initContainers) : []"
    all_of_them = f"(dyn({pod}.containers) + ({first}))"
    return containers_ask_for(all_of_them, wanted)


def containers_ask_for(containers: str, wanted: str) -> str:
    """Return a CEL expression: true if any of ``containers`` requests the resource.

    A limit alone counts as a request, and a request of 0 as none: charts write it so.

    Args:
        containers: CEL expression for a list of containers.
        wanted: CEL condition on the resource's ``name``.
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
    """Return a CEL condition: true if a resource's ``name`` is one of ``resources``."""
    return f"name in {json.dumps(list(resources))}"


def leader_worker_set_asks_for(leader_worker_set: str, wanted: str) -> str:
    """Return a CEL expression: true if any pod of a LeaderWorkerSet requests the resource.

    Args:
        leader_worker_set: CEL expression for the LeaderWorkerSet.
        wanted: CEL condition on the resource's ``name``.
    """
    template = f"{leader_worker_set}.spec.leaderWorkerTemplate"
    of_workers = asks_for(f"{template}.workerTemplate.spec", wanted)
    of_leader = asks_for(f"{template}.leaderTemplate.spec", wanted)
    return f"({of_workers}) ||\n(has({template}.leaderTemplate) && ({of_leader}))"


def of_ray_cluster(cluster: str, is_true: Callable[[str], str]) -> str:
    """Return a CEL expression: true if ``is_true`` is, of a template of a Ray ``cluster``."""
    head, groups = is_true(f"{cluster}.headGroupSpec.template"), f"{cluster}.workerGroupSpecs"
    return f"({head}) ||\n(has({groups}) && {groups}.exists(group, {is_true('group.template')}))"


def ray_cluster_asks_for(cluster: str, wanted: str) -> str:
    """Return a CEL expression: true if a Ray ``cluster`` asks for devices; see `asks_for`."""
    return of_ray_cluster(cluster, lambda template: asks_for(f"{template}.spec", wanted))
