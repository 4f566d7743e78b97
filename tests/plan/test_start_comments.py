"""Comments of the files that `init` starts from, held against the plans of those files.

A comment that promises no cost is read by whoever pays for the first nodes that come.
"""

import re
from collections.abc import Sequence

import pytest

from ultrascale import catalog, config, plan
from ultrascale.init import STARTS, cluster_text, defaults
from ultrascale.plan.model import PoolPlan

# What the comment of a pool may claim of nodes and money.
CLAIM = re.compile(r"\bnodes?\b(?!-| group)|\bcost|\bpaid\b|\bscale|\blaunch", re.IGNORECASE)
NAMED = re.compile(r"^  - name: (\S+)(?: +# (.*))?$", re.MULTILINE)
CASES = [
    *((start, None) for start in STARTS),
    # In other Regions `init` writes other zones, and in another partition other ARNs.
    *(
        (start, at)
        for start in ("minimal", "trainium", "hopper")
        for at in ("us-west-2", "us-gov-west-1")
    ),
]


def true_claims(pool: Sequence[PoolPlan], total: int) -> set[str]:
    """Return all that a comment may claim of a pool, which is its shards, in a cluster of nodes."""
    first, nodes = pool[0], sum(each.max_nodes for each in pool)
    if first.sized_by == "cluster-autoscaler":
        return {autoscaled(first)}
    if first.purchase == "odcr":
        claims = {"paid for whether it is used or not: always the first choice"}
        accelerator = catalog.lookup(first.instance_types[0]).accelerator
        if first.static and accelerator is not None:
            unit = "chips" if accelerator.kind == "neuron" else "GPUs"
            claims.add(
                f"{len(pool)} static pools of {first.max_nodes:,}: {nodes:,} nodes, "
                f"{nodes * accelerator.count:,} {unit}"
            )
        return claims
    return {f"data processing: {nodes:,} nodes; with the rest exactly {total:,}"}


def autoscaled(pool: PoolPlan) -> str:
    nodes = {0: "no node", 1: "1 node"}.get(pool.initial_nodes, f"{pool.initial_nodes} nodes")
    most = f"at most {pool.max_nodes}"
    return f"{nodes} at first, {most}: the Cluster Autoscaler starts them for pods that wait"


@pytest.mark.parametrize(("start", "region"), CASES)
def test_what_a_start_says_of_nodes_and_money_follows_from_its_plan(
    start: str, region: str | None
) -> None:
    text = cluster_text(STARTS[start], defaults(STARTS[start], "mine", region=region))
    pools = plan.plan_cluster(config.loads(text)).all_pools
    comments = dict(NAMED.findall(text))

    total = sum(pool.max_nodes for pool in pools)
    for name in dict.fromkeys(pool.pool for pool in pools):
        own = [pool for pool in pools if pool.pool == name]
        told = own[0].sized_by == "cluster-autoscaler" and own[0].accelerator is not None
        if told or CLAIM.search(comments[name]):
            assert comments[name] in true_claims(own, total)
