"""Network policies: pods that lose their isolation, and peers that a change lets in or cuts off.

All policies that select a pod add up to the peers that reach it; other pods are open to anybody.

Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

import re
from collections.abc import Iterator, Sequence

from ultrascale.documents import Json, JsonObject, mapping, objects, sequence, text
from ultrascale.guard.judging import outside
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.objects import NAMESPACE, KubernetesObject, Objects, updated
from ultrascale.guard.openings import opening_text
from ultrascale.guard.templates import shown, text_of

KIND = "NetworkPolicy"
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_PORTS = re.compile(r"(\w+) (\d+)(?: to (\d+))?")


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


def narrowed(applied: tuple[Objects, Objects]) -> Iterator[Change]:
    """Yield policies after whose update peers no longer reach pods that run.

    Args:
        applied: The objects in the cluster, of both sides.
    """
    old, new = applied
    was_there, stays = ({space.name for space in side.of_kind(NAMESPACE)} for side in applied)
    for after in new.of_kind(KIND):
        before = old.by_id.get(after.id)
        earlier, later = (
            [policy for policy in side.of_kind(KIND) if policy.namespace == after.namespace]
            for side in applied
        )
        lost: Sequence[_Way] = ()
        if before is not None and _are_isolated(before, later):
            lost = _lost_ways(before, later)
        if after.namespace in was_there and _closes_namespace(after, earlier):
            lost = [way for way in [(None, "")] if not _is_kept(way, [*_ways_to(after, later)])]
        if cut := [way for way in lost if _namespace_of(way) not in was_there - stays]:
            peers = ", ".join(dict.fromkeys(map(_in_words, cut)))
            yield updated(after).harmed(
                Harm(
                    verdict="cuts running pods off",
                    lost=f"the way of {peers} to pods of {after.namespace} that {after.name} opens",
                    instead="let them in until none of them comes, and name it then",
                )
            )


def _are_isolated(policy: KubernetesObject, several: Sequence[KubernetesObject]) -> bool:
    """Return whether one of ``several`` isolates the pods of ``policy``."""
    return any(_isolates(other) and _holds(other, policy) for other in several)


def _lost_ways(before: KubernetesObject, later: Sequence[KubernetesObject]) -> Sequence["_Way"]:
    """Return the ways of a policy that none of ``later`` keeps."""
    ways = [*_ways_to(before, later)]
    return [way for way in _peers_and_ports(before) if not _is_kept(way, ways, before)]


def _closes_namespace(after: KubernetesObject, earlier: Sequence[KubernetesObject]) -> bool:
    """Return whether a policy isolates all pods of a namespace that was open."""
    return not _are_isolated(after, earlier) and not _selector(after) and _isolates(after)


def _ways_to(policy: KubernetesObject, several: Sequence[KubernetesObject]) -> Iterator["_Way"]:
    """Yield all ways to the pods of ``policy``."""
    return (way for each in several if _holds(each, policy) for way in _peers_and_ports(each))


def _holds(policy: KubernetesObject, other: KubernetesObject) -> bool:
    """Return whether a policy selects all pods of another, but for pods that name an exception."""
    selector = mapping(_selector(policy))
    wanted = [
        each
        for each in objects(selector, "matchExpressions")
        if each.get("operator") not in ("NotIn", "DoesNotExist")
    ]
    return _selects({**selector, "matchExpressions": wanted}, other)


def _is_kept(way: "_Way", ways: Sequence["_Way"], before: KubernetesObject | None = None) -> bool:
    """Return whether ``ways`` let the same peer in, at these ports or at others instead."""
    peer, ports = way
    if any(_covers(other, way) for other in ways):
        return True
    blocks = [
        text(each, "ipBlock", "cidr")
        for each, at in ways
        if each and _include_ports(at, ports) and not sequence(each, "ipBlock", "except")
    ]
    block = text(peer or {}, "ipBlock", "cidr")
    if block and not outside([block], blocks):
        return True
    known = [at for _, at in _peers_and_ports(before)] if before is not None else [""]
    return any(
        each == peer and not any(_include_ports(port, at) for port in known) for each, at in ways
    )


def _namespace_of(way: "_Way") -> str:
    peer, _ = way
    return text(peer or {}, "namespaceSelector", "matchLabels", _NAMESPACE_LABEL)


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
    """Return whether ``ports`` include ``wanted``: the same, a range, all of a protocol, or all."""
    if ports in ("", wanted, wanted.partition(" ")[0]):
        return True
    (protocol, first, last), (other, lowest, highest) = (
        match.groups() if (match := _PORTS.fullmatch(each)) else ("", "0", "")
        for each in (ports, wanted)
    )
    inside = int(first) <= int(lowest) <= int(highest or lowest) <= int(last or first)
    return protocol == other != "" and inside


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
    yield from dict.fromkeys(map(_in_words, _peers_and_ports(policy)))


def _in_words(way: _Way) -> str:
    peer, ports = way
    return f"{_peer(peer)}{f' at {ports}' if ports else ''}"


def _peer(peer: JsonObject | None) -> str:
    if peer is None:
        return "anybody"
    block = text(peer, "ipBlock", "cidr")
    left_out = sequence(peer, "ipBlock", "except")
    return f"{block}{f' but {shown([*left_out])}' if left_out else ''}" or text_of(peer)
