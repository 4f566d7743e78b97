"""An AWS account that answers what a test tells it to, and what checks look at in it."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import lru_cache

import pytest

from tests.support.fake_aws import ARN, ID, REGION, FakeAws, Told
from tests.support.pools import as_text, make_document
from ultrascale import config
from ultrascale.account import Account
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.model import Context

AT = datetime(2026, 12, 1, tzinfo=UTC)


def fake_account(
    answers: Mapping[str, Told] | None = None, *, region: str = REGION
) -> tuple[Account, FakeAws]:
    """Return an account that gives ``answers``, and what notes the questions."""
    aws = FakeAws({} if answers is None else answers)
    return Account(id=ID, arn=ARN, region=region, session=aws), aws


def connects(
    patch: pytest.MonkeyPatch,
    answers: Mapping[str, Told],
    *,
    region: str = REGION,
    profiles: Collection[str | None] = (None,),
) -> FakeAws:
    """Let commands connect to an account that gives ``answers``, in its Region alone."""
    account, aws = fake_account(answers, region=region)

    def connect(asked: str, profile: str | None = None) -> Account:
        assert (asked, profile in profiles) == (region, True)
        return account

    patch.setattr("ultrascale.account.connect", connect)
    return aws


def make_context(answers: Mapping[str, Told], **changes: object) -> Context:
    """Return what checks look at: an account that gives ``answers``, and a cluster.

    Args:
        answers: As those of `FakeAws`.
        changes: Keys of a valid cluster file to replace, as `make_cluster` takes them.
    """
    plan, needs = _planned(as_text(make_document(**changes)))
    account, _ = fake_account(answers, region=plan.region)
    return Context(plan=plan, needs=needs, account=account, at=AT)


@lru_cache(maxsize=4)
def _planned(text: str) -> tuple[ClusterPlan, ClusterNeeds]:
    plan = plan_cluster(config.loads(text))
    return plan, plan_needs(plan)
