"""Sizes of stacks: the additions of the cluster file's lists to the stacks of their layers.

The CDK refuses the same stacks as CloudFormation, in words of its own and after a minute: these
rules name the list that is too long. A test holds the figures against templates.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

from ultrascale import config
from ultrascale.catalog import cloudformation
from ultrascale.core.engine import engine_of
from ultrascale.frozen import Frozen
from ultrascale.plan.rules import rule

Mistakes = Iterator[config.Mistake]
Listed = Literal[
    "file system",
    "bucket",
    "repository",
    "queue",
    "queue of Kueue",
    "administrator",
    "role with access",
    "priority class",
    "NodePool",
    "team",
    "pool",
]


class Size(Frozen):
    """Size of a stack, or of the largest addition of a list's item to it."""

    resources: int = 0  # Resources
    outputs: int = 0  # Outputs
    size_bytes: int = 0  # Bytes of its template

    @property
    def counts(self) -> tuple[int, int, int]:
        """Quantities that CloudFormation limits."""
        return self.resources, self.outputs, self.size_bytes


# The manifests of the platform are parts of one template, with all possible objects of a cluster.
PLATFORM: Final = Size(resources=60, outputs=10, size_bytes=400_000)
OF_ITEM: Mapping[Listed, Size] = MappingProxyType(
    {
        "file system": Size(resources=13, outputs=6, size_bytes=7_500),
        "bucket": Size(resources=3, outputs=3, size_bytes=2_500),
        "repository": Size(resources=1, outputs=1, size_bytes=1_000),
        "queue": Size(resources=1, size_bytes=700),
        # With a dozen flavors.
        "queue of Kueue": Size(resources=1, size_bytes=2_500),
        "administrator": Size(resources=1, size_bytes=1_000),
        # With three policies, and its groups, in a dozen namespaces.
        "role with access": Size(resources=1, size_bytes=4_000),
        "priority class": Size(size_bytes=600),
        # With the calendar of its block, and its own node class.
        "NodePool": Size(resources=6, size_bytes=6_500),
        "team": Size(resources=1, size_bytes=1_500),
        # Of the stack of alarms and dashboards.
        "pool": Size(resources=2, size_bytes=4_500),
    }
)
_OTHERS: Final = Size(resources=40, outputs=8, size_bytes=60_000)
# Other layers have about 30 stacks.
_MOST_GROUPS: Final = cloudformation.STACKS - 50


def most(*items: tuple[Listed, int], item: Listed, beside: Size = _OTHERS) -> int:
    """Return how many of ``item`` a stack has room for.

    Args:
        items: Other lists of the same stack, each with its length.
        item: The list.
        beside: Size of the stack without any.
    """
    room: list[int] = []
    limits = (
        cloudformation.RESOURCES_PER_STACK,
        cloudformation.OUTPUTS_PER_STACK,
        cloudformation.TEMPLATE_BYTES,
    )
    for number, limit in enumerate(limits):
        taken = beside.counts[number] + sum(
            OF_ITEM[other].counts[number] * count for other, count in items
        )
        if size := OF_ITEM[item].counts[number]:
            room.append(max(limit - taken, 0) // size)
    return min(room)


@rule
def storage_fits(storage: config.Storage) -> Mistakes:
    """Yield file systems and buckets that one stack has no room for."""
    systems, buckets = len(storage.lustre), len(storage.made_bucket_names)
    yield from too_many("buckets", buckets, most(item="bucket"), "buckets")
    if systems > (room := most(("bucket", buckets), item="file system")):
        beside = f" beside {buckets} buckets" if buckets else ""
        yield from too_many("lustre", systems, room, f"file systems{beside}")


@rule
def repositories_fit(images: config.Images) -> Mistakes:
    """Yield repositories that one stack has no room for."""
    room = most(item="repository")
    yield from too_many("repositories", len(images.repositories), room, "repositories")


@rule
def scheduling_fits(scheduling: config.Scheduling) -> Mistakes:
    """Yield queues and priority classes that their stacks have no room for."""
    classes = len(scheduling.priority_classes)
    room = most(item="priority class", beside=PLATFORM)
    yield from too_many("priority_classes", classes, room, "priority classes")
    if engine_of(scheduling).quotas:
        # Of the stack that holds the flavors of all pools as well.
        room = most(("priority class", classes), item="queue of Kueue")
    else:
        room = most(item="queue", beside=PLATFORM)
    yield from too_many("queues", len(scheduling.queues), room, "queues")


@rule
def administrators_fit(kubernetes: config.Kubernetes) -> Mistakes:
    """Yield administrators and other roles that one stack has no room for."""
    admins, roles = len(kubernetes.admins), len({access.role for access in kubernetes.access})
    yield from too_many("admins", admins, most(item="administrator"), "administrators")
    room = most(("administrator", admins), item="role with access")
    yield from too_many("access", roles, room, "roles")


@rule
def teams_fit(governance: config.Teams) -> Mistakes:
    """Yield teams that one stack has no room for."""
    yield from too_many("teams", len(governance.names), most(item="team"), "teams")


@rule
def pools_fit(pools: config.Readable[config.Pool]) -> Mistakes:
    """Yield pools with more shards than the stacks of their layer have room for."""
    node_pools = sum(_node_pools(pool) for pool in pools if pool.is_node_pool)
    room = most(item="NodePool")
    yield from too_many("pools", node_pools, room, "NodePools (shards and fallbacks count)")
    groups = sum(pool.shards for pool in pools if pool.is_node_group)
    yield from too_many("pools", groups, _MOST_GROUPS, "node groups (shards count)")


def _node_pools(pool: config.Pool) -> int:
    falls_back = isinstance(pool.purchase, config.Spot) and pool.purchase.fallback != "none"
    return pool.shards * (2 if falls_back else 1)


def too_many(key: str, count: int, room: int, what: str) -> Mistakes:
    """Refuse more than ``room`` items under ``key``."""
    if count > room:
        wrong = f"more {what} than the {room} that CloudFormation has room for"
        yield config.refuse(key, wrong, f"write at most {room}", got=str(count))
