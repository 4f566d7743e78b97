"""AWS's network topology: its layers, and the nodes of their groups.

Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
"""

from ultrascale.catalog.instance_types import lookup

NETWORK_LAYERS = 3
"""Layers of the network that labels of a node name. Some types have a fourth."""

SMALLEST_GROUP_NODES = 16
NEXT_GROUP_NODES = 500
"""Nodes of a group of the lowest and of the next layer of the network, as simulated: 16 to 32, and
about 500. AWS publishes no sizes; `aws ec2 describe-instance-topology` shows those of a fleet.
"""


def network_layers(instance_type: str) -> int:
    """Return the number of network layers that the labels of a node name."""
    spec = lookup(instance_type)
    return spec.network_layers if spec.knows("network_layers") else NETWORK_LAYERS


def is_placed(instance_type: str) -> bool:
    """Return whether EC2 is known to tell the place of an instance of the type in its network.

    Of newer types it may do so before the catalog knows.
    """
    return lookup(instance_type).knows("network_layers")
