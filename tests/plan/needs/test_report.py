"""Needs of a cluster, before a quota is requested or a reservation paid for."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import for_each
from tests.support.needs import KARPENTER, POD_RANGES, codes, needs, quota, values
from tests.support.pools import (
    CAPACITY_BLOCK,
    HYPERPOD_POOL,
    ODCR,
    ON_DEMAND,
    SPOT,
    pool_document,
)
from ultrascale import catalog
from ultrascale.catalog import quotas
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.pools import address_usage
from ultrascale.plan.needs.report import all_figures
from ultrascale.plan.pools.pool import network_interfaces

OTHER_ODCR = ODCR | {"reservation": "cr-0123456789abcdef1"}
ON_DEMAND_P, ON_DEMAND_G, SPOT_G = "L-417A185B", "L-DB2E81BA", "L-3819A6DF"
BLOCKS_OF_P5 = "L-DA6814F2"
G_TYPES = ["g6.12xlarge", "g6.24xlarge", "g6.48xlarge"]


# --- EC2 quotas ---------------------------------------------------------------------------------


def test_accelerated_quotas_are_asked_for_in_vcpus() -> None:
    """Ten p6-b300.48xlarge are 1,920, and not 10."""
    pool = pool_document(instance_types=["p6-b300.48xlarge"], nodes={"max": 10}, purchase=ON_DEMAND)
    need = quota(needs(pool), ON_DEMAND_P)
    assert (need.needed.value, need.default, need.state) == (1920, 0, "ask")
    assert need.needed.formula == "train: 10 nodes x 192 vCPUs of p6-b300.48xlarge"
    # A reservation counts too, used or not.
    reserved = needs(pool_document(purchase=ODCR, nodes={"max": 4}))
    assert quota(reserved, ON_DEMAND_P).needed.value == 4 * 192


def test_a_capacity_block_counts_against_a_quota_of_its_own_and_no_vcpus() -> None:
    found = needs(pool_document(purchase=CAPACITY_BLOCK))
    blocks = quota(found, BLOCKS_OF_P5)
    assert (blocks.needed.value, blocks.state) == (1, "ask")
    assert "does not say whether it counts blocks or vCPUs" in (blocks.advice or "")
    assert ON_DEMAND_P not in codes(found)


def test_spot_and_its_fallback_need_a_quota_each_for_their_share_of_the_nodes() -> None:
    """Their NodePools divide the nodes: as many as both together are never there of one."""
    fallback = SPOT | {"fallback": "on-demand", "fallback_max": 2}
    launched = {"provisioner": "karpenter", "nodes": {"max": 10}, "efa": "none"}
    pool = pool_document(instance_types=G_TYPES, purchase=fallback, **launched)
    found = needs(pool, karpenter=KARPENTER)
    assert quota(found, SPOT_G).needed.value == 8 * 192
    assert quota(found, ON_DEMAND_G).needed.value == 2 * 192


def test_of_several_types_the_largest_counts() -> None:
    """Accelerators are a promise, and so those of the smallest; the sum says so."""
    pool = pool_document(instance_types=G_TYPES, purchase=SPOT, nodes={"max": 3}, efa="none")

    found = needs(pool)

    assert quota(found, SPOT_G).needed.formula == "train: 3 nodes x 192 vCPUs of g6.48xlarge"
    accelerators = found.pools[1].figures["accelerators"]
    assert (accelerators.value, accelerators.formula) == (
        3 * 4,
        "3 nodes x 4 nvidia.com/gpu, the fewest among its types",
    )


def test_hyperpod_counts_in_the_network_and_never_in_ec2_quotas() -> None:
    """Its instances are of AWS's account; their interfaces and addresses are the user's."""
    without, found = needs(), needs(HYPERPOD_POOL)
    (own,) = (need for need in found.quotas if need.name == "ml.p5.48xlarge for cluster usage")
    assert ON_DEMAND_P not in codes(found)
    assert (own.needed.value, own.state) == (8, "unknown")
    more: dict[quotas.QuotaKey, int] = {"network-interfaces": 8 * 33, "gp3-storage": 0}
    for name, gained in more.items():
        before, after = (
            quota(each, quotas.quota(name).code).needed.value or 0 for each in (without, found)
        )
        assert after - before == gained
    assert values(found, "hp")["address_usage"] == 8 * (33 + 2 + 80)


@pytest.mark.parametrize("code", sorted(quotas.service_quotas()))
def test_a_quota_is_raised_to_no_less_than_it_is(code: str) -> None:
    known = quotas.service_quota(code)

    assert known.most is None or (known.default is not None and known.default <= known.most)
    assert known.source.startswith("https://docs.aws.amazon.com/")


def test_every_quota_that_the_catalog_names_is_one_that_can_be_asked_for() -> None:
    facts = ("on_demand_quota_code", "spot_quota_code", "capacity_block_quota_code")
    specs = [catalog.lookup(name) for name in catalog.INSTANCE_TYPES]
    named = {getattr(spec, fact) for spec in specs for fact in facts if spec.knows(fact)}

    assert named <= quotas.service_quotas().keys()


# --- network ------------------------------------------------------------------------------------


@for_each(
    {
        "m8g.24xlarge": ("m8g.24xlarge", 2, 128_000),
        "p4d.24xlarge": ("p4d.24xlarge", 6, 42_666),
        "trn1.32xlarge": ("trn1.32xlarge", 10, 25_600),
        "p5en.48xlarge": ("p5en.48xlarge", 18, 14_222),
        "trn2.48xlarge": ("trn2.48xlarge", 18, 14_222),
        "p5.48xlarge": ("p5.48xlarge", 34, 7_529),
    }
)
def test_one_vpc_holds_so_many_nodes_as_aws_publishes(name: str, usage: int, nodes: int) -> None:
    """With one prefix each; addresses would be there for many more."""
    spec = catalog.lookup(name)
    own = spec.efa_cards and not name.startswith("m8g")
    assert address_usage(len(network_interfaces(spec)) if own else 1, 1) == usage
    assert (quotas.quota("network-address-usage").most or 0) // usage == nodes


def fleet(nodes: int, shards: int) -> dict[str, Any]:
    tagged = {"option": "odcr", "reservation_tags": {"fleet": "p5"}}
    sharded = {"provisioner": "karpenter", "role": "reserved", "shards": shards}
    return pool_document(**sharded, purchase=tagged, nodes={"static": nodes})


def test_more_than_aws_publishes_for_a_vpc_is_said() -> None:
    found = needs(fleet(4000, 2), karpenter=KARPENTER, network=POD_RANGES)
    need = quota(found, quotas.quota("network-address-usage").code)
    interfaces = quota(found, quotas.quota("network-interfaces").code).needed.value
    beside = 2 * 15 + 2
    assert values(found, "train")["address_usage"] == 8000 * (33 + 2)
    assert interfaces == 8000 * 33 + 4 + beside
    beside *= 6
    assert (need.state, need.needed.value) == ("beyond", 8000 * 35 + 4 * 3 + beside)
    assert need.clusters is not None
    assert need.clusters.value == 2
    cards = (256_000 - 8000 * 3 - 4 * 3 - beside) // 8000
    assert f"use instance types of at most {cards} EFA interfaces" in (need.advice or "")
    assert "divide the nodes among 2 clusters" in (need.advice or "")


# --- money and time -----------------------------------------------------------------------------


def test_a_price_that_is_not_known_is_no_zero() -> None:
    """A total that leaves a pool out says which."""
    odcr = pool_document(name="odcr", zones=["us-east-1a"], purchase=OTHER_ODCR, nodes={"max": 2})
    block = pool_document(name="block", zones=["us-east-1a"], purchase=CAPACITY_BLOCK)
    network = {"vpc_cidr": "10.0.0.0/16", "zones": ["us-east-1a", "us-east-1b"]}
    found = needs(odcr, block, region="us-east-1", network=network)
    system, total = values(found, "system")["usd_per_hour"] or 0, found.totals["usd_per_hour"]
    assert values(found, "odcr")["usd_per_hour"] == pytest.approx(2 * 55.04)
    assert values(found, "block")["usd_per_hour"] is None
    assert total.without == ("block",)
    assert system > 0
    assert total.value == pytest.approx(2 * 55.04 + system)
    assert found.totals["usd_per_month"].value == pytest.approx((2 * 55.04 + system) * 730)
    assert "2026-07-20" in found.pools[1].figures["usd_per_hour"].formula


# --- sums ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=10)
@given(
    nodes=st.integers(1, 90),
    name=st.sampled_from(["trn1.32xlarge", "p5.48xlarge", "g6e.48xlarge", "m7g.4xlarge"]),
)
def test_a_pool_of_twice_the_nodes_needs_twice_of_everything(nodes: int, name: str) -> None:
    def of(count: int) -> ClusterNeeds:
        return needs(pool_document(instance_types=[name], nodes={"max": count}))

    once, twice = of(nodes), of(2 * nodes)

    before, after = values(once, "train"), values(twice, "train")
    assert {key: None if value is None else 2 * value for key, value in before.items()} == after
    rest = values(once, "system")
    for key, figure in twice.totals.items():
        if not figure.without and key != "address_usage":
            assert figure.value == pytest.approx((after[key] or 0) + (rest[key] or 0)), key
    grown = (twice.totals["address_usage"].value or 0) - (once.totals["address_usage"].value or 0)
    assert grown == before["address_usage"]


def test_every_number_says_what_it_is_the_sum_of() -> None:
    found = [*all_figures(needs(HYPERPOD_POOL, pool_document(purchase=CAPACITY_BLOCK)))]

    assert [figure.id for figure in found if not figure.formula] == []
    assert len({figure.id for figure in found}) == len(found)


def test_the_shards_of_a_pool_are_one_row() -> None:
    found = needs(fleet(3, 4), karpenter=KARPENTER)
    assert [pool.pool for pool in found.pools] == ["system", "train"]
    assert values(found, "train")["accelerators"] == 3 * 4 * 8
    assert found.pools[1].figures["nodes"].formula == "4 shards x 3 nodes at most"
    # The picture has them as one pool too.
    part = found.topology.pools[1]
    assert (part.nodes_min, part.nodes_max, part.shards, part.nodes_of_shard) == (12, 12, 4, 3)
    assert part.reservation == "fleet=p5"
