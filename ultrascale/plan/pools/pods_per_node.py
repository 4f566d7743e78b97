"""Pods that a node runs at most; `plan.network.vpc` lowers it where its subnets hold fewer."""

from ultrascale import catalog
from ultrascale.catalog import eks
from ultrascale.plan.model import NetworkInterface


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
