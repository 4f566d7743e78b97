"""Pods of charts of cdk8s-plus-27 constructs, like `_pods` for charts of plain objects.

The functions use the typed classes of `cdk8s_plus_27.k8s`: the intent classes lack seccomp
profiles, topology spread, `NotIn` affinity and selectors without cdk8s' own label. A selector is
immutable, so it must not depend on a construct's address.
"""

from functools import cache

from cdk8s_plus_27 import k8s as kube

from ultrascale.plan.model import ResourcesPlan
from ultrascale.plan.names import HOSTNAME_LABEL, ROLE_LABEL, SYSTEM_ROLE, ZONE_LABEL
from ultrascale_k8s._pods import CRITICAL_ADDONS_TAINT
from ultrascale_k8s.objects import NAME_LABEL, labels


def metadata(
    name: str, *, namespace: str | None = None, component: str | None = None
) -> kube.ObjectMeta:
    """Return the metadata of an object of ``component``; the default component is ``name``."""
    return kube.ObjectMeta(name=name, namespace=namespace, labels=labels(component or name))


def selector(name: str) -> kube.LabelSelector:
    """Return the selector of the pods of the component ``name``; it is immutable once applied."""
    return kube.LabelSelector(match_labels={NAME_LABEL: name})


def resources(*, cpu: str, memory: str, memory_limit: str) -> kube.ResourceRequirements:
    """Return requests and a memory limit, without a CPU limit, which would only slow a controller.

    Args:
        cpu: CPU request, in Kubernetes' notation.
        memory: Memory request.
        memory_limit: Memory beyond which the container is killed.
    """
    return kube.ResourceRequirements(
        requests={"cpu": _quantity(cpu), "memory": _quantity(memory)},
        limits={"memory": _quantity(memory_limit)},
    )


@cache
def _quantity(text: str) -> kube.Quantity:
    return kube.Quantity.from_string(text)


def planned_resources(plan: ResourcesPlan) -> kube.ResourceRequirements:
    """Return the requests and the limit that ``plan`` states."""
    return resources(cpu=plan.cpu, memory=plan.memory, memory_limit=plan.memory_limit)


def restricted_pod(user: int) -> kube.PodSecurityContext:
    """Return the pod's part of the `restricted` Pod Security Standard, running as ``user``.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    return kube.PodSecurityContext(
        run_as_non_root=True,
        run_as_user=user,
        run_as_group=user,
        fs_group=user,
        # Kubernetes would otherwise change the mode of every file at each start, and the private
        # data directory would become readable by the group.
        fs_group_change_policy="OnRootMismatch",
        seccomp_profile=kube.SeccompProfile(type="RuntimeDefault"),
    )


def restricted_container() -> kube.SecurityContext:
    """Return the container part of the `restricted` standard, with a read-only root file system."""
    return kube.SecurityContext(
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=kube.Capabilities(drop=["ALL"]),
    )


def tolerations() -> list[kube.Toleration]:
    """Return the toleration of `CriticalAddonsOnly` with any value and effect."""
    return [kube.Toleration(key=CRITICAL_ADDONS_TAINT, operator="Exists")]


def system_affinity() -> kube.Affinity:
    """Return the affinity to the system pool: accelerated nodes cost too much, and come and go."""
    of_role = kube.NodeSelectorRequirement(key=ROLE_LABEL, operator="In", values=[SYSTEM_ROLE])
    term = kube.NodeSelectorTerm(match_expressions=[of_role])
    return kube.Affinity(
        node_affinity=kube.NodeAffinity(
            required_during_scheduling_ignored_during_execution=kube.NodeSelector(
                node_selector_terms=[term]
            )
        )
    )


def keep_apart(name: str) -> list[kube.TopologySpreadConstraint]:
    """Return the spread of replicas of ``name``: different nodes, and if possible different zones.

    The failure of a zone must not keep a replica from starting elsewhere.
    """
    return [
        kube.TopologySpreadConstraint(
            max_skew=1,
            topology_key=key,
            when_unsatisfiable=otherwise,
            label_selector=selector(name),
        )
        for key, otherwise in ((HOSTNAME_LABEL, "DoNotSchedule"), (ZONE_LABEL, "ScheduleAnyway"))
    ]
