"""The entries of `pools` for a chain of candidates, and a cluster file around them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from ultrascale import catalog, yaml_writer
from ultrascale.catalog import (
    capacity_blocks,
    karpenter,
    matrix,
    regions,
    training_plans,
)
from ultrascale.catalog.provisioners import KARPENTER, MANAGED_NODE_GROUP
from ultrascale.plan.advice.candidates import is_spread
from ultrascale.plan.advice.model import Candidate, Question
from ultrascale.plan.advice.times import sold_days, window

Entry = dict[str, object]

PLACEHOLDER_ACCOUNT = "111122223333"
"""AWS's account of documentation: `preflight` refuses it, so that nobody deploys it."""

_PODS_FROM = "100.64.0.0/10"
_VPC_CIDR = "10.0.0.0/16"
# Above this number of instances, a pool is divided.
_LARGEST: Mapping[str, int] = {
    "capacity-block": capacity_blocks.MOST_INSTANCES,
    "training-plan": max(training_plans.SIZES),
}
_FILL_IN = {
    "reservation": "fill in: the id of what you bought or reserved",
    "plan": "fill in: the ARN of the plan that you bought",
    "starts": "fill in: as the purchase says",
    "ends": "fill in: as the purchase says",
    "zones": "fill in: the zone of what you bought or reserved",
}


def pools_of(
    question: Question, candidate: Candidate, *, nodes: int, taken: int, first: bool
) -> tuple[Entry, ...]:
    """Return the pools of a candidate.

    Args:
        question: The question.
        candidate: A legal candidate.
        nodes: Its number of nodes.
        taken: Number of pools of that option before it.
        first: Whether it is the choice, and so no fallback.
    """
    counts = [nodes]
    largest = _LARGEST.get(candidate.option)
    if largest is not None and candidate.held is None:
        # In the sizes that `ultrascale capacity` looks for.
        full, rest = divmod(nodes, largest)
        counts = [largest] * full + [rest] * (rest > 0)
    pools = [
        _pool(question, candidate, count, taken + number) for number, count in enumerate(counts)
    ]
    if first and falls_back(question, candidate):
        # Spot and its fallback divide the maximum between them: each gets all the nodes.
        share = {"option": "spot", "fallback": "on-demand", "fallback_max": nodes}
        both = {"nodes": {"max": 2 * nodes}}
        pools = [pool | {"purchase": share} | both for pool in pools]
    return tuple(pools)


def _pool(question: Question, candidate: Candidate, nodes: int, number: int) -> Entry:
    suffix = f"-{number + 1}" if number else ""
    reserved = candidate.option not in ("on-demand", "spot") or candidate.facts.is_fixed
    entry: Entry = {
        "name": f"{question.workload}-{candidate.option}{suffix}",
        "role": "reserved" if reserved else "burst",
        "instance_types": list(candidate.instance_types),
        "provisioner": candidate.provisioner,
        "purchase": _purchase(question, candidate, number),
        "zones": list(candidate.zones),
        **_counts(candidate, nodes),
        "efa": "all" if question.coupled else "none",
    }
    if takes_placement_group(question, candidate):
        entry["placement_group"] = True
    return entry


def takes_placement_group(question: Question, candidate: Candidate) -> bool:
    """Return whether the pool gets the requested placement group."""
    free = candidate.option in ("on-demand", "spot") and candidate.facts.in_account
    fit = all(catalog.lookup(name).placement_group for name in candidate.instance_types)
    return question.placement_group and free and fit and not is_spread(candidate)


def _counts(candidate: Candidate, nodes: int) -> Entry:
    fixed = candidate.facts.is_fixed or (
        candidate.option == "capacity-block" and candidate.is_node_pool
    )
    most = candidate.facts.nodes_per_group or nodes
    if candidate.is_managed:
        most = matrix.NODES_PER_MANAGED_NODE_GROUP
    shards = math.ceil(nodes / most)
    counts: Entry = {"nodes": {"static" if fixed else "max": math.ceil(nodes / shards)}}
    return counts | ({"shards": shards} if shards > 1 else {})


def most_nodes(pool: Entry) -> int:
    """Return the most nodes of an entry, all of its shards together."""
    nodes, shards = pool["nodes"], pool.get("shards", 1)
    assert isinstance(nodes, dict)
    assert isinstance(shards, int)
    return sum(cast("dict[str, int]", nodes).values()) * shards


def _purchase(question: Question, candidate: Candidate, number: int) -> Entry:
    option = candidate.option
    purchase: Entry = {"option": option}
    held = candidate.held
    if option in ("odcr", "capacity-block"):
        # A block and a reservation of one answer are two.
        kind = int(option == "odcr")
        purchase["reservation"] = held.name if held else f"cr-{kind}{number + 1:016x}"
    if option == "training-plan":
        purchase["plan"] = held.name if held else _plan_arn(question.region, number)
    if option in ("capacity-block", "training-plan"):
        starts, ends = _window(question, candidate)
        purchase |= {"starts": _time_text(starts), "ends": _time_text(ends)}
    return purchase


