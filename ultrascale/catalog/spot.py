"""Spot Instances: types for sale, and Spot placement scores.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-sps-works.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetSpotPlacementScores.html
    https://aws.amazon.com/ec2/spot/instance-advisor/ (`_NOT_SOLD`)
"""

from ultrascale.catalog import regions
from ultrascale.catalog.instance_types import lookup

# Families that EC2 sells only as Capacity Blocks and On-Demand.
_NOT_SOLD = frozenset({"p6e-gb200", "p6e-gb300", "trn2", "trn2u"})

TYPES_FOR_A_SCORE = 3
"""Fewest instance types for a meaningful placement score: with fewer it is always low."""

SCORED_ZONES = 10
"""Most zones in an answer, which holds the zones with the best scores."""

SCORED_REGIONS = 10
"""Most Regions in one request."""

PRODUCT = "Linux/UNIX"
"""Operating system of our nodes, as Spot prices name it."""


def is_sold(instance_type: str) -> bool:
    """Return whether EC2 sells a type as Spot, as far as is known.

    A type without an On-Demand price in any Region, such as a type sold only as Capacity Blocks, is
    not sold as Spot.

    Raises:
        CatalogError: The catalog has no such type.
    """
    family = lookup(instance_type).family
    return family not in _NOT_SOLD and not regions.listed_nowhere(instance_type)
