"""Spot Instances: what Spot placement scores say.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-sps-works.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_GetSpotPlacementScores.html
"""

TYPES_FOR_A_SCORE = 3
"""Fewest instance types of which a score says anything: of fewer it is always low."""

SCORED_ZONES = 10
"""Zones that are scored, the best ones."""

SCORED_REGIONS = 10
"""Most Regions that one request names."""

PRODUCT = "Linux/UNIX"
"""Operating system whose Spot prices apply to our nodes."""
