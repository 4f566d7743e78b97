"""Properties of needs: each number follows its formula when a pool grows."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.needs import KARPENTER, POD_RANGES, needs
from tests.support.pools import ON_DEMAND, pool_document
from ultrascale.catalog import quotas
from ultrascale.plan.model import Figure
from ultrascale.plan.needs.report import all_figures

# By the last part of their id: these have a bound, are rounded up or are shares, and tests of
# their own.
BENT = frozenset(
    {
        *("run_instances_minutes", "minutes_to_first_step", "coredns_replicas"),
        *("coredns_replicas_most", "pods", "full", "nodes_most"),
        quotas.quota("nodes-of-a-group").code,  # of the largest
    }
)
# Of the pool that grows, and of all: what grows with each node.
GROWING = (
    *("nodes", "vcpus", "network_interfaces", "address_usage"),
    *("on_demand_usd_per_hour", "usd_per_hour", "usd_per_month"),
)
TYPES = ["p5.48xlarge", "p4d.24xlarge", "trn1.32xlarge", "g6e.48xlarge"]
EAST = POD_RANGES | {"zones": ["us-east-1a", "us-east-1b"]}


def figures_of(name: str, nodes: int, launched: dict[str, Any]) -> dict[str, Figure]:
    pool = pool_document(
        instance_types=[name],
        purchase=ON_DEMAND,
        zones=["us-east-1a"],
        nodes={"max": nodes},
        **launched,
    )
    found = needs(pool, region="us-east-1", network=EAST, karpenter=KARPENTER)
    # Rates of failures and of checkpoints are no sums over nodes, and have tests of their own.
    found = replace(found, load=(), checkpoints=())
    return {figure.id: figure for figure in all_figures(found)}


@settings(deadline=None, max_examples=8)
@given(
    nodes=st.integers(1, 140),
    name=st.sampled_from(TYPES),
    launched=st.sampled_from([{}, {"provisioner": "karpenter"}]),
)
def test_every_number_grows_with_its_pool_and_by_as_much_for_each_node(
    nodes: int, name: str, launched: dict[str, Any]
) -> None:
    """The second doubling's worth of nodes adds what the first did, or the number is bounded."""
    once, twice, thrice = (figures_of(name, count * nodes, launched) for count in (1, 2, 3))

    assert once.keys() == twice.keys() == thrice.keys()
    for key, first in once.items():
        numbers = (first.value, twice[key].value, thrice[key].value)
        if None in numbers:
            assert numbers == (None, None, None), key
        elif key.rpartition(".")[2] not in BENT:
            low, middle, high = (value for value in numbers if value is not None)
            assert high - middle == pytest.approx(middle - low, rel=1e-6, abs=1e-9), key
    for key in GROWING:
        own = f"train.{key}" if f"train.{key}" in once else f"money.train.{key}"
        value = once[own].value
        assert value is not None or name == "g6e.48xlarge", own
        assert twice[own].value == (value if value is None else pytest.approx(2 * value)), own


def test_a_number_that_changes_changes_in_its_formula_too() -> None:
    once, twice = (figures_of("p5.48xlarge", count, {}) for count in (20, 40))

    silent = [
        key
        for key, figure in once.items()
        if figure.value != twice[key].value
        and figure.formula == twice[key].formula
        # Their terms are figures, which say it.
        and not any(other in figure.formula for other in once if other != key)
        and key.rpartition(".")[2] not in BENT | {"pods_most"}
    ]
    assert silent == []