def falls_back(question: Question, candidate: Candidate) -> bool:
    """Return whether a Spot pool that is the choice turns to On-Demand by itself.

    It would turn node by node, so a coupled job has another pool.
    """
    cell = matrix.cell(candidate.provisioner, candidate.option)
    return candidate.option == "spot" and cell.falls_back and not question.coupled


def _window(question: Question, candidate: Candidate) -> tuple[datetime, datetime]:
    held = candidate.held
    if held is not None and held.starts is not None and held.ends is not None:
        return held.starts, held.ends
    days = sold_days(candidate.option, question.days or 0)
    # Filter H2 refuses work that is longer.
    assert days is not None
    return window(question, days)


def _plan_arn(region: str, number: int) -> str:
    partition = regions.lookup_region(region).partition
    account = PLACEHOLDER_ACCOUNT
    return f"arn:{partition}:sagemaker:{region}:{account}:training-plan/fill-in-{number + 1}"


def _time_text(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def as_fragment(file: Entry, pools: Sequence[Entry], *, unbought: frozenset[str]) -> str:
    """Return `pools:` as YAML, headed by its demands on the rest of the cluster file.

    Args:
        file: The cluster file around them.
        pools: Its entries.
        unbought: Names of the pools whose reservation is still to be bought.
    """
    zones = dict.fromkeys(zone for pool in pools for zone in cast("list[str]", pool["zones"]))
    wanted = [f"network.zones with {', '.join(zones)}"]
    if "karpenter" in file:
        wanted.append(f"karpenter.version {karpenter.NEWEST_VERSION}")
    return f"# the cluster file says besides: {' and '.join(wanted)}\n" + _entries(pools, unbought)


def _entries(pools: Sequence[Entry], unbought: frozenset[str]) -> str:
    """Return `pools:` as YAML, with a remark behind each value that the user has to fill in."""
    lines = ["pools:"]
    for pool in pools:
        remark = _remark if pool["name"] in unbought else _no_remark
        text = yaml_writer.dump([pool], compact=True)
        lines += [f"  {line}{remark(line)}" for line in _lines(pool["purchase"], text)]
    return "\n".join(lines) + "\n"


def _lines(purchase: object, text: str) -> Iterator[str]:
    """Yield the lines of an entry; a purchase with a name has one key on each."""
    assert isinstance(purchase, dict)
    for line in text.splitlines():
        if line.startswith("  purchase:") and {"reservation", "plan"} & purchase.keys():
            yield "  purchase:"
            inner = yaml_writer.dump(cast("Entry", purchase))
            yield from (f"    {line}" for line in inner.splitlines())
        else:
            yield line


def _remark(line: str) -> str:
    key = line.strip().partition(":")[0]
    return f"  # {_FILL_IN[key]}" if key in _FILL_IN else ""


def _no_remark(line: str) -> str:
    return ""


def as_file(file: Entry, *, unbought: frozenset[str]) -> str:
    """Return a cluster file as YAML, with the same remarks in its pools."""
    rest = {key: value for key, value in file.items() if key != "pools"}
    head = yaml_writer.dump(rest, compact=True)
    pools = file["pools"]
    assert isinstance(pools, list)
    return head + _entries(cast("list[Entry]", pools), unbought)


def document(
    question: Question, pools: Sequence[Entry], *, system_type: str, pod_blocks: int
) -> Entry:
    """Return the smallest cluster file around ``pools``.

    Args:
        question: The question.
        pools: The pools.
        system_type: Instance type of the system pool.
        pod_blocks: Number of /16 ranges for nodes and pods.
    """
    system: Entry = {
        "name": "system",
        "instance_types": [system_type],
        "provisioner": MANAGED_NODE_GROUP,
        "purchase": {"option": "on-demand"},
        "nodes": {"min": 2, "max": 4},
    }
    found: Entry = {
        "name": "advised",
        "region": question.region,
        "network": {
            "vpc_cidr": _VPC_CIDR,
            "pod_cidrs": {"count": pod_blocks, "from": _PODS_FROM},
            "zones": list(_two_zones(question)),
        },
        "kubernetes": {"version": question.kubernetes_version},
    }
    if any(pool["provisioner"] == KARPENTER for pool in pools):
        found["karpenter"] = {"version": karpenter.NEWEST_VERSION}
    return found | {"pools": [system, *pools]}


def _two_zones(question: Question) -> tuple[str, ...]:
    """Return the zones of the question, with a second one beside a single one: EKS needs two."""
    zones = question.zones
    if len(zones) > 1:
        return zones
    own = next(iter(zones))
    others = regions.zones_like(own, question.region) or (
        f"{question.region}{letter}" for letter in "ab"
    )
    return (own, next(other for other in others if other != own))
