"""Plans of single parts of a cluster, from the arguments of a program instead of a cluster file.

The arguments are laid out as a cluster file, which is read, judged and planned as any other: every
rule of `check` judges them. What belongs to somebody else's network and cluster is filled in, and
nothing that is said of it reaches the caller.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeGuard, TypeVar

from msgspec import Struct, field
from msgspec.structs import fields, replace

from ultrascale import catalog, config, yaml_writer
from ultrascale.catalog import eks, regions
from ultrascale.config import KeyPath
from ultrascale.documents import mapping
from ultrascale.errors import ArgumentError, CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.addons import on_nodes_of_others
from ultrascale.plan.cluster import assemble
from ultrascale.plan.mistakes import all_mistakes
from ultrascale.plan.model import AddonPlan, ClusterPlan, NodeClassPlan, NodePoolPlan

NAME = "cluster-of-the-app"
"""Stands in a plan for the name of a cluster, which may be known to CloudFormation alone."""

_PLAN = TypeVar("_PLAN")
_SYSTEM = "system-of-the-app"
# As large as a VPC becomes: the ranges of the caller's own are not known here.
_NETWORK: Mapping[str, object] = {
    "vpc_cidr": "10.0.0.0/16",
    "pod_cidrs": {"count": 4, "from": "100.64.0.0/10"},
}
_ANY_REGION = "us-east-1"
_VERSION = re.compile("[0-9]+[.][0-9]+")
# Begins the keys of a node's zone, by its name and by its id.
_TOPOLOGY = "topology."
# Words of a cluster file, and in their place those of a program.
_WORDS: Mapping[re.Pattern[str], str] = {
    re.compile(r"write shards: (\d+) of (\d+) nodes each(?:, or use [\w-]+)?"): (
        r"make \1 node pools of \2 nodes each"
    ),
    re.compile(r"network\.vpc_cidr"): "the VPC's range",
    re.compile(r"not one of network\.zones"): "not a zone of subnets",
    re.compile(r"are not the cluster file's to set"): "are not yours to set",
}
_SYSTEM_POOL: Mapping[str, object] = {
    "name": _SYSTEM,
    "role": "system",
    "instance_types": ["m5.large"],
    "provisioner": "managed-node-group",
    "nodes": {"min": 1, "max": 2},
}


class Part(Frozen):
    """Arguments that make up one part of a cluster file."""

    # Keys that lead to the part; a pool's number is its place among the parts that are pools.
    at: KeyPath
    keys: Mapping[str, object]  # Keys and values of the part; those that are None are left out
    # Argument that gives the value at a path of keys, where it is not called as the first of them.
    names: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    prefix: str = ""  # Stands before the names of its arguments, such as ``instance_groups[0].``

    def argument(self, at: KeyPath) -> str | None:
        """Return the argument behind the place ``at`` of the file; None for another part's."""
        if at[: len(self.at)] != self.at:
            return None
        path = at[len(self.at) :]
        for length in range(len(path), -1, -1):
            known = self.names.get(path[:length])
            if known is not None:
                return f"{self.prefix}{_spelled(known, path[length:])}"
        if not path:
            return self.prefix.rstrip(".") or "arguments"
        return f"{self.prefix}{_spelled(str(path[0]), path[1:])}"


class Surroundings(Frozen):
    """The part of a cluster file that arguments leave open."""

    source: str  # What error lines begin with, such as the path of a construct
    name: str | None = None  # Name of the cluster; None stands for one that is not judged
    region: str | None = None  # Region of the stack, None where the stack leaves it open
    # Zones of the subnets; of those that nobody knows yet, whatever tells them apart.
    zones: Sequence[str] = ()
    kubernetes_version: str | None = None  # Minor version of the cluster; None for the default
    vpc_cidr: str | None = None  # Range of the VPC, None where it is not known
    # Whether the subnets of the control plane must lie in these zones and no others.
    own_zones: bool = False


class ZoneNames(Frozen, kw_only=False):
    """Zones of a Region, for subnets whose zones CloudFormation alone knows."""

    region: str  # The Region that the arguments are judged by
    by_zone: Mapping[str, str]  # Zone in the plan, by the zone that the caller's subnet has


