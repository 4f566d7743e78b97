"""Contexts of preflight checks: a plan, a time and an account that answers as told."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from tests.support.account import fake_account
from tests.support.fake_aws import FakeAws, Told
from tests.support.folders import ROOT
from tests.support.pools import SYSTEM_POOL, as_text, make_document
from ultrascale import config, plan
from ultrascale.findings import Finding
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.model import Check, Context

NOW = datetime(2026, 11, 21, tzinfo=UTC)
KARPENTER = {"version": "1.15.2"}


def pools_plan(*pools: dict[str, Any], **changes: Any) -> ClusterPlan:
    """Return the plan of a cluster of ``pools`` beside a system pool that is large enough."""
    system = SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}
    document = make_document(pools=[system, *pools], **changes)
    if any(pool["provisioner"] == "karpenter" for pool in pools):
        document["karpenter"] = KARPENTER
    return _planned(as_text(document))


@cache
def _planned(text: str) -> ClusterPlan:
    """Plans are frozen: tests may share one."""
    return plan_cluster(config.loads(text))


@cache
def file_plan(name: str) -> ClusterPlan:
    """Return the plan of one of the cluster files."""
    return plan.load(ROOT / "clusters" / f"{name}.yaml")


def make_context(
    cluster: ClusterPlan, answers: Mapping[str, Told] | None = None, *, at: datetime = NOW
) -> tuple[Context, FakeAws]:
    """Return what a check looks at, and what notes its questions."""
    account, aws = fake_account(answers, region=cluster.region)
    return Context(plan=cluster, needs=plan_needs(cluster), account=account, at=at), aws


def found(
    check: Check,
    cluster: ClusterPlan,
    answers: Mapping[str, Told] | None = None,
    *,
    at: datetime = NOW,
) -> list[Finding]:
    """Return what ``check`` finds in an account with ``answers``, and that it asked no more.

    Each action that it took is one that its policy has, and none of them changes anything.
    """
    context, aws = make_context(cluster, answers, at=at)
    findings = [*check.run(context)]
    assert aws.actions <= set(check.actions)
    return findings


def states(findings: Iterable[Finding]) -> dict[str, str]:
    """Return the state of each subject."""
    return {each.subject: each.state for each in findings}


def zone(name: str, id: str, **changes: Any) -> dict[str, Any]:
    return {
        "ZoneName": name,
        "ZoneId": id,
        "ZoneType": "availability-zone",
        "OptInStatus": "opt-in-not-required",
        "State": "available",
        "GroupName": "us-east-1",
    } | changes
