"""Network interfaces of a node: ENA and EFA-only."""

from ultrascale import catalog, config
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
    """Return the reason why a pool has no EFA; None where it has."""
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


def node_addresses(spec: catalog.InstanceType) -> int:
    """Return the IPv4 addresses that a node with single addresses takes from its subnet.

    It takes the addresses of one interface for its pods, and one for each further network interface
    with EFA: on HyperPod 50 + 31 for p5.48xlarge.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites.html
    """
    return spec.ipv4_per_eni + max(len(spec.efa_cards) - 1, 0)
