"""Quotas beyond EC2's own, and the requests that raise them."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.needs import KARPENTER, POD_RANGES, codes, needs, planned, quota
from tests.support.pools import HYPERPOD_POOL, LUSTRE, ODCR, make_document, pool_document
from ultrascale.catalog import matrix, quotas, vpc
from ultrascale.plan.model import AgreedLimit, Figure, NeedState, QuotaNeed
from ultrascale.plan.needs.pools import interfaces_of
from ultrascale.plan.needs.quotas import advised
from ultrascale.plan.needs.report import plan_needs

FLEET = {"option": "odcr", "reservation_tags": {"fleet": "p5"}}


def fleet(nodes: int, **changes: Any) -> dict[str, Any]:
    return pool_document(
        purchase=FLEET, provisioner="karpenter", role="reserved", nodes={"static": nodes}, **changes
    )


def test_151_p5_nodes_fill_the_network_interfaces_of_a_region() -> None:
    (pool,) = (each for each in planned(pool_document(purchase=ODCR)).pools)

    assert (quotas.quota("network-interfaces").default or 0) // interfaces_of(pool) == 151


def test_the_interfaces_of_endpoints_and_gateways_take_the_place_of_nodes() -> None:
    """Alone, 151 nodes would be within 5,000, and the last ones would not launch."""
    found = needs(fleet(151), karpenter=KARPENTER, network=POD_RANGES)

    need = quota(found, quotas.quota("network-interfaces").code)
    assert (found.totals["network_interfaces"].value or 0) < 5_000
    assert need.state == "ask"
    assert "30 endpoints in zones + 2 NAT gateways" in need.needed.formula


def test_the_load_balancer_of_a_front_needs_a_rule_for_each_range() -> None:
    """A security group has 60 rules before AWS raises it: the stack would fail on the 61st."""
    ranges = [f"10.{number}.0.0/16" for number in range(100, 161)]
    front = {"exposure": "internal", "allowed_cidrs": ranges}
    pool = pool_document(purchase=ODCR)
    found, without = (
        needs(pool, serving={"front": each}) for each in (front, {"exposure": "cluster"})
    )
    rules = quota(found, quotas.quota("security-group-rules").code)
    assert (rules.needed.value, rules.default, rules.state) == (61, 60, "ask")
    for name in ("load-balancers", "target-groups"):
        assert quota(found, quotas.quota(name).code).needed.value == 1
        assert quotas.quota(name).code not in codes(without)


def test_file_systems_need_storage_of_fsx_by_its_own_codes() -> None:
    sizes = (("one", 96_000), ("two", 7_200))
    lustre = [LUSTRE | {"name": name, "capacity_gib": gib} for name, gib in sizes]
    found = needs(pool_document(purchase=ODCR), storage={"lustre": lustre})
    codes_of = [quotas.quota(name).code for name in ("lustre-storage", "lustre-file-systems")]
    space, count = (quota(found, code) for code in codes_of)
    assert (space.needed.value, space.default, space.state) == (103_200, 100_800, "ask")
    assert space.needed.formula == "96,000 GiB of one + 7,200 GiB of two"
    assert (count.needed.value, count.state) == (2, "within")
    assert space.service == count.service == "fsx"
    assert codes_of[0] not in codes(needs(pool_document(purchase=ODCR)))


def test_the_rates_of_ecr_are_those_at_which_a_fleet_pulls_in_five_minutes() -> None:
    found = needs(fleet(996), karpenter=KARPENTER, network=POD_RANGES)
    rates: dict[quotas.QuotaKey, int]
    rates = {"image-tokens": 1, "image-manifests": 1, "image-layers": 40}
    for name, requests in rates.items():
        rate = quota(found, quotas.quota(name).code).needed.value
        assert rate == pytest.approx(1_000 * requests / 300)


def test_hyperpod_is_held_against_quotas_of_the_whole_cluster_too() -> None:
    """No page states their defaults: they are looked up, and never assumed to suffice."""
    found = needs(HYPERPOD_POOL)

    for each in (quotas.quota("hyperpod-instances"), quotas.quota("all-hyperpod-instances")):
        need = quota(found, each.code)
        assert (need.needed.value, need.default, need.state) == (8, None, "unknown")
        assert need.advice == "look its value up in Service Quotas"


def test_access_entries_are_those_of_administrators_and_node_roles() -> None:
    roles = [f"arn:aws:iam::111122223333:role/Admin{number}" for number in range(5)]
    kubernetes = make_document()["kubernetes"] | {"admins": roles}
    found = needs(pool_document(purchase=ODCR, nodes={"max": 10}), kubernetes=kubernetes)
    assert quota(found, quotas.quota("access-entries").code).needed.value == 5 + 2
    # What is to be asked for is said with its number.
    vcpus = quota(found, "L-417A185B")
    assert (vcpus.advice, vcpus.service) == ("request 1,920 in Service Quotas", "ec2")
    # A NAT gateway of each zone takes an elastic address: there are five at first.
    addresses = quota(found, quotas.quota("elastic-addresses").code)
    assert (addresses.needed.value, addresses.default) == (3, 5)


# --- beyond what AWS publishes ------------------------------------------------------------------


def beyond(known: quotas.Quota, value: float, state: NeedState = "beyond") -> QuotaNeed:
    return QuotaNeed(
        code=known.code or None,
        service=known.service,
        name=known.name,
        needed=Figure(id="quota", value=value, unit=known.unit, formula="of a test"),
        default=known.default,
        most=known.most,
        state=state,
    )


@pytest.mark.parametrize(
    ("value", "clusters"), [(256_001, 2), (511_820, 2), (511_821, 3), (1_384_348, 6)]
)
def test_so_many_clusters_would_hold_the_nodes(value: int, clusters: int) -> None:
    """Each has endpoints and gateways of its own, 180 units of them here."""
    plan = planned(pool_document(purchase=ODCR), network=POD_RANGES)

    need = advised(
        beyond(quotas.quota("network-address-usage"), value), plan.network, plan.all_pools
    )

    assert need.clusters is not None
    assert need.clusters.value == clusters
    assert f"divide the nodes among {clusters} clusters" in (need.advice or "")


@pytest.mark.parametrize(
    ("nodes", "efa", "advice"),
    [
        # (256,000 - 192 - 4 x 3 - 12,000 x 3) / 12,000
        (12_000, "all", "use instance types of at most 18 EFA interfaces, or divide"),
        (
            86_000,
            "all",
            "write efa: none for every pool (172,204 with one network interface each), which "
            "leaves jobs of several nodes to TCP, or divide",
        ),
        (70_000, "none", "agreed_limits, or divide the nodes among"),
    ],
)
def test_fewer_network_cards_are_advised_where_they_would_do(
    nodes: int, efa: str, advice: str
) -> None:
    plan = planned(fleet(nodes, efa=efa), karpenter=KARPENTER, network=POD_RANGES)

    need = advised(
        beyond(quotas.quota("network-address-usage"), 1_000_000), plan.network, plan.all_pools
    )

    assert advice in (need.advice or "")


@pytest.mark.parametrize(
    "known",
    [each for each in quotas.service_quotas().values() if each.most is not None],
    ids=lambda known: known.code,
)
def test_every_quota_with_an_end_says_what_is_beyond_it(known: quotas.Quota) -> None:
    assert known.most is not None
    plan = planned(pool_document(purchase=ODCR))

    advice = advised(beyond(known, known.most + 1), plan.network, plan.all_pools).advice

    assert advice is not None
    if known.most == known.default:
        assert advice.startswith("it cannot be raised: divide the nodes among")
    else:
        assert advice.startswith(f"ask your account team for {known.most + 1:,} in writing")
    # The file has a key for the one.
    for words in ("EFA", "agreed_limits"):
        assert (words in advice) == (known is quotas.quota("network-address-usage"))


@pytest.mark.parametrize(
    "known",
    [each for each in quotas.service_quotas().values() if each.most is not None],
    ids=lambda known: known.code,
)
def test_what_aws_has_agreed_to_counts_for_every_quota_with_an_end(known: quotas.Quota) -> None:
    """The file states one of them today: the others must not be forgotten by a new key."""
    plan = planned(fleet(8_000), karpenter=KARPENTER, network=POD_RANGES)
    needed = quota(plan_needs(plan), known.code)
    value = int(needed.needed.value or 0)

    def state(granted: int) -> str:
        limit = AgreedLimit(code=known.code, value=granted, reference="case 17")
        return quota(plan_needs(replace(plan, agreed_limits=(limit,))), known.code).state

    assert state(value) == ("within" if needed.state == "within" else "agreed")
    assert state(value - 1) == needed.state


def test_limits_that_rules_name_are_those_of_the_quotas() -> None:
    assert quotas.quota("node-groups").default == matrix.MANAGED_NODE_GROUPS
    assert quotas.quota("nodes-of-a-group").default == matrix.NODES_PER_MANAGED_NODE_GROUP
    assert quotas.quota("ipv4-ranges").most == vpc.MOST_IPV4_RANGES
