"""Values that charts of controllers on system nodes have in common."""

from collections.abc import Mapping, Sequence

from ultrascale.plan import names
from ultrascale.plan.model import ControllerPlan

SYSTEM_NODES: Mapping[str, str] = {names.ROLE_LABEL: names.SYSTEM_ROLE}
SYSTEM_TOLERATIONS: Sequence[Mapping[str, str]] = [
    {"key": "CriticalAddonsOnly", "operator": "Exists"}
]
# Otherwise users' pods of higher priority could preempt a controller's pods.
PRIORITY = "system-cluster-critical"


def image_values(reference: str) -> dict[str, str]:
    """Return the repository and the tag of an image; the tag holds the digest as well.

    The charts join repository, colon and tag, whatever the tag holds.
    """
    name, at, digest = reference.partition("@")
    repository, _, tag = name.rpartition(":")
    return {"repository": repository, "tag": f"{tag}{at}{digest}"}


def resources_of(plan: ControllerPlan, *, chart_limits_cpu: bool) -> dict[str, object]:
    """Return the requests, and limits without CPU.

    Args:
        plan: The controller.
        chart_limits_cpu: Whether the chart has a limit of CPU: then a null removes the limit. Else
            Helm would keep the null, and the API server would read it as a limit of 0.
    """
    no_limit: Mapping[str, object] = {"cpu": None} if chart_limits_cpu else {}
    return {
        "requests": {"cpu": plan.cpu, "memory": plan.memory},
        "limits": {**no_limit, "memory": plan.memory},
    }


def spread_over(key: str, otherwise: str, labels: Mapping[str, str]) -> dict[str, object]:
    """Return the constraint that spreads pods over the values of a label of their nodes.

    Args:
        key: The label of nodes.
        otherwise: Choice if the constraint cannot be met: ``DoNotSchedule`` or ``ScheduleAnyway``.
        labels: Labels of the pods.
    """
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": otherwise,
        "labelSelector": {"matchLabels": {**labels}},
    }


def kept_apart(labels: Mapping[str, str]) -> dict[str, object]:
    """Return the affinity that prefers another node, then another zone, for each of the pods."""
    terms = [
        {
            "weight": 100 // place,
            "podAffinityTerm": {
                "topologyKey": key,
                "labelSelector": {"matchLabels": {**labels}},
            },
        }
        for place, key in enumerate((names.HOSTNAME_LABEL, names.ZONE_LABEL), start=1)
    ]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
