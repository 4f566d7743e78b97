"""Objects that stay, and whose update takes from running pods and jobs what they have."""

import re
from collections.abc import Callable, Iterator, Mapping

from ultrascale.documents import Json, JsonObject, mapping, objects, sequence, text
from ultrascale.guard.drift import holds_drift_back
from ultrascale.guard.exposed_objects import ENFORCED, LEVELS
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.objects import NAMESPACE, NODE_POOL, KubernetesObject, Objects, updated
from ultrascale.guard.templates import quantity, shown, text_of

_OWN_LABELS = "ultrascale.dev/"
# Folders where the kubelet meets device plugins and volume drivers.
_PLUGINS = ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins")
_HIGHEST = re.compile(r"object\.spec\.priority <= (\d+)")
_LET_END = "let the jobs end that have it, and name it then"


def harmful_updates(applied: tuple[Objects, Objects]) -> Iterator[Change]:
    """Yield objects, of both sides, whose update takes something from running pods and jobs."""
    old, new = applied
    for before in old.by_id.values():
        after = new.by_id.get(before.id)
        judge = _JUDGES.get(before.kind)
        if judge is None or after is None or after.body == before.body:
            continue
        harm = judge(before, after)
        if harm is not None:
            yield updated(after).harmed(harm)
    yield from _plugins_leave(old, new)


def _plugins_leave(old: Objects, new: Objects) -> Iterator[Change]:
    """Yield device plugins and volume drivers that bear a taint of running nodes no more.

    Nodes of a NodePool that holds drift back keep the taints that they began with: there the next
    pod of the DaemonSet finds no place, while on managed groups EKS changes nodes and all.
    """
    kept = {
        text(taint, "key")
        for pool in old.of_kind(NODE_POOL)
        if (later := new.by_id.get(pool.id)) is not None and holds_drift_back(later)
        for taint in objects(pool.spec, "template", "spec", "taints")
    }
    for before in old.of_kind("DaemonSet"):
        after = new.by_id.get(before.id)
        if after is None or not is_plugin(before):
            continue
        was, becomes = (
            {text(each, "key") for each in objects(side.pod, "tolerations")}
            for side in (before, after)
        )
        # One without a key bears each taint.
        if "" not in becomes and (lost := (was - becomes) & kept):
            yield updated(after).harmed(
                Harm(
                    verdict="cuts running nodes off",
                    lost="devices or volumes of nodes that run with the taint "
                    f"{', '.join(sorted(lost))}: {before.name} bears it no more",
                    instead="keep the taint, and move what runs to a pool of another name; or let "
                    "its nodes end first, and name it then",
                )
            )


def is_plugin(daemon: KubernetesObject) -> bool:
    """Return whether a DaemonSet serves devices or volumes to the kubelet."""
    volumes = objects(daemon.pod, "volumes")
    return any(text(volume, "hostPath", "path").startswith(_PLUGINS) for volume in volumes)


def labels_lost(before: JsonObject, after: JsonObject) -> Harm | None:
    """Return the loss of jobs that select nodes by a label that a pool no longer has."""
    lost = [
        f"{key}: {shown(value)} -> {shown(after.get(key))}"
        for key, value in before.items()
        # Ours follow from the pool, and jobs that are sent anew select by what it is then.
        if after.get(key) != value and not key.startswith(_OWN_LABELS)
    ]
    if not lost:
        return None
    return Harm(
        verdict="outage",
        lost=f"labels of nodes: {', '.join(lost)}; jobs that select nodes by them find none once "
        "they start or restart",
        instead="keep the label until no job selects by it, and name it then",
    )


def _volumes(before: KubernetesObject, after: KubernetesObject) -> Harm | None:
    """Judge a StatefulSet whose programs read their data from another place than before."""
    claims = {
        text(each, "metadata", "name") for each in objects(before.spec, "volumeClaimTemplates")
    }
    was, becomes = (_places_of_data(side, claims) for side in (before, after))
    scaled = text_of(before.spec.get("replicas")), text_of(after.spec.get("replicas"))
    policy = text(after.spec, "persistentVolumeClaimRetentionPolicy", "whenScaled")
    lost = [f"{shown(sorted(was))} -> {shown(sorted(becomes))}"] if was - becomes else []
    if claims and policy == "Delete" and int(scaled[1] or 1) < int(scaled[0] or 1):
        lost.append(f"volumes of replicas: {scaled[0] or 1} -> {scaled[1] or 1}")
    if not lost:
        return None
    return Harm(
        verdict="loses data",
        lost=f"data of {before.whole_name}, which begins anew without it: {', '.join(lost)}; jobs "
        "that meet there lose their rendezvous",
        instead="let the jobs end that use it, and name it then",
    )


def _places_of_data(stateful: KubernetesObject, claims: set[str]) -> set[str]:
    """Return where the claims are mounted, and each argument that names a path below."""
    places: set[str] = set()
    for container in objects(stateful.pod, "containers"):
        mounts = {
            text(mount, "mountPath")
            for mount in objects(container, "volumeMounts")
            if text(mount, "name") in claims
        }
        words = [*sequence(container, "command"), *sequence(container, "args")]
        places |= mounts
        places |= {str(word) for word in words if any(path in str(word) for path in mounts)}
    return places


