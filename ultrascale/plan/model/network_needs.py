"""Needs of a cluster in a network team's VPC."""

from typing import Literal

from ultrascale.frozen import Frozen

NetworkTopic = Literal[
    "vpc", "dns", "subnets", "routes", "endpoints", "security-groups", "sharing", "tags", "quotas"
]
NetworkNeedState = Literal["stated", "missing", "too-small", "ours", "to-check"]


class NetworkNeed(Frozen):
    """A part of the network that must exist before the first deployment."""

    topic: NetworkTopic  # Part of the network
    subject: str  # The needed thing, such as a subnet's id or a service
    need: str  # Its form: a size, a value, a rule
    # `stated` as existing by the file, `missing`, `too-small`, made by us (`ours`), or for its
    # keeper to look up (`to-check`).
    state: NetworkNeedState
    why: str  # Reason for it
    formula: str = ""  # Formula of its number; empty where it has none
    sources: tuple[str, ...] = ()  # Pages that state it


class NetworkNeeds(Frozen):
    """Needs of one cluster."""

    cluster: str  # Its name
    region: str  # Its Region
    account: str | None  # Its account; None where the file names none
    # Id of the VPC; None where we make it, and the needs are those in a VPC in its place.
    vpc: str | None
    owner: str | None  # Account that owns the VPC; None where it is the cluster's own
    egress: str  # Way out to the internet
    needs: tuple[NetworkNeed, ...]  # The needs, by topic