def plan_arguments(
    parts: Sequence[Part],
    *,
    surroundings: Surroundings,
    zones: ZoneNames,
    mistakes: Iterable[str] = (),
    unknown: Mapping[str, str] | None = None,
) -> ClusterPlan:
    """Return the plan of a cluster that has ``parts``.

    Args:
        parts: The parts, pools in their order.
        surroundings: What the arguments do not say.
        zones: The zones of the subnets, by `name_zones`.
        mistakes: What is wrong with the arguments already, one line each.
        unknown: Texts in the arguments that stand for values CloudFormation alone knows, and how
            error lines call them.

    Raises:
        ArgumentError: Arguments are wrong; one line for each,
            ``source: argument: what is wrong, got VALUE; what to do``.
    """
    document = _document(parts, surroundings, zones)
    judged = document
    if surroundings.vpc_cidr is not None:
        judged = {
            **document,
            "network": {"vpc_cidr": surroundings.vpc_cidr, "zones": _zones(zones)},
        }
    reading = config.reads(yaml_writer.dump(judged), source="")
    lines = [f"{surroundings.source}: {line}" for line in mistakes]
    lines += _lines(reading, parts, surroundings, unknown or {})
    if lines:
        raise ArgumentError(dict.fromkeys(lines))
    planned = reading
    if judged is not document:
        planned = config.reads(yaml_writer.dump(document), source="")
    assert planned.cluster is not None, "every mistake of form is told"
    try:
        return assemble(planned.cluster)
    except CatalogError as error:
        raise ArgumentError([f"{surroundings.source}: {error}"]) from error


def name_zones(
    zones: Sequence[str], *, region: str | None, instance_types: Iterable[str] = ()
) -> ZoneNames:
    """Return names of zones for a plan, and the Region that they are of.

    A stack may leave its Region open, and a zone may be a token of CloudFormation or the CDK's
    dummy before it has looked a VPC up. Such a Region is one that is known to sell the types, and
    such zones are as many others of the Region.

    Args:
        zones: Zones of the caller's subnets, or whatever tells them apart.
        region: The Region, None where the stack leaves it open.
        instance_types: Instance types that the arguments name.
    """
    stated = [zone for zone in dict.fromkeys(zones) if _is_stated(zone)]
    found = region or next(filter(None, map(_region_of, stated)), None)
    found = found or _selling(instance_types)
    letters = regions.REGIONS[found].zone_letters if found in regions.REGIONS else ""
    free = [f"{found}{letter}" for letter in letters or "abcdef"]
    by_zone = {zone: zone for zone in stated}
    left = [zone for zone in free if zone not in by_zone] or free
    for number, zone in enumerate(each for each in dict.fromkeys(zones) if each not in by_zone):
        by_zone[zone] = left[number % len(left)]
    return ZoneNames(found, by_zone)


def partition_of(region: str | None) -> str:
    """Return the partition of a Region; ``aws`` where it is open or unknown."""
    known = None if region is None else regions.REGIONS.get(region)
    return "aws" if known is None else known.partition


def substituted(plan: _PLAN, values: Mapping[str, str]) -> _PLAN:
    """Return ``plan`` with each text that stands for a value in ``values`` replaced by it."""
    changed = _replaced(plan, values)
    assert isinstance(changed, type(plan))
    return changed


def beside_others(addon: AddonPlan) -> AddonPlan:
    """Return an add-on for a VPC that is not ours and for nodes that no plan knows.

    By itself the VPC CNI gives pods addresses of every subnet with a certain tag, which may be
    those of a neighbour's pods.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-subnet-selection.html
    """
    if addon.name != "vpc-cni":
        return on_nodes_of_others(addon)
    env = mapping(addon.configuration.get("env"))
    return replace(
        addon,
        configuration={**addon.configuration, "env": {**env, "ENABLE_SUBNET_DISCOVERY": "false"}},
    )


def on_another_karpenter(
    node_class: NodeClassPlan, node_pool: NodePoolPlan
) -> tuple[NodeClassPlan, NodePoolPlan]:
    """Return a node class and a NodePool for a Karpenter that is not ours.

    Its VPC CNI may know no prefixes, nothing may remove our startup taints, and NodeOverlays may be
    switched off: nodes would be paid for and stay empty. The zones are those of the subnets, which
    CloudFormation alone may know.
    """
    requirements = tuple(
        each for each in node_pool.requirements if not each.key.startswith(_TOPOLOGY)
    )
    return (
        replace(node_class, ip_prefixes=0),
        replace(node_pool, startup_taints=(), unseen_resources={}, requirements=requirements),
    )


def unless_older(version: str | None) -> str | None:
    """Return a Kubernetes version; None for one that is older than a cluster file's may be.

    It is for what takes such a cluster all the same, as HyperPod does.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
    """
    if version is None or not _VERSION.fullmatch(version):
        return version
    return None if _order(version) < _order(eks.SUPPORTED_VERSIONS[0]) else version


