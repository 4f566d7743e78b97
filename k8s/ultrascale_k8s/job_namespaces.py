"""Admission policies of namespaces of jobs: the platform keeps its objects and highest priorities.

EKS's access policies let people edit all objects of Kubernetes' own kinds in a namespace, and RBAC
cannot leave out single ones. Nothing puts an object of the platform back before the next deployment
that changes it.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/access-policy-permissions.html
    https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

import json
from collections.abc import Iterator, Sequence

from ultrascale.documents import JsonObject
from ultrascale.plan.model import NamespacePlan, PriorityClassPlan
from ultrascale.plan.names import ETCD_SERVER_SERVICE
from ultrascale_k8s._admission import IS_PERSON, PODS, Kinds, binding, policy
from ultrascale_k8s.namespaces import policy_names

_COMPONENT = "access"
_OWN = tuple(
    Kinds(group=group, version="v1", resources=resources)
    for group, resources in (
        ("", ("configmaps", "persistentvolumeclaims", "serviceaccounts", "services")),
        ("apps", ("statefulsets",)),
        ("batch", ("jobs",)),
        ("networking.k8s.io", ("networkpolicies",)),
        ("rbac.authorization.k8s.io", ("rolebindings", "roles")),
    )
)
_LABELS = "oldObject.metadata.labels"
_PART = "app.kubernetes.io/part-of"


def job_namespace_objects(
    namespaces: Sequence[NamespacePlan], classes: Sequence[PriorityClassPlan]
) -> Iterator[JsonObject]:
    """Yield the policies, and their bindings.

    Args:
        namespaces: Namespaces of the platform.
        classes: Priorities of jobs.
    """
    names = [each.name for each in namespaces if each.training]
    policies = sorted({name for each in namespaces for name in policy_names(each)})
    labeled = f'has({_LABELS}) && "{_PART}" in {_LABELS} && {_LABELS}["{_PART}"] == "ultrascale"'
    named = (
        'request.resource.resource == "networkpolicies" && '
        f"oldObject.metadata.name in {json.dumps(policies)}"
    )
    yield from _policy(
        "ultrascale-own-objects",
        _OWN,
        names,
        operations=("UPDATE", "DELETE"),
        conditions={"a-person-asks": IS_PERSON, "is-the-platforms": f"({labeled}) || ({named})"},
        validation=(
            "false",
            "this object is the platform's, made from the cluster file: jobs of everybody rely on "
            "it, and nothing puts it back; change the file and deploy, or ask an administrator",
        ),
    )
    owners = "object.metadata.ownerReferences"
    of_etcd = (
        f'has({owners}) && {owners}.exists(owner, owner.kind == "StatefulSet" && '
        f'owner.name == "{ETCD_SERVER_SERVICE}")'
    )
    highest = max((each.value for each in classes), default=0)
    yield from _policy(
        "ultrascale-priorities",
        (PODS,),
        names,
        operations=("CREATE",),
        conditions={"is-not-the-platforms": f"{IS_PERSON} || !({of_etcd})"},
        validation=(
            "(!has(object.spec.priorityClassName) || "
            '!object.spec.priorityClassName.startsWith("system-")) && '
            f"(!has(object.spec.priority) || object.spec.priority <= {highest})",
            "the priority of this pod is above all of the cluster's: it would evict programs of "
            f"the platform; name one of {', '.join(each.name for each in classes)}, or add one to "
            "scheduling.priority_classes",
        ),
    )


def scaler_objects(namespaces: Sequence[NamespacePlan]) -> Iterator[JsonObject]:
    """Yield the policy of people's ScaledObjects, and its binding.

    KEDA asks the URL of a trigger from within the platform, whose network policies let it pass.
    """
    address = '"http://" + object.metadata.name + "." + request.namespace + ".svc:"'
    url = "trigger.metadata.url"
    yield from _policy(
        "ultrascale-scalers",
        (Kinds(group="keda.sh", version="v1alpha1", resources=("scaledobjects", "scaledjobs")),),
        [each.name for each in namespaces if each.training],
        operations=("CREATE", "UPDATE"),
        conditions={"a-person-asks": IS_PERSON},
        validation=(
            'object.spec.triggers.all(trigger, trigger.type in ["cpu", "memory"] || '
            '(trigger.type == "metrics-api" && !has(trigger.authenticationRef) && '
            f"has({url}) && {url}.startsWith({address}) && "
            f'{url}.matches("^http://[a-z0-9.-]+:[0-9]+/[a-z0-9/_-]*$")))',
            "a trigger asks the metrics of the service of the ScaledObject's own name and "
            "namespace, or CPU and memory: KEDA would ask any other address on behalf of the "
            "platform; send the service by `ultrascale submit`",
        ),
    )


def _policy(
    name: str,
    kinds: tuple[Kinds, ...],
    namespaces: Sequence[str],
    *,
    operations: tuple[str, ...],
    conditions: dict[str, str],
    validation: tuple[str, str],
) -> list[JsonObject]:
    judges = policy(
        name,
        component=_COMPONENT,
        kinds=kinds,
        operations=operations,
        conditions=conditions,
        validations=(validation,),
        reason="Forbidden",
    )
    return [judges, binding(name, component=_COMPONENT, namespaces=namespaces)]
