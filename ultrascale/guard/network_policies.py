"""Network policies: pods that lose their isolation, and peers that a change lets in.

All policies that select a pod add up to the peers that reach it; other pods are open to anybody.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.documents import Json, JsonObject, mapping, objects, sequence, text
from ultrascale.guard.judging import outside
from ultrascale.guard.objects import KubernetesObject
from ultrascale.guard.openings import opening_text
from ultrascale.guard.templates import shown, text_of

KIND = "NetworkPolicy"


def unisolated(
    old: Sequence[KubernetesObject], new: Sequence[KubernetesObject]
) -> Iterator[tuple[KubernetesObject, str]]:
    """Yield the policies of a namespace whose pods no policy selects after the change.

    Args:
        old: The policies of a namespace before.
        new: The policies after, with policies that stay although nothing applies them any more.
    """
    isolating = [_selector(policy) for policy in new if _isolates(policy)]
    free = [
        policy
        for policy in old
        if _isolates(policy) and not any(_selects(other, policy) for other in isolating)
    ]
    # A policy for all pods of the namespace speaks for the others.
    for policy in [each for each in free if not _selector(each)][:1] or free:
        yield (
            policy,
            opening_text("who reaches its pods", [*_peers_with_ports(policy)] or None, "anybody"),
        )


def widened(
    old: Sequence[KubernetesObject], new: Sequence[KubernetesObject], pods: Sequence[JsonObject]
) -> Iterator[tuple[KubernetesObject, str]]:
    """Yield the policies of a namespace that let more peers reach pods that were isolated.

    Args:
        old: The policies of a namespace before.
        new: The policies after.
        pods: Labels of the pods that the charts' workloads had there before.
    """
    isolating = [_selector(policy) for policy in old if _isolates(policy)]
    for policy in new:
        if not any(_selects(selector, policy) for selector in isolating):
            continue
        same = [other for other in old if other.id == policy.id]
        # A pod that a selector newly matches is reported only where addresses reach it: a program
        # that leaves the file so loses its exception from its namespace's policy.
        of_same_pods = any(_selects(_selector(other), policy) for other in same)
        by_addresses = bool(same) or _were_there(policy, isolating, pods)
        if any(
            of_same_pods or (by_addresses and _is_of_addresses(way))
            for way in _gained_ways(policy, old, new)
        ):
            yield policy, _widening_text(policy, same, of_same_pods=of_same_pods)


def _gained_ways(
    policy: KubernetesObject, old: Sequence[KubernetesObject], new: Sequence[KubernetesObject]
) -> Iterator["_Way"]:
    """Yield peers with ports that ``policy`` lets in and that no policy of ``old`` let in."""
    known = [
        way
        for other in old
        if _selects(_selector(other), policy)
        for way in _peers_and_ports(other)
    ]
    # A way that moves to another port closes its former port.
    ports = [
        port
        for other in new
        if _selects(_selector(policy), other) or _selects(_selector(other), policy)
        for _, port in _peers_and_ports(other)
    ]
    closed = [
        (peer, "")
        for peer, port in known
        if not any(_include_ports(other, port) for other in ports)
    ]
    for way in _peers_and_ports(policy):
        if not any(_covers(other, way) for other in (*known, *closed)):
            yield way


def _widening_text(
    policy: KubernetesObject, same: Sequence[KubernetesObject], *, of_same_pods: bool
) -> str:
    """Return in words how more peers reach a policy's pods."""
    if same and not of_same_pods:
        reached = f"pods that {', '.join(_peers_with_ports(policy))} may reach"
        after = _selector(policy) or "all of the namespace"
        return opening_text(reached, _selector(same[0]), after)
    before = [peer for other in same for peer in _peers_with_ports(other)]
    return opening_text("who reaches its pods", before or None, [*_peers_with_ports(policy)])


def _is_of_addresses(way: "_Way") -> bool:
    peer, _ = way
    return peer is None or "ipBlock" in peer


def _were_there(
    policy: KubernetesObject, isolating: Sequence[Json], pods: Sequence[JsonObject]
) -> bool:
    """Return whether a new policy selects pods that existed before."""
    labels = mapping(_selector(policy), "matchLabels").items()
    return (
        not _selector(policy)
        or any(each and _selects(each, policy) for each in isolating)
        or any(labels <= pod.items() for pod in pods)
    )


def lets_in(policy: KubernetesObject) -> bool:
    """Return whether a policy lets anybody reach its pods."""
    return any(True for _ in _peers_and_ports(policy))


def _isolates(policy: KubernetesObject) -> bool:
    types = sequence(policy.spec, "policyTypes")
    return not types or "Ingress" in types


def _selector(policy: KubernetesObject) -> Json:
    return policy.spec.get("podSelector") or {}


def _selects(selector: Json, policy: KubernetesObject) -> bool:
    """Return whether a selector matches all pods of a policy: it needs the same labels or fewer."""
    other = _selector(policy)
    labels, others = (mapping(each, "matchLabels").items() for each in (selector, other))
    wanted, there = (sequence(each, "matchExpressions") for each in (selector, other))
    return labels <= others and all(each in there for each in wanted)


_Way = tuple[JsonObject | None, str]
"""A peer (None: anybody) and its ports as text (empty: all)."""


def _peers_and_ports(policy: KubernetesObject) -> Iterator[_Way]:
    for rule in objects(policy.spec, "ingress"):
        ports = [*map(_port, objects(rule, "ports"))] or [""]
        peers: Sequence[JsonObject | None] = [*objects(rule, "from")] or [None]
        yield from ((peer, port) for peer in peers for port in ports)


def _port(stated: JsonObject) -> str:
    last = f" to {stated['endPort']}" if "endPort" in stated else ""
    return f"{stated.get('protocol', 'TCP')} {stated.get('port', '')}{last}".strip()


def _include_ports(ports: str, wanted: str) -> bool:
    """Return whether ``ports`` include ``wanted``: the same port, all of its protocol, or all."""
    return ports in ("", wanted, wanted.partition(" ")[0])


def _covers(way: _Way, wanted: _Way) -> bool:
    (peer, ports), (other, other_ports) = way, wanted
    if not _include_ports(ports, other_ports):
        return False
    if peer is None or peer == other:
        return True
    if other is None or not ("ipBlock" in peer and "ipBlock" in other):
        return False
    block, inside = text(peer, "ipBlock", "cidr"), text(other, "ipBlock", "cidr")
    left_out = [text_of(each) for each in sequence(other, "ipBlock", "except")]
    return not outside([inside], [block]) and all(
        not outside([each], left_out) or _are_apart(each, inside)
        for each in map(text_of, sequence(peer, "ipBlock", "except"))
    )


def _are_apart(block: str, other: str) -> bool:
    return bool(outside([block], [other]) and outside([other], [block]))


def _peers_with_ports(policy: KubernetesObject) -> Iterator[str]:
    told: Mapping[str, None] = dict.fromkeys(
        f"{_peer(peer)}{f' at {ports}' if ports else ''}"
        for peer, ports in _peers_and_ports(policy)
    )
    yield from told


def _peer(peer: JsonObject | None) -> str:
    if peer is None:
        return "anybody"
    block = text(peer, "ipBlock", "cidr")
    left_out = sequence(peer, "ipBlock", "except")
    return f"{block}{f' but {shown([*left_out])}' if left_out else ''}" or text_of(peer)