def _cluster_queue(before: KubernetesObject, after: KubernetesObject) -> Harm | None:
    """Judge a queue of Kueue by the quota that is its own, and by who may preempt its jobs.

    Source: https://kueue.sigs.k8s.io/docs/concepts/preemption/
    """
    was, becomes = _nominal(before), _nominal(after)
    less = [
        f"{resource} of {flavor}: {shown(amount)} -> {shown(becomes.get((flavor, resource)))}"
        for (flavor, resource), amount in was.items()
        if _is_lower(becomes.get((flavor, resource)), amount)
    ]
    weights = [text_of(mapping(side.spec, "fairSharing").get("weight")) for side in (before, after)]
    if weights[0] and _is_lower(weights[1] or "1", weights[0]):
        less.append(f"weight: {weights[0]} -> {weights[1] or '1'}")
    policies = (mapping(side.spec, "preemption") for side in (before, after))
    had, has = ({key: _policy(value) for key, value in each.items()} for each in policies)
    less += [
        f"preemption, {key}: {value} -> {has[key]}"
        for key, value in had.items()
        if value == "Never" != has.get(key, "Never")
    ]
    return _quota(less)


def _policy(value: Json) -> str:
    return text(value, "policy") if isinstance(value, Mapping) else text_of(value)


def _nominal(queue: KubernetesObject) -> Mapping[tuple[str, str], Json]:
    """Return the quotas of a queue by flavor and resource."""
    return {
        (text(flavor, "name"), text(resource, "name")): resource.get("nominalQuota")
        for group in objects(queue.spec, "resourceGroups")
        for flavor in objects(group, "flavors")
        for resource in objects(flavor, "resources")
    }


def _weighted_queue(before: KubernetesObject, after: KubernetesObject) -> Harm | None:
    """Judge a queue of Volcano by its share, and by whether its jobs may be reclaimed.

    Source: https://volcano.sh/en/docs/queue/
    """
    old, new = before.spec, after.spec
    less: list[str] = []
    if old.get("reclaimable") is False and new.get("reclaimable") is not False:
        less.append("reclaimable: false -> true")
    amounts: dict[str, tuple[Json, Json]] = {"weight": (old.get("weight"), new.get("weight", 1))}
    for path in (("deserved",), ("guarantee", "resource")):
        for name, amount in mapping(old, *path).items():
            amounts[f"{path[0]}, {name}"] = amount, mapping(new, *path).get(name)
    less += [
        f"{name}: {shown(was)} -> {shown(becomes)}"
        for name, (was, becomes) in amounts.items()
        if was is not None and _is_lower(becomes, was)
    ]
    return _quota(less)


def _is_lower(becomes: Json, was: Json) -> bool:
    """Return whether a quantity is lower than before, or is gone."""
    before, after = quantity(was), quantity(becomes)
    return before is not None and before > 0 and (after is None or after < before)


def _quota(less: list[str]) -> Harm | None:
    if not less:
        return None
    return Harm(
        verdict="outage",
        lost=f"the share of jobs that run in the queue: {', '.join(less)}; others may preempt what "
        "exceeds it",
        instead=f"{_LET_END}; see what the queue has admitted by `ultrascale status FILE`",
    )


def _pod_security(before: KubernetesObject, after: KubernetesObject) -> Harm | None:
    """Judge a namespace that takes fewer pods than before."""
    was, becomes = (text(side.body, "metadata", "labels", ENFORCED) for side in (before, after))
    if becomes not in LEVELS or LEVELS.index(becomes) <= LEVELS.index(was or LEVELS[0]):
        return None
    return Harm(
        verdict="outage",
        lost=f"pods that level {becomes} refuses: {was or 'no level'} -> {becomes}; those that run "
        "stay, and are refused once they restart",
        instead="let `kubectl label --dry-run=server --overwrite namespace "
        f"{before.name} {ENFORCED}={becomes}` name them, change them, and name it then",
    )


def _priorities(before: KubernetesObject, after: KubernetesObject) -> Harm | None:
    """Judge a lower limit of the priorities that pods may have."""
    was, becomes = (_HIGHEST.search(text_of(side.spec)) for side in (before, after))
    if not was or not becomes or int(becomes[1]) >= int(was[1]):
        return None
    return Harm(
        verdict="outage",
        lost=f"pods of a priority above {becomes[1]}, of which {was[1]} was the highest: those "
        "that run stay, and are refused once they restart",
        instead=_LET_END,
    )


_JUDGES: Mapping[str, Callable[[KubernetesObject, KubernetesObject], Harm | None]] = {
    "ClusterQueue": _cluster_queue,
    NAMESPACE: _pod_security,
    NODE_POOL: lambda before, after: labels_lost(before.labels, after.labels),
    "Queue": _weighted_queue,
    "StatefulSet": _volumes,
    "ValidatingAdmissionPolicy": _priorities,
}