# What a node of p5.48xlarge adds, counted by hand: 33 interfaces of which 32 are for EFA, two
# prefixes, a disk of 100 GiB, a lease each 10 seconds, and one pod of a job beside 9 of DaemonSets.
AUDIT = (1 / 10 + 1 / 300) * 1_500 * 730 * 3_600 / 1e9 * 0.5
FLOWS = 200 / 600 * 120 * 730 * 3_600 / 1e9 * 0.5
OF_A_NODE = {
    **dict.fromkeys(("train.nodes", "total.nodes", "control_plane.nodes"), 1),
    **dict.fromkeys(("train.vcpus", "total.vcpus", "quota.L-417A185B"), 192),
    **dict.fromkeys(("train.accelerators", "total.accelerators"), 8),
    **dict.fromkeys(("train.efa_interfaces", "total.efa_interfaces"), 32),
    **dict.fromkeys(("train.network_interfaces", "total.network_interfaces"), 33),
    **dict.fromkeys(("train.address_usage", "total.address_usage", "quota.L-BB24F6E5"), 35),
    **dict.fromkeys(("train.usd_per_hour", "total.usd_per_hour"), 55.04),
    **dict.fromkeys(("train.usd_per_month", "total.usd_per_month"), 55.04 * 730),
    "money.train.on_demand_usd_per_hour": 55.04,
    "money.on_demand_usd_per_hour": 55.04,
    # 100 GiB of gp3 beside it.
    "money.usd_per_hour": 55.04 + 100 * 0.08 / 730,
    "money.usd_per_month": 55.04 * 730 + 100 * 0.08,
    "money.standing_usd_per_hour": 100 * 0.08 / 730,
    "money.item.root_volumes.usd_per_hour": 100 * 0.08 / 730,
    "money.item.root_volumes.usd_per_month": 100 * 0.08,
    "money.at_on_demand_rates_usd_per_hour": 55.04,
    # Lines of audit, and of 200 flows in ten minutes, at half a dollar for a GB.
    "money.item.audit_log.usd_per_month": AUDIT,
    "money.item.audit_log.usd_per_hour": AUDIT / 730,
    "money.item.VPC_flow_logs.usd_per_month": FLOWS,
    "money.item.VPC_flow_logs.usd_per_hour": FLOWS / 730,
    "money.usage_usd_per_month": AUDIT + FLOWS,
    "subnet.accelerated.us-east-1a.nodes": 1,
    "subnet.accelerated.us-east-1a.nodes_of_skew": 1,
    "subnet.accelerated.us-east-1a.prefixes_needed": 2,
    "subnet.accelerated.us-east-1a.addresses_needed": 33,
    "subnet.accelerated.us-east-1a.addresses_free": -33,
    "control_plane.pods": 10,
    "control_plane.pods_most": 250,
    "control_plane.database.nodes": 50e-6,
    "control_plane.database.leases": 30 * 0.5e-6,
    "control_plane.database.csi_nodes": 1e-6,
    "control_plane.database.daemon_pods": 9 * 14e-6,
    "control_plane.database.job_pods": 50e-6,
    "control_plane.database.endpoints": 0.3e-6,
    "control_plane.database.events": 10 * 5 * 1e-6,
    "control_plane.database": (50 + 15 + 1 + 126 + 50 + 0.3 + 50) * 1e-6,
    "control_plane.database_most": (50 + 15 + 1 + 126 + 50 + 0.3 + 50 + 240 * 50.3) * 1e-6,
    "control_plane.leases_per_second": 1 / 10,
    "control_plane.pods_per_second": 1 / 300,
    "control_plane.write_seats": (1 / 10 + 1 / 300 + 5 / 300) * 0.015,
    "launch.image_pull_seconds": 40 / 3_000,
    "launch.measured_minutes": 1 / 2_000,
    "quota.L-DF5E4CA3": 33,
    "quota.L-7A658B76": 100 / 1024,
    **dict.fromkeys(("quota.L-55A41110", "quota.L-16E70933"), 1 / 300),
    "quota.L-A60A366D": 40 / 300,
}


@settings(deadline=None, max_examples=5)
@given(nodes=st.integers(1, 140))
def test_each_node_adds_what_it_is_and_has_and_changes_nothing_else(nodes: int) -> None:
    """A sum may be straight and wrong all the same: these are the sums, written down once more."""
    once, twice = (figures_of("p5.48xlarge", count * nodes, {}) for count in (1, 2))

    for key, first in once.items():
        second = twice[key].value
        if first.value is not None and second is not None and key.rpartition(".")[2] not in BENT:
            grown = nodes * OF_A_NODE.get(key, 0)
            assert second - first.value == pytest.approx(grown, rel=1e-6, abs=1e-9), key
    assert OF_A_NODE.keys() <= once.keys()
