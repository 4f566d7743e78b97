"""A mistake of form hides no mistake of another kind, nor a second one of its own."""

from typing import Any

from tests.support.cases import for_each
from tests.support.config_documents import mistakes_in, with_job, with_network, with_pool
from tests.support.pools import make_document

# Documents with mistakes of several kinds in one part, and the keys that are told.
TOGETHER: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a job": (
        with_job(pool="trian", nodes="x", priority="nope", image="bert:1", restarts={"job": -1}),
        {
            *("jobs.tune.pool", "jobs.tune.nodes", "jobs.tune.priority", "jobs.tune.image"),
            "jobs.tune.restarts.job",
        },
    ),
    "a pool": (
        with_pool(
            nodes={"max": "x"},
            zones=["us-west-2d"],
            tags={"aws:a": "b"},
            labels={"kubernetes.io/a": "b"},
            placement_groupp=True,
        ),
        {
            *("pools[train].nodes.max", "pools[train].zones[0]", "pools[train].tags.aws:a"),
            *("pools[train].labels.kubernetes.io/a", "pools[train].placement_groupp"),
        },
    ),
    "a section": (
        with_network(vpc_cidr="224.0.0.0/16", zones=["us-west-2x"], pod_cidrs="x"),
        {
            *("network.vpc_cidr", "network.zones", "network.zones[0]", "network.pod_cidrs"),
            "pools[train].zones[0]",
        },
    ),
    "keys of one section and another": (
        make_document(kubernetes={"version": 1.35, "service_cidr": "8.8.0.0/16"}),
        {"kubernetes.version", "kubernetes.service_cidr"},
    ),
    "each that stands twice": (
        with_network(zones=["us-west-2a", "us-west-2b", "us-west-2a", "us-west-2b", "us-west-2b"]),
        {"network.zones[2]", "network.zones[3]", "network.zones[4]"},
    ),
}


@for_each(TOGETHER)
def test_every_mistake_is_told_at_once(document: dict[str, Any], keys: set[str]) -> None:
    told = {line.split(": ")[0] for line in mistakes_in(document)}

    assert keys <= told


def test_a_misspelt_key_is_not_judged_by_its_default() -> None:
    """Without the count that was meant, a pool of role reserved would be refused for another."""
    lines = mistakes_in(with_pool(purchse={"option": "spot"}, provisioner="karpenter"))

    assert not any("purchase" in line and "purchse" not in line for line in lines)
