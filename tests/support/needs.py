"""Needs of clusters of a few pools."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale.catalog.prices import Price, PriceList, unit_of
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.model import ClusterNeeds, QuotaNeed, SubnetNeeds
from ultrascale.plan.needs.report import plan_needs

SYSTEM = SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}
KARPENTER = {"version": "1.15.2"}
POD_RANGES = {
    "vpc_cidr": "10.0.0.0/16",
    "zones": ["us-west-2a", "us-west-2b"],
    "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
}
# 8,000 nodes take more Network Address Usage than AWS publishes that it grants for a VPC.
FLEET_BEYOND_LIMITS: dict[str, Any] = {
    "pools": [
        SYSTEM,
        pool_document(
            purchase={"option": "odcr", "reservation_tags": {"fleet": "p5"}},
            provisioner="karpenter",
            role="reserved",
            nodes={"static": 4000},
            shards=2,
        ),
    ],
    "karpenter": KARPENTER,
    "network": POD_RANGES,
}


def planned(*pools: dict[str, Any], **changes: Any) -> ClusterPlan:
    """Return the plan of ``pools``, beside a system pool that is large enough."""
    return plan_cluster(make_cluster(pools=[SYSTEM, *pools], **changes))


def needs(
    *pools: dict[str, Any],
    at: datetime | None = None,
    price_list: PriceList | None = None,
    **changes: Any,
) -> ClusterNeeds:
    """Return what a cluster of ``pools`` needs, beside a system pool that is large enough."""
    return plan_needs(planned(*pools, **changes), at, price_list)


def price(
    region: str, service: str, item: str, value: float, valid_on: date = date(2026, 11, 1)
) -> Price:
    """Return a price in US dollars, by a contract."""
    return Price(
        region=region,
        service=service,
        item=item,
        unit=unit_of(service, item) or "hour",
        price=value,
        currency="USD",
        valid_on=valid_on,
        source="contract",
    )


def quota(found: ClusterNeeds, code: str | None) -> QuotaNeed:
    """Return what is needed of the quota of ``code``."""
    (need,) = (each for each in found.quotas if each.code == code)
    return need


def codes(found: ClusterNeeds) -> set[str | None]:
    """Return the codes of the quotas that something is needed of."""
    return {each.code for each in found.quotas}


def values(found: ClusterNeeds, pool: str) -> Mapping[str, float | None]:
    """Return the numbers of a pool."""
    (needed,) = (each for each in found.pools if each.pool == pool)
    return {key: figure.value for key, figure in needed.figures.items()}


def subnets(found: ClusterNeeds, kind: str, zone: str) -> SubnetNeeds:
    """Return the subnets of one kind in one zone."""
    (own,) = (each for each in found.subnets if (each.kind, each.zone) == (kind, zone))
    return own


def subnet_values(found: ClusterNeeds, kind: str, zone: str) -> Mapping[str, float | None]:
    """Return the numbers of the subnets of one kind in one zone."""
    figures = subnets(found, kind, zone).figures
    return {key: figure.value for key, figure in figures.items()}
