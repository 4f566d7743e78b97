"""Standings: the quotas that a cluster needs, with their values and usage in the account."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale import catalog
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import PoolPlan, QuotaNeed
from ultrascale.preflight import quota_counts
from ultrascale.preflight.model import Context
from ultrascale.preflight.quota_values import (
    NOT_THERE,
    QuotaValue,
    quota_by_code,
    quotas_by_name,
    usage,
)

if TYPE_CHECKING:
    from ultrascale.account import Account

CLUSTER = "eks:DescribeCluster"
# Quotas of one cluster or resource, which nothing uses yet, and rates, which are peaks.
_OF_ONE = re.compile(
    r" per (?:VPC|cluster|managed node group|security group|.* cluster)$|^Network Address Usage$"
    r"|^Rate of "
)

# The field of an instance type with the code of the quota that counts its reservations.
_OF_RESERVATIONS = {"odcr": "on_demand_quota_code", "capacity-block": "capacity_block_quota_code"}


class Standing(Frozen):
    """A quota that a cluster needs, with its value and usage in the account."""

    need: QuotaNeed  # The cluster's need
    quota: QuotaValue | None = None  # The account's quota; None where it is not known
    shared: bool  # Whether all resources of the account in the Region count in it
    used: float | None = None  # Its usage; None where it is not known, or does not matter
    doubt: str = ""  # Reason that the usage may be higher than ``used``; empty where it is certain
    # The part of ``used`` that may be the cluster's own; None without such a part.
    own: str | None = None
    error: UnansweredError | None = None  # Error of the request for it; None where AWS answered

    @property
    def target(self) -> int | None:
        """Smallest value that suffices for the account; None if it is not known."""
        needed = self.need.needed.value
        if needed is None:
            return None
        others = self.used or 0 if self.own is None else 0
        return math.ceil(needed + others)

    @property
    def short(self) -> bool:
        """Whether the quota is too low, as far as values are known."""
        return self.quota is not None and self.target is not None and self.target > self.quota.value

    @property
    def crowded(self) -> bool:
        """Whether the quota is too low if none of the usage belongs to the cluster."""
        needed = self.need.needed.value or 0
        return self.quota is not None and (self.used or 0) + needed > self.quota.value


def standings(context: Context) -> Iterator[Standing]:
    """Yield the standing of each quota of the plan in the plan's order.

    A missing answer about one quota does not affect the others.
    """
    account, plan = context.account, context.plan
    valued = list(_standings_with_value(account, context.needs.quotas))
    measured = _metric_usage(account, valued)
    reserved = _reservation_quotas(plan.all_pools)
    deployed: bool | UnansweredError | None = None
    for without_usage in valued:
        standing = _with_usage(account, without_usage, measured)
        if standing.need.code in reserved:
            standing = replace(standing, own="reservations of the file among it")
        elif standing.short and standing.used:
            if deployed is None:
                deployed = _is_deployed(account, plan.name)
            standing = _with_own_usage(standing, deployed)
        yield standing


def _standings_with_value(account: "Account", needs: tuple[QuotaNeed, ...]) -> Iterator[Standing]:
    """Yield the standing of each quota with its value, looked up by code or by name."""
    coded = {need.name: _value_by_code(account, need) for need in needs}
    services: dict[str, list[str]] = {}
    for need in needs:
        if coded[need.name] is None and need.service is not None:
            services.setdefault(need.service, []).append(need.name)
    named = {
        service: _values_by_name(account, service, names) for service, names in services.items()
    }
    for need in needs:
        found = coded[need.name]
        if found is None and need.service is not None:
            listed = named[need.service]
            found = listed if isinstance(listed, UnansweredError) else listed.get(need.name)
        standing = Standing(need=need, shared=_OF_ONE.search(need.name) is None)
        if isinstance(found, UnansweredError):
            yield replace(standing, error=found)
        else:
            yield replace(standing, quota=found)


def _value_by_code(account: "Account", need: QuotaNeed) -> QuotaValue | UnansweredError | None:
    if need.code is None or need.service is None:
        return None
    try:
        return quota_by_code(account, need.service, need.code)
    except UnansweredError as error:
        return None if error.code == NOT_THERE else error


def _values_by_name(
    account: "Account", service: str, names: list[str]
) -> Mapping[str, QuotaValue] | UnansweredError:
    try:
        return quotas_by_name(account, service, names)
    except UnansweredError as error:
        return error


def _metric_usage(
    account: "Account", found: list[Standing]
) -> Mapping[str, float | None] | UnansweredError:
    metrics = {
        each.quota.code: each.quota.metric
        for each in found
        if each.shared and each.quota is not None and each.quota.metric is not None
    }
    try:
        return usage(account, metrics, datetime.now(UTC)) if metrics else {}
    except UnansweredError as error:
        return error


def _with_usage(
    account: "Account", standing: Standing, measured: Mapping[str, float | None] | UnansweredError
) -> Standing:
    """Return the standing with its usage, taken from CloudWatch or from a count."""
    quota = standing.quota
    if quota is None or not standing.shared:
        return standing
    if quota.metric is not None:
        if isinstance(measured, UnansweredError):
            return replace(standing, error=measured)
        used = measured[quota.code]
        doubt = "CloudWatch cannot say what is in use" if used is None else ""
        return replace(standing, used=used, doubt=doubt)
    try:
        count = quota_counts.count(account, quota)
    except UnansweredError as error:
        return replace(standing, error=error)
    if count is None:
        return replace(standing, doubt="AWS reports no usage of it")
    doubt = "and more, which is not counted" if count.more else ""
    return replace(standing, used=count.value, doubt=doubt)


def _reservation_quotas(pools: Sequence[PoolPlan]) -> frozenset[str]:
    """Return the codes of quotas on reservations that are already bought."""
    codes: set[str] = set()
    for pool in pools:
        fact = _OF_RESERVATIONS.get(pool.purchase)
        specs = map(catalog.lookup, pool.instance_types if fact is not None else ())
        codes |= {getattr(spec, fact) for spec in specs if fact is not None and spec.knows(fact)}
    return frozenset(codes)


def _is_deployed(account: "Account", name: str) -> bool | UnansweredError:
    try:
        return bool(account.ask(account.client("eks").describe_cluster, name=name))
    except UnansweredError as error:
        return False if error.code == "ResourceNotFoundException" else error


def _with_own_usage(standing: Standing, deployed: bool | UnansweredError) -> Standing:
    """Return a standing with the usage that may belong to the cluster itself."""
    if deployed is False:
        return standing
    by_itself = replace(standing, own="this cluster among it")
    if isinstance(deployed, UnansweredError):
        # The result depends on whether the cluster exists.
        return standing if by_itself.short else replace(by_itself, error=deployed)
    return by_itself
