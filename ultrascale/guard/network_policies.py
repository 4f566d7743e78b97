"""Network policies: pods that they isolate no more, peers that they let in, ways that they close.

Pods that a policy selects are reached by the union of what all policies allow; others by anybody.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject, objects, sequence, text
from ultrascale.guard.judging import outside
from ultrascale.guard.objects import KubernetesObject
from ultrascale.guard.openings import told_change
from ultrascale.guard.templates import text_of

KIND = "NetworkPolicy"


def unisolated(
    old: Sequence[KubernetesObject], new: Sequence[KubernetesObject]
) -> Iterator[tuple[KubernetesObject, str]]:
    """Yield the policies of a namespace whose pods no policy selects any more.

    Args:
        old: The policies of a namespace before.
        new: Those after, with those that nothing applies any more and that stay.
    """
    isolating = [_selector(policy) for policy in new if _isolates(policy)]
    free = [
        policy
        for policy in old
        if _isolates(policy) and not any(_selects(other, policy) for other in isolating)
    ]
    # One for all pods of the namespace says it of the others.
    for policy in [each for each in free if not _selector(each)][:1] or free:
        yield policy, told_change("who reaches its pods", [*_told(policy)] or None, "anybody")


def widened(
    old: Sequence[KubernetesObject], new: Sequence[KubernetesObject]
) -> Iterator[tuple[KubernetesObject, str]]:
    """Yield the policies of a namespace by which more peers reach pods that were isolated.

    Args:
        old: The policies of a namespace before.
        new: Those after.
    """
    isolating = [_selector(policy) for policy in old if _isolates(policy)]
    for policy in new:
        if not any(_selects(other, policy) for other in isolating):
            continue
        same = [other for other in old if other.id == policy.id]
        known = [
            way
            for other in old
            if other in same or _selector(other) == _selector(policy)
            for way in _ways(other)
        ]
        gained = [
            way
            for way in _ways(policy)
            if (same or _is_open(policy, way)) and not any(_covers(each, way) for each in known)
        ]
        if gained:
            before = [told for other in same for told in _told(other)]
            yield policy, told_change("who reaches its pods", before or None, [*_told(policy)])


def _is_open(policy: KubernetesObject, way: "_Way") -> bool:
    """Return whether a new policy opens all pods to addresses, and not to a new program."""
    peer, _ = way
    return not _selector(policy) and (peer is None or "ipBlock" in peer)


def lets_in(policy: KubernetesObject) -> bool:
    """Return whether a policy lets anybody reach its pods."""
    return any(True for _ in _ways(policy))


def _isolates(policy: KubernetesObject) -> bool:
    types = sequence(policy.spec, "policyTypes")
    return not types or "Ingress" in types


def _selector(policy: KubernetesObject) -> Json:
    return policy.spec.get("podSelector") or {}


def _selects(selector: Json, policy: KubernetesObject) -> bool:
    """Return whether a selector has all pods of a policy: it is empty, or the same."""
    return not selector or selector == _selector(policy)


_Way = tuple[JsonObject | None, str]
"""A peer, which is None for anybody, and its ports as text, which are empty for all."""


def _ways(policy: KubernetesObject) -> Iterator[_Way]:
    for rule in objects(policy.spec, "ingress"):
        ports = [text_of(port) for port in objects(rule, "ports")] or [""]
        peers: Sequence[JsonObject | None] = [*objects(rule, "from")] or [None]
        yield from ((peer, port) for peer in peers for port in ports)


def _covers(way: _Way, wanted: _Way) -> bool:
    (peer, port), (other, other_port) = way, wanted
    if port not in ("", other_port):
        return False
    if peer is None or peer == other:
        return True
    blocks = [text(each, "ipBlock", "cidr") for each in (peer, other) if each is not None]
    return len(blocks) > 1 and all(blocks) and not outside(blocks[1:], blocks[:1])


def _told(policy: KubernetesObject) -> Iterator[str]:
    told: Mapping[str, None] = dict.fromkeys(
        "anybody" if peer is None else text(peer, "ipBlock", "cidr") or text_of(peer)
        for peer, _ in _ways(policy)
    )
    yield from told
