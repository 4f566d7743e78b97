"""The user's own KMS keys: state, policy and grants, for every principal that uses them.

Sources:
    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying-external-accounts.html
    https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyPolicy.html (own account alone)
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.parts.keys.accesses import key_policies
from ultrascale.parts.keys.model import KeyAccess, KeyPolicyPlan
from ultrascale.parts.keys.policy import KeyPolicy, granted, needed
from ultrascale.parts.keys.volume_key import VOLUME_KEY
from ultrascale.preflight.key_state import key_state_issues
from ultrascale.preflight.model import Check, Context, Finding, Issue, State, finding, unknown

if TYPE_CHECKING:
    from mypy_boto3_kms.type_defs import GrantListEntryTypeDef as Grant
    from mypy_boto3_kms.type_defs import KeyMetadataTypeDef as Key

_NAME = "keys"
_DESCRIBE, _POLICY, _GRANTS = "kms:DescribeKey", "kms:GetKeyPolicy", "kms:ListGrants"
_NOT_THERE = "NotFoundException"
_STATEMENTS = "`ultrascale plan FILE keys --json` prints the statements that it needs"


def _run(context: Context) -> Iterator[Finding]:
    for plan in key_policies(context.plan, context.account.id):
        yield _judge(context, plan)


def _judge(context: Context, plan: KeyPolicyPlan) -> Finding:
    subject = f"{plan.arn}, the key of {' and '.join(plan.uses)}"
    client = context.account.client("kms")
    try:
        key = context.account.ask(client.describe_key, KeyId=plan.arn)["KeyMetadata"]
    except UnansweredError as error:
        if error.code == _NOT_THERE:
            evidence = f"account {plan.owner} has no such key in {context.plan.region}"
            missing = Issue(state="fail", evidence=evidence, fix=_name_another(plan))
            return finding(_NAME, subject, [missing], fine="")
        if plan.foreign and error.denied:
            # The role that deploys need not be let in; the users have to be.
            return finding(_NAME, subject, _unreadable(plan, None), fine="")
        return unknown(_NAME, subject, error)
    try:
        grants = context.account.ask_all(
            client.list_grants, lambda page: page["Grants"], KeyId=plan.arn
        )
    except UnansweredError as error:
        if not plan.foreign:
            return unknown(_NAME, subject, error)
        grants = None
    states = [*key_state_issues(key), *_managed(key, plan)]
    if plan.foreign:
        return finding(_NAME, subject, [*states, *_unreadable(plan, grants)], fine="")
    try:
        answer = context.account.ask(client.get_key_policy, KeyId=plan.arn, PolicyName="default")
    except UnansweredError as error:
        return unknown(_NAME, subject, error)
    policy = KeyPolicy(
        json.loads(answer["Policy"]), grants or (), account=context.account.id, delegates=True
    )
    wrong = [
        issue
        for access in plan.accesses
        for issue in policy.issues(access, fix=_allow(access, plan))
    ]
    names = ", ".join(dict.fromkeys(access.who for access in plan.accesses)) or "nobody"
    return finding(_NAME, subject, [*states, *wrong], fine=f"enabled; used by {names}")


def _managed(key: "Key", plan: KeyPolicyPlan) -> Iterator[Issue]:
    if key.get("KeyManager") == "AWS":
        evidence = "AWS manages it: its policy lets one service in, and cannot be changed"
        yield Issue(state="fail", evidence=evidence, fix=_name_another(plan))


def _name_another(plan: KeyPolicyPlan) -> str:
    places = ("storage.buckets" if use == "buckets" else f"keys.{use}" for use in plan.uses)
    return f"name another key in {', '.join(places)}"


def _allow(access: KeyAccess, plan: KeyPolicyPlan) -> str:
    return f"add statement {access.sid} to the policy of {plan.arn}: {_STATEMENTS}"


def _unreadable(plan: KeyPolicyPlan, grants: "list[Grant] | None") -> Iterator[Issue]:
    """Yield the checks left to the owner of another account's key, and the missing grants."""
    linked = [access for access in plan.accesses if access.kind == "linked" and access.grants]
    for access, grant in zip(linked, plan.grants, strict=True):
        if grants is not None and {*needed(access)} <= granted(access, grants):
            continue
        # Grants that cannot be listed may exist.
        state: State = "fail" if grants is not None and access.certain else "warn"
        lack = "there is no grant" if grants is not None else "grants cannot be listed"
        yield Issue(
            state=state,
            evidence=f"{lack} for {access.who}, which the policy of a key of account {plan.owner} "
            f"does not reach: {access.does}",
            fix=f"run in this account: `{grant.command}`",
        )
    others = [access for access in plan.accesses if access not in linked]
    if others:
        names = ", ".join(dict.fromkeys(other.who for other in others))
        yield Issue(
            state="warn",
            evidence=f"the policy of a key of account {plan.owner} cannot be read from here; it "
            f"has to let {names} in",
            fix=f"send its owner what it needs: {_STATEMENTS}",
        )


KEYS = Check(
    name=_NAME,
    title="the cluster's own keys are enabled, and let in who uses them",
    actions=(_DESCRIBE, _POLICY, _GRANTS),
    run=_run,
    resources={
        action: "arn:{partition}:kms:{region}:*:key/*" for action in (_DESCRIBE, _POLICY, _GRANTS)
    },
)
CHECKS = (VOLUME_KEY, KEYS)
