"""Check that subnets which exist hold a cluster's nodes, by prefixes or by single addresses.

Nothing can be reserved there, so prefixes are counted on only where single addresses, wherever EC2
takes them from, leave enough free blocks of 16. Otherwise all pods of the cluster have single
addresses.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import catalog, config
from ultrascale.catalog import eks, endpoints, vpc
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PoolPlan, SubnetPlan
from ultrascale.plan.network.assignment import Assigned, Draw, Nodes, Room, assign, parts
from ultrascale.plan.network.subnets import WARM_PREFIXES
from ultrascale.plan.pools.pool import node_addresses, why_without_efa
from ultrascale.plan.rules import rule

# Lambda has an interface for each pair of a subnet and a security group. All functions have that of
# the cluster.
# Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
LAMBDA_ADDRESSES = 1
# A build of HyperPod's chart.
BUILD_ADDRESSES = 1
# An interface for each metadata server and each file server. AWS does not say how much storage a
# server has: these are the most servers, and with a metadata server each 24 TiB, as for the IOPS
# that follow from the storage.
# Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html
_GIB_OF_A_FILE_SERVER = 1_200
_GIB_OF_A_METADATA_SERVER = 24_000

Standing = Mapping[str, Mapping[str, int]]
"""Single addresses beside nodes, by subnet and purpose."""

_FEWER = "ask for fewer nodes, or spread them over more zones"
_WARM = 1
_SURGE = 2


class AddressMode(Frozen):
    """Way in which the nodes of a cluster take addresses for their pods."""

    prefixes: int  # /28 prefixes that a node takes at least; 0 for single addresses
    # Pods with an address of their own that a node runs at most, outside system pools; None: as
    # many as nodes without accelerators have room for, and `PODS_OF_TWO` on others.
    pods: int | None

    @property
    def single(self) -> bool:
        """Whether pods have single addresses."""
        return not self.prefixes


# As many pods as a node has of addresses in one prefix, or in two, less the one that the VPC CNI
# holds free.
# Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/eni-and-ip-target.md
PODS_OF_ONE = eks.ADDRESSES_PER_PREFIX - _WARM
PODS_OF_TWO = 2 * eks.ADDRESSES_PER_PREFIX - _WARM

MODES = (
    AddressMode(prefixes=WARM_PREFIXES, pods=None),
    AddressMode(prefixes=WARM_PREFIXES, pods=PODS_OF_TWO),
    AddressMode(prefixes=1, pods=PODS_OF_ONE),
    AddressMode(prefixes=0, pods=PODS_OF_TWO),
    AddressMode(prefixes=0, pods=PODS_OF_ONE),
)
"""Ways to take addresses, the one that asks most of the subnets first."""


class ExistingAddresses(Frozen):
    """Addresses in subnets that exist."""

    mode: AddressMode  # How nodes take them
    assigned: Assigned  # Ids of the subnets of each shard of a pool, by its name
    standing: Standing  # Single addresses beside nodes


def surge(pool: config.Pool | PoolPlan) -> int:
    """Return the nodes that an update adds in each zone before it ends as many.

    EKS launches up to two in each zone of a group, unless the group ends a node first: one with
    accelerators or reserved capacity has no place for more. Karpenter's stay within their limit.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
    """
    accelerated = any(spec.accelerator for spec in pool.specs)
    ends_first = accelerated or pool.role == "reserved"
    return _SURGE if pool.is_managed and not ends_first else 0


def node_draw(pool: config.Pool | PoolPlan, mode: AddressMode) -> Draw:
    """Return the addresses that a node of ``pool`` takes at most, the most among its types.

    Those of its pods, one that the VPC CNI holds free for the next, and one of each network
    interface. EFA-only interfaces take none.
    """
    specs = pool.specs
    if not all(spec.knows("ipv4_per_eni") and spec.knows("enis_card0") for spec in specs):
        return Draw(addresses=1, prefixes=mode.prefixes)  # a mistake of its own
    if pool.facts.has_single_addresses:
        # Its pages do not say whether instances take prefixes as well, as the VPC CNI is configured
        # to.
        known = [spec for spec in specs if spec.knows("efa_cards")]
        singles = max(map(node_addresses, known), default=1)
        return Draw(addresses=singles, prefixes=mode.prefixes)
    draws = [_draw(spec, pods_of(pool, spec, mode), mode) for spec in specs]
    return Draw(
        addresses=max(draw.addresses for draw in draws),
        prefixes=max(draw.prefixes for draw in draws),
    )


def _draw(spec: catalog.InstanceType, pods: int, mode: AddressMode) -> Draw:
    slots = spec.ipv4_per_eni - 1
    if mode.single:
        taken = min(max(pods + _WARM, mode.pods or 0), _slots(spec))
        return Draw(addresses=taken + -(-taken // slots))
    prefixes = max(-(-(pods + _WARM) // eks.ADDRESSES_PER_PREFIX), mode.prefixes)
    return Draw(addresses=-(-prefixes // slots), prefixes=prefixes)


def is_limited(pool: config.Pool | PoolPlan) -> bool:
    """Return whether we say how many pods a node runs, or how many addresses it has.

    EKS Auto Mode says it itself, but where the interfaces of a node are listed: its node then never
    gets another address.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html#static-network-interfaces
    """
    if not pool.is_auto_mode:
        return True
    if isinstance(pool, PoolPlan):
        return bool(pool.network_interfaces)
    specs = pool.specs
    return why_without_efa(pool, specs, pool.zones) is None


def pods_of(
    pool: config.Pool | PoolPlan,
    spec: catalog.InstanceType,
    mode: AddressMode,
    *,
    efa_on_card_0: int = 0,
) -> int:
    """Return the pods with an address of their own that a node runs at most.

    Args:
        pool: The pool.
        spec: Type of the node.
        mode: How nodes take addresses.
        efa_on_card_0: EFA-only interfaces of its first card, which has as many fewer for pods.
    """
    slots = _slots(spec, efa_on_card_0)
    room = slots if mode.single else slots * eks.ADDRESSES_PER_PREFIX
    most = min(room, eks.advised_max_pods(spec.vcpus) - eks.HOST_NETWORK_PODS)
    if not is_limited(pool) or (mode.pods is None and spec.accelerator is None):
        return most
    if pool.role == "system" or mode.pods is None:
        return min(most, PODS_OF_TWO)
    return min(most, mode.pods)


def _slots(spec: catalog.InstanceType, efa_on_card_0: int = 0) -> int:
    """Return the addresses, or prefixes, for pods on all interfaces of card 0."""
    return (spec.enis_card0 - efa_on_card_0) * (spec.ipv4_per_eni - 1)


class AddressesOfSubnets:
    """Existing subnets, beside a cluster's demand on them.

    Args:
        network: Their section of the file, with a VPC that exists.
        pools: The pools, in file order.
        storage: File systems.
        sections: Sections of the file, some of which take addresses of each subnet of nodes.
    """

    def __init__(
        self,
        network: config.Network,
        pools: Iterable[config.Pool],
        *,
        storage: config.Storage,
        sections: Iterable[config.Section],
    ) -> None:
        self._network = network
        self._pools = [
            pool.model_copy(update={"zones": config.zones_of(pool, network)}) for pool in pools
        ]
        self._standing = standing_addresses(network, self._pools, storage, sections)
        self._rooms = {subnet.id: room_of(subnet) for subnet in network.subnets}

    @property
    def standing(self) -> Mapping[str, Draw]:
        """Single addresses beside nodes, by subnet."""
        return {id: Draw(addresses=sum(uses.values())) for id, uses in self._standing.items()}

    def plan(self) -> ExistingAddresses | None:
        """Return how the nodes take addresses, and from where; None where they find too few.

        A pool of several zones counts evenly in each. Where the subnets of every zone hold all of
        its nodes, they are chosen so.
        """
        for mode in MODES:
            if (even := self._assigned(mode, whole=False)) is not None:
                assigned = self._assigned(mode, whole=True) or even
                return ExistingAddresses(mode=mode, assigned=assigned, standing=self._standing)
        return None

    def mistakes(self) -> Iterator[config.Mistake]:
        """Yield the subnets and zones that are too small, with sufficient sizes."""
        if self.plan() is not None:
            return
        small: set[str] = set()
        for number, subnet in enumerate(self._network.subnets):
            draw = self.standing[subnet.id]
            if not self._rooms[subnet.id].holds(draw):
                small.add(subnet.zone)
                free = self._rooms[subnet.id].addresses
                beside = self._standing[subnet.id].items()
                words = " + ".join(f"{count} for {purpose}" for purpose, count in beside)
                wrong = f"too small: {free} of {draw.addresses} addresses free, {words}"
                todo = "use a larger subnet, or remove this use"
                yield config.refuse(f"subnets.{number}", wrong, todo, got="")
        mode = MODES[-1]
        for zone in _zones(self._network):
            if zone in small:
                continue
            for rooms, nodes in parts(self._rooms_of(zone), [*self._nodes(zone, mode)]):
                if assign(rooms, nodes, self.standing) is None:
                    wrong = f"too small: {self._words(zone, rooms, nodes)}"
                    yield config.refuse("subnets", wrong, self._larger(rooms, nodes), got="")

    def _assigned(self, mode: AddressMode, *, whole: bool) -> Assigned | None:
        assigned: dict[str, tuple[str, ...]] = {}
        for zone in _zones(self._network):
            found = self._in_zone(zone, mode, whole=whole)
            if found is None:
                return None
            for name, ids in found.items():
                assigned[name] = (*assigned.get(name, ()), *ids)
        return assigned

    def _in_zone(self, zone: str, mode: AddressMode, *, whole: bool) -> Assigned | None:
        """Return the subnets of each shard in ``zone``.

        Args:
            zone: Zone name or zone id.
            mode: How nodes take addresses.
            whole: Whether all nodes of a pool of several zones come here.
        """
        nodes = [*self._nodes(zone, mode, whole=whole)]
        return assign(self._rooms_of(zone), nodes, self.standing)

    def _rooms_of(self, zone: str) -> list[Room]:
        return [self._rooms[subnet.id] for subnet in self._network.subnets if subnet.zone == zone]

    def _nodes(self, zone: str, mode: AddressMode, *, whole: bool = False) -> Iterator[Nodes]:
        for pool in self._pools:
            zones = config.zones_of(pool, self._network)
            if zone not in zones:
                continue
            subnets = self._subnets(pool, zone)
            if not subnets:
                continue  # a mistake of its own
            most = pool.nodes.highest
            for name in shard_names(pool):
                yield Nodes(
                    name=name,
                    subnets=subnets,
                    count=most if whole else -(-most // len(zones)),
                    surge=surge(pool),
                    each=node_draw(pool, mode),
                    spreads=pool.is_node_pool,
                )

    def _subnets(self, pool: config.Pool, zone: str) -> tuple[str, ...]:
        use = self._use(pool)
        return tuple(
            subnet.id
            for subnet in self._network.subnets
            if subnet.zone == zone and use in subnet.use
        )

    def _use(self, pool: config.Pool) -> config.SubnetUse:
        accelerated = any(spec.accelerator for spec in pool.specs)
        uses = {use for subnet in self._network.subnets for use in subnet.use}
        return "accelerated" if accelerated and "accelerated" in uses else "nodes"

    def _words(self, zone: str, rooms: Sequence[Room], nodes: Sequence[Nodes]) -> str:
        """Return the demand of nodes in a zone, and the room of their subnets."""
        beside = sum(self.standing[room.id].addresses for room in rooms)
        terms = [node.words for node in nodes]
        needed = " + ".join((*terms, f"{beside} beside nodes"))
        total = beside + sum(node.all.total for node in nodes)
        has = " + ".join(f"{room.addresses:,} in {room.id}" for room in rooms)
        free = sum(room.addresses for room in rooms)
        fixed = [node.name for node in nodes if not node.spreads and len(node.subnets) > 1]
        single = f", where all nodes of {', '.join(fixed)} lie in one" if fixed else ""
        return (
            f"zone {zone} needs {total:,} addresses ({needed}) and has {free:,} free "
            f"({has}){single}"
        )

    def _larger(self, rooms: Sequence[Room], nodes: Sequence[Nodes]) -> str:
        """Return the smallest subnet more that would do."""
        names = {node.name for node in nodes}
        uses = dict.fromkeys(
            self._use(pool) for pool in self._pools if names & {*shard_names(pool)}
        )
        for mask in range(vpc.SMALLEST_RANGE_MASK, vpc.LARGEST_RANGE_MASK - 1, -1):
            more = Room(id="", addresses=2 ** (32 - mask) - 5, prefixes=0)
            wider = [replace(node, subnets=(*node.subnets, more.id)) for node in nodes]
            # What stands in the first subnet of a zone may stand in this one.
            if assign([*rooms, more], wider, self.standing) is not None:
                larger = "" if mask == vpc.LARGEST_RANGE_MASK else " or larger"
                return f"add an empty subnet of /{mask}{larger}, use: [{', '.join(uses)}]"
        return _FEWER


def room_of(subnet: config.Subnet | SubnetPlan) -> Room:
    """Return the free addresses of a subnet: as recorded, or as if it were empty.

    Of recorded addresses without their blocks each that is taken counts as one in a block of its
    own: who took it is not known.
    """
    addresses, blocks = vpc.free_addresses(subnet.cidr), vpc.free_prefixes(subnet.cidr)
    free, prefixes = subnet.free_addresses, subnet.free_prefixes
    if free is None:
        free = addresses if prefixes is None else prefixes * eks.ADDRESSES_PER_PREFIX
    if prefixes is None:
        prefixes = max(blocks - (addresses - free), 0)
    return Room(
        id=subnet.id or "", addresses=free, prefixes=min(prefixes, free // eks.ADDRESSES_PER_PREFIX)
    )


def shard_names(pool: config.Pool) -> tuple[str, ...]:
    """Return the names of the shards of ``pool``, as their plans have them."""
    if pool.shards == 1:
        return (pool.name,)
    return tuple(f"{pool.name}-{number}" for number in range(1, pool.shards + 1))


def _zones(network: config.Network) -> tuple[str, ...]:
    return tuple(dict.fromkeys(subnet.zone for subnet in network.subnets))


def standing_addresses(
    network: config.Network,
    pools: Sequence[config.Pool],
    storage: config.Storage,
    sections: Iterable[config.Section],
) -> Standing:
    """Return the users of single addresses in existing subnets, beside nodes and load balancers.

    Args:
        network: Their section of the file.
        pools: The pools.
        storage: File systems.
        sections: Sections of the file.
    """
    builds = any(pool.facts.is_set_up_by_build for pool in pools)
    of_sections = [section.subnet_addresses for section in sections]
    begun: set[str] = set()
    standing: dict[str, dict[str, int]] = {}
    for subnet in network.subnets:
        parts = standing[subnet.id] = {}
        if "control-plane" in subnet.use:
            parts["EKS's own interfaces"] = eks.LEAST_CONTROL_PLANE_ADDRESSES
        if "nodes" in subnet.use:
            parts["functions"] = LAMBDA_ADDRESSES
            parts["builds"] = BUILD_ADDRESSES if builds else 0
            for addresses in of_sections:
                parts.update(addresses)
            if subnet.zone not in begun:
                begun.add(subnet.zone)
                parts["endpoints"] = _endpoints(network)
                parts["file systems"] = sum(
                    _lustre(system, subnet.zone) for system in storage.lustre
                )
    return {
        id: {purpose: count for purpose, count in parts.items() if count}
        for id, parts in standing.items()
    }


def _endpoints(network: config.Network) -> int:
    """Return the most interface endpoints that we make: each has an address in every zone."""
    create, present = network.endpoints.create, {*network.endpoints.present}
    if create in (None, "none"):
        return 0
    if create == "missing":
        return len(endpoints.called_by_interface() - present)
    return len({*create} - present)  # S3's gateway among them is a mistake of its own


def _lustre(file_system: config.Lustre, zone: str) -> int:
    gib = file_system.capacity_gib if file_system.zone == zone else 0
    if not gib:
        return 0
    return -(-gib // _GIB_OF_A_FILE_SERVER) + -(-gib // _GIB_OF_A_METADATA_SERVER)


@rule
def subnets_hold_the_nodes(
    network: config.Network,
    pools: config.Readable[config.Pool],
    storage: config.Storage,
    sections: config.Readable[config.Section],
) -> Iterator[config.Mistake]:
    """Yield subnets that exist and are too small for the pools that can be read."""
    if network.vpc is None or not config.subnets_are_sound(network):
        return  # a mistake of its own
    counted = [pool for pool in pools if config.count_is_sound(pool, pools)]
    yield from AddressesOfSubnets(network, counted, storage=storage, sections=sections).mistakes()
