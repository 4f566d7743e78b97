"""The user's own KMS keys, and the default key of EBS volumes: state, policy and grants.

Sources:
    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying-external-accounts.html
    https://docs.aws.amazon.com/kms/latest/APIReference/API_GetKeyPolicy.html (own account alone)
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ultrascale.documents import parse_json
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, State, finding, unknown
from ultrascale.parts.keys import statements
from ultrascale.parts.keys.accesses import key_policies, volume_accesses
from ultrascale.parts.keys.model import KeyAccess, KeyPolicyPlan
from ultrascale.parts.keys.policy import KeyPolicy, granted, needed
from ultrascale.parts.keys.statements import PolicyTarget
from ultrascale.preflight.key_state import key_state_issues
from ultrascale.preflight.model import Check, Context

if TYPE_CHECKING:
    from mypy_boto3_kms.type_defs import GrantListEntryTypeDef as Grant
    from mypy_boto3_kms.type_defs import KeyMetadataTypeDef as Key


# --- The account's default key of EBS volumes, and the principals that may launch nodes with it
# Volumes of nodes are encrypted with the account's default key, unless `keys.volumes` names
# another. A customer-managed key has to let every principal that launches instances use it: without
# that, instances end right after their launch (`Client.InternalError`), while a Capacity Block is
# paid for.
#
# Sources:
#     https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html
#     https://karpenter.sh/docs/troubleshooting/
#     https://docs.aws.amazon.com/eks/latest/userguide/auto-kms.html


_VOLUME_KEY = "volume-key"
_DEFAULT, _KEY = "ec2:GetEbsEncryptionByDefault", "ec2:GetEbsDefaultKmsKeyId"
_DESCRIBE, _POLICY, _GRANTS = "kms:DescribeKey", "kms:GetKeyPolicy", "kms:ListGrants"


def _run_volume_key(context: Context) -> Iterator[Finding]:
    who = tuple(volume_accesses(PolicyTarget(context.plan, context.account.id)))
    if not who or context.plan.key("volumes") is not None:
        return
    ec2, client = context.account.client("ec2"), context.account.client("kms")
    by_default = context.account.ask(ec2.get_ebs_encryption_by_default)["EbsEncryptionByDefault"]
    name = context.account.ask(ec2.get_ebs_default_kms_key_id)["KmsKeyId"]
    subject = f"{name}, the default key of volumes"
    fine = f"encryption by default is {'on' if by_default else 'off'}; AWS manages the key"
    if name == "alias/aws/ebs":
        yield finding(_VOLUME_KEY, subject, (), fine=fine)
        return
    key = context.account.ask(client.describe_key, KeyId=name)["KeyMetadata"]
    if key.get("KeyManager") == "AWS":
        yield finding(_VOLUME_KEY, subject, (), fine=fine)
        return
    try:
        answer = context.account.ask(
            client.get_key_policy, KeyId=key["KeyId"], PolicyName="default"
        )
        grants = context.account.ask_all(
            client.list_grants, lambda page: page["Grants"], KeyId=key["KeyId"]
        )
    except UnansweredError as error:
        if key.get("AWSAccountId") == context.account.id:
            yield unknown(_VOLUME_KEY, subject, error)
            return
        yield finding(_VOLUME_KEY, subject, [*key_state_issues(key), _foreign(key, who)], fine="")
        return
    # No role has a policy for a key that the file does not name.
    policy = KeyPolicy(
        parse_json(answer["Policy"]), grants, account=context.account.id, delegates=False
    )
    wrong = [
        *key_state_issues(key),
        *(
            issue
            for access in who
            for issue in policy.issues(access, fix=_fix(context, key, access))
        ),
    ]
    names = ", ".join(access.who for access in who)
    yield finding(_VOLUME_KEY, subject, wrong, fine=f"a key of the account that {names} may use")


def _foreign(key: "Key", who: Sequence[KeyAccess]) -> Issue:
    names = ", ".join(access.who for access in who)
    return Issue(
        state="warn",
        evidence=f"a key of account {key.get('AWSAccountId')}, whose policy cannot be read here; "
        f"without it every node ends at its launch: it has to let {names} use it",
        fix="ask the key's owner; for Auto Scaling make a grant from this account: `aws kms "
        f"create-grant --key-id {key.get('Arn', key['KeyId'])} --grantee-principal ROLE "
        f"--operations {' '.join(statements.GRANT_OPERATIONS)}`",
    )


def _fix(context: Context, key: "Key", who: KeyAccess) -> str:
    return (
        f"allow {', '.join(who.principals)} in the policy of {key['KeyId']}: kms:Encrypt, "
        "kms:Decrypt, kms:ReEncrypt*, kms:GenerateDataKey*, kms:DescribeKey, and kms:CreateGrant "
        "with kms:GrantIsForAWSResource true; or, for all who launch by EC2, principal * with "
        f"kms:ViaService ec2.{context.plan.region}.amazonaws.com and kms:CallerAccount "
        f"{context.account.id}; or name a key in keys.volumes: `ultrascale plan FILE keys --json` "
        "prints what its policy needs"
    )


VOLUME_KEY = Check(
    name=_VOLUME_KEY,
    title="key of the nodes' volumes",
    actions=(_DEFAULT, _KEY, _DESCRIBE, _POLICY, _GRANTS),
    run=_run_volume_key,
    resources={
        action: "arn:{partition}:kms:{region}:*:key/*" for action in (_DESCRIBE, _POLICY, _GRANTS)
    },
)


# --- The user's own KMS keys: state, policy and grants, for every principal that uses them --------


_NAME = "keys"
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
        parse_json(answer["Policy"]), grants or (), account=context.account.id, delegates=True
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
