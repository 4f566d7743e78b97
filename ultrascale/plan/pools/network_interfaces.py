"""Network interfaces of a node: ENA, EFA-only, and the pods that they have addresses for."""

from ultrascale import catalog, config
from ultrascale.catalog import eks
from ultrascale.plan.model import NetworkInterface


def network_interfaces(spec: catalog.InstanceType) -> tuple[NetworkInterface, ...]:
    """Lay out one ENA interface and one EFA-only interface on each card that supports EFA.

    An EFA-only interface cannot be primary, so on card 0 it takes device 1; everywhere else it
    takes device 0. EFA-only interfaces hold no IP address.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    """
    primary = NetworkInterface(card=0, device=0, kind="interface")
    fabric = (
        NetworkInterface(card=card, device=1 if card == 0 else 0, kind="efa-only")
        for card in spec.efa_cards
    )
    return (primary, *fabric)


def why_without_efa(
    pool: config.Pool, specs: tuple[catalog.InstanceType, ...], zones: tuple[str, ...]
) -> str | None:
    """Return the reason for which a pool has no EFA; None where it has."""
    if pool.efa == "all":
        return None
    if pool.efa == "none":
        return "efa: none"
    if specs[0].accelerator is None:
        return "no accelerator"
    if not all(spec.efa_cards for spec in specs):
        return "not on these types"
    if len(specs) > 1:
        return "several types"
    if len(zones) > 1:
        return "several zones"
    return None


def max_pods(spec: catalog.InstanceType, interfaces: tuple[NetworkInterface, ...]) -> int:
    """Return the pods for which a node has addresses, with prefix delegation.

    Pods take addresses from the interfaces that card 0 has left: an EFA-only interface there uses
    up one of its slots, which nodeadm does not subtract. Each slot but an interface's own address
    holds a /28. On managed node groups EKS enforces its own two advised numbers, whatever the
    node's own configuration says.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
    """
    efa_on_card_0 = sum(1 for nic in interfaces if nic.card == 0 and nic.kind == "efa-only")
    slots = (spec.enis_card0 - efa_on_card_0) * (spec.ipv4_per_eni - 1)
    addresses = slots * eks.ADDRESSES_PER_PREFIX if spec.prefix_delegation else slots
    return min(addresses + eks.HOST_NETWORK_PODS, eks.advised_max_pods(spec.vcpus))
