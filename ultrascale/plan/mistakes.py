"""Mistakes of a cluster file that only its plan shows, with its warnings and notes."""

import sys
from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import regions
from ultrascale.errors import Severity
from ultrascale.plan import access, addons, platform, services, stack_sizes, stacks
from ultrascale.plan.jobs import claims
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.network import addresses, endpoints, existing_addresses, vpc
from ultrascale.plan.pools import karpenter, pool, scaling
from ultrascale.plan.rules import rule
from ultrascale.plan.upgrade import versions

Mistakes = Iterator[config.Mistake]

_WRONG = "not supported yet"


def all_mistakes(reading: config.Reading | config.StatedReading) -> list[config.Mistake]:
    """Return the mistakes of the file or the arguments, and of their plan.

    Mistakes that follow from a value that is not supported yet are left out.
    """
    return _without_followers([*reading.mistakes, *reading.judge(rule)])


def mistakes_of_plan(plan: ClusterPlan) -> Mistakes:
    """Yield the mistakes of a cluster that only its whole plan shows."""
    return rule.judge(plan, resting_on=ClusterPlan)


def remarks(reading: config.Reading, plan: ClusterPlan, severity: Severity) -> Mistakes:
    """Yield the warnings, or the notes, that the plan of a file adds to its own."""
    return rule.judge(reading.parts, plan, severity=severity)


def _without_followers(mistakes: list[config.Mistake]) -> list[config.Mistake]:
    """Return ``mistakes`` without those that vanish with an unsupported value.

    Mending them first would lead the user into the next refusal.
    """
    places = [mistake.at for mistake in mistakes if mistake.kind == "unsupported"]
    return [
        mistake
        for mistake in mistakes
        if mistake.kind == "unsupported"
        or not any(
            mistake.at[: len(place)] == place or mistake.rests_on == place for place in places
        )
    ]


@rule
def region_is_built(identity: config.Identity) -> Mistakes:
    """Yield a Region of China, where names of endpoints and of service principals differ."""
    if regions.lookup_region(identity.region).partition == "aws-cn":
        wrong = f"Regions of China are {_WRONG}"
        todo = "use a Region of another partition"
        yield config.refuse("region", wrong, todo, kind="unsupported")


@rule
def efa_is_built(file_system: config.Lustre) -> Mistakes:
    """Yield a file system over EFA."""
    if file_system.efa:
        yield config.refuse("efa", _WRONG, "use false", kind="unsupported")


rule.order(
    sys.modules[__name__],
    pool,
    stacks,
    scaling,
    platform,
    karpenter,
    stack_sizes,
    addresses,
    existing_addresses,
    addons,
    claims,
    access,
    endpoints,
    services,
    vpc,
    versions,
)
