"""Needs of a cluster in a VPC that somebody else keeps."""

from dataclasses import dataclass
from typing import Literal

NetworkTopic = Literal[
    "vpc", "dns", "subnets", "routes", "endpoints", "security-groups", "sharing", "tags", "quotas"
]
NetworkNeedState = Literal["stated", "missing", "too-small", "ours", "to-check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkNeed:
    """Something that has to be there before the first deployment.

    Attributes:
        topic: Part of the network.
        subject: Thing that is needed, such as a subnet's id or a service.
        need: Its form: a size, a value, a rule.
        state: `stated` as there by the file, `missing`, `too-small`, made by us (`ours`), or for
            its keeper to look up (`to-check`).
        why: Reason for it.
        formula: The sum of its number, in words and numbers; empty where it has none.
        sources: Pages that state it.
    """

    topic: NetworkTopic
    subject: str
    need: str
    state: NetworkNeedState
    why: str
    formula: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkNeeds:
    """Needs of one cluster.

    Attributes:
        cluster: Its name.
        region: Its Region.
        account: Its account; None where the file names none.
        vpc: Id of the VPC; None where ours is made, and the needs are those of one in its place.
        owner: Account that owns the VPC; None where it is the cluster's own.
        egress: Way out to the internet.
        needs: The needs, by topic.
    """

    cluster: str
    region: str
    account: str | None
    vpc: str | None
    owner: str | None
    egress: str
    needs: tuple[NetworkNeed, ...]
