"""AWS's network topology: its layers, and the number of nodes in their groups.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
"""

from ultrascale.catalog.instance_types import lookup

NETWORK_LAYERS = 3
"""Network layers that a node's labels name; some instance types have a fourth layer."""

SMALLEST_GROUP_NODES = 16
NEXT_GROUP_NODES = 500
"""Nodes of a group in the lowest network layer, and in the next, as simulated: 16 to 32, and about
500.

AWS publishes no sizes; `aws ec2 describe-instance-topology` shows those of a fleet.
"""


def network_layers(instance_type: str) -> int:
    """Return the number of network layers that a node's labels name."""
    spec = lookup(instance_type)
    return spec.network_layers if spec.knows("network_layers") else NETWORK_LAYERS


def is_placed(instance_type: str) -> bool:
    """Return whether EC2 is known to report an instance's place in the network, by its type.

    EC2 may report newer types before the catalog knows it.
    """
    return lookup(instance_type).knows("network_layers")