def moment(value: datetime | str) -> str:
    """Return a moment as a cluster file writes it; text and datetimes without a zone stay."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value)


def _document(
    parts: Sequence[Part], surroundings: Surroundings, zones: ZoneNames
) -> dict[str, object]:
    names = _zones(zones)
    if not surroundings.own_zones and len(names) < 2:
        # EKS wants two; a part of a cluster may lie in one.
        spare = name_zones(("${A}", "${B}"), region=zones.region).by_zone.values()
        names += [zone for zone in spare if zone not in names][: 2 - len(names)]
    kubernetes: dict[str, object] = {"node_local_dns": False}
    if surroundings.kubernetes_version is not None:
        kubernetes["version"] = _plain(surroundings.kubernetes_version)
    document: dict[str, object] = {
        "name": NAME if surroundings.name is None else _plain(surroundings.name),
        "region": zones.region,
        "network": {**_NETWORK, "zones": names},
        "kubernetes": kubernetes,
    }
    pools: list[object] = []
    for part in parts:
        stated = {key: _plain(value) for key, value in part.keys.items() if value is not None}
        match part.at:
            case ("pools", _):
                pools.append(stated)
            case ("storage", "lustre", _):
                document["storage"] = {"lustre": [stated]}
            case (str(section),):
                inner = document.get(section)
                document[section] = {**inner, **stated} if isinstance(inner, dict) else stated
            case _:
                raise AssertionError(f"no part of a cluster file is at {part.at}")
    document["pools"] = [*pools, _SYSTEM_POOL]
    return document


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _zones(zones: ZoneNames) -> list[str]:
    return list(dict.fromkeys(zones.by_zone.values()))


def _lines(
    reading: config.Reading,
    parts: Sequence[Part],
    surroundings: Surroundings,
    unknown: Mapping[str, str],
) -> Iterator[str]:
    """Yield a line for each mistake that is one of the arguments."""
    pools = sum(part.at[0] == "pools" for part in parts)
    for mistake in reading.in_order(all_mistakes(reading)):
        argument = next(filter(None, (part.argument(mistake.at) for part in parts)), None)
        argument = argument or _of_surroundings(mistake.at, surroundings, pools)
        if argument is None:
            continue
        line = replace(mistake.told(reading.document), key=argument).keyed
        for stand_in, name in unknown.items():
            line = line.replace(stand_in, name)
        for words, others in _WORDS.items():
            line = words.sub(others, line)
        yield f"{surroundings.source}: {line}"


def _of_surroundings(at: KeyPath, surroundings: Surroundings, pools: int) -> str | None:
    """Return the argument, or the property of the stack, behind a place that no part states."""
    match at:
        case ("name", *_):
            return "name" if surroundings.name is not None else None
        case ("region", *_):
            return "env.region"
        case ("network", "zones", *_):
            return "subnets"
        case ("network", *_):
            return None
        case ("kubernetes", "version", *_):
            return "kubernetes_version"
        case ("kubernetes", "node_local_dns", *_):
            return None
        case ("pools", int(number), *_):
            return None if number >= pools else "arguments"
        case ():
            return "arguments"
        case _:
            return _spelled(str(at[0]), at[1:])


def _spelled(name: str, rest: KeyPath) -> str:
    return name + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in rest)


def _plain(value: object) -> object:
    """Return ``value`` as YAML has it; of what YAML has not, its text."""
    if isinstance(value, datetime):
        return moment(value)
    if _is_mapping(value):
        return {str(key): _plain(item) for key, item in value.items() if item is not None}
    if _is_list(value):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _replaced(value: object, values: Mapping[str, str]) -> object:
    if isinstance(value, str):
        for stand_in, known in values.items():
            value = value.replace(stand_in, known)
        return value
    if _is_mapping(value):
        return {_replaced(key, values): _replaced(item, values) for key, item in value.items()}
    if _is_tuple(value):
        return tuple(_replaced(item, values) for item in value)
    if isinstance(value, Struct):
        names = (field.name for field in fields(value))
        changed = {name: _replaced(getattr(value, name), values) for name in names}
        return replace(value, **changed)
    return value


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_tuple(value: object) -> TypeGuard[tuple[object, ...]]:
    return isinstance(value, tuple)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _is_stated(zone: str) -> bool:
    """Return whether a zone is one, and no token and no dummy of the CDK's first synthesis."""
    return "${" not in zone and not zone.startswith("dummy")


def _region_of(zone: str) -> str | None:
    """Return the Region of a zone by its name, or by its id; None where neither says."""
    for region in regions.REGIONS.values():
        if zone.startswith(region.name) and len(zone) == len(region.name) + 1:
            return region.name
        if region.zone_id_prefix and zone.startswith(f"{region.zone_id_prefix}-az"):
            return region.name
    return None


def _selling(instance_types: Iterable[str]) -> str:
    """Return a Region that is known to sell ``instance_types``."""
    known = [name for name in instance_types if name in catalog.INSTANCE_TYPES]
    sold = (
        region
        for region in (_ANY_REGION, *regions.REGIONS)
        if regions.REGIONS[region].partition == "aws"
        and all(regions.offered(name, region) is not False for name in known)
    )
    return next(sold, _ANY_REGION)
