"""The account's default key of EBS volumes, and who may launch nodes with it.

Volumes of nodes are encrypted with the account's default key. A customer-managed key has to let
everybody who launches instances use it: without that, instances end right after their launch
(`Client.InternalError`), while a Capacity Block is paid for.

Sources:
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html
    https://karpenter.sh/docs/troubleshooting/
    https://docs.aws.amazon.com/eks/latest/userguide/auto-kms.html
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ultrascale.documents import Json, look_up, mapping, sequence, text
from ultrascale.errors import UnansweredError
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.model import Check, Context, Finding, Issue, State, finding, unknown

if TYPE_CHECKING:
    from mypy_boto3_kms.type_defs import GrantListEntryTypeDef as Grant
    from mypy_boto3_kms.type_defs import KeyMetadataTypeDef as Key

_NAME = "volume-key"
_DEFAULT, _KEY = "ec2:GetEbsEncryptionByDefault", "ec2:GetEbsDefaultKmsKeyId"
_DESCRIBE, _POLICY, _GRANTS = "kms:DescribeKey", "kms:GetKeyPolicy", "kms:ListGrants"
# What an instance needs of the key of its volumes, and a grant in the words of KMS.
_USES = {
    "kms:Decrypt": "Decrypt",
    "kms:GenerateDataKeyWithoutPlaintext": "GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom": "ReEncryptFrom",
    "kms:ReEncryptTo": "ReEncryptTo",
    "kms:DescribeKey": "DescribeKey",
    "kms:CreateGrant": "CreateGrant",
}
_FOR_RESOURCES, _VIA, _CALLER = (
    "kms:grantisforawsresource",
    "kms:viaservice",
    "kms:calleraccount",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A principal that launches instances.

    Attributes:
        name: Its name, for the user.
        pattern: Its ARN; a star stands for what CloudFormation appends to the name.
        certain: Whether AWS states that it needs the key.
    """

    name: str
    pattern: str
    certain: bool = True


def launchers(plan: ClusterPlan, account: str) -> tuple[Launcher, ...]:
    """Return who launches instances of a cluster, or attaches volumes to them."""
    roles = f"arn:{plan.partition}:iam::{account}:role"
    linked = f"{roles}/aws-service-role"
    found: list[Launcher] = []
    if any(pool.is_node_group for pool in plan.all_pools):
        role = "AWSServiceRoleForAutoScaling"
        found.append(Launcher(name=role, pattern=f"{linked}/autoscaling.amazonaws.com/{role}"))
    of_karpenter = [pool for pool in plan.all_pools if pool.is_karpenter]
    if of_karpenter:
        found.append(
            Launcher(name="Karpenter's controller", pattern=f"{roles}/{plan.name}-karpenter-*")
        )
    if any(pool.purchase == "spot" for pool in of_karpenter):
        role = "AWSServiceRoleForEC2Spot"
        pattern = f"{linked}/spot.amazonaws.com/{role}"
        found.append(Launcher(name=role, pattern=pattern, certain=False))
    if plan.control_plane.auto_mode:
        found.append(
            Launcher(name="EKS Auto Mode's cluster role", pattern=f"{roles}/{plan.name}-cluster-*")
        )
    return tuple(found)


def _run(context: Context) -> Iterator[Finding]:
    who = launchers(context.plan, context.account.id)
    if not who:
        return
    ec2, kms = context.account.client("ec2"), context.account.client("kms")
    by_default = context.account.ask(ec2.get_ebs_encryption_by_default)["EbsEncryptionByDefault"]
    name = context.account.ask(ec2.get_ebs_default_kms_key_id)["KmsKeyId"]
    subject = f"{name}, the default key of volumes"
    fine = f"encryption by default is {'on' if by_default else 'off'}; AWS manages the key"
    if name == "alias/aws/ebs":
        yield finding(_NAME, subject, (), fine=fine)
        return
    key = context.account.ask(kms.describe_key, KeyId=name)["KeyMetadata"]
    if key.get("KeyManager") == "AWS":
        yield finding(_NAME, subject, (), fine=fine)
        return
    try:
        policy = context.account.ask(kms.get_key_policy, KeyId=key["KeyId"], PolicyName="default")
        grants = context.account.ask_all(
            kms.list_grants, lambda page: page["Grants"], KeyId=key["KeyId"]
        )
    except UnansweredError as error:
        if key.get("AWSAccountId") == context.account.id:
            yield unknown(_NAME, subject, error)
            return
        yield finding(_NAME, subject, [*_state(key), _foreign(key, who)], fine="")
        return
    document = json.loads(policy["Policy"])
    wrong = [
        *_state(key),
        *(issue for each in who for issue in _access(context, key, each, document, grants)),
    ]
    names = ", ".join(each.name for each in who)
    yield finding(_NAME, subject, wrong, fine=f"a key of the account that {names} may use")


def _state(key: "Key") -> Iterator[Issue]:
    state, spec = key.get("KeyState"), key.get("KeySpec", "SYMMETRIC_DEFAULT")
    if state not in ("Enabled", None):
        fix = f"`aws kms enable-key --key-id {key['KeyId']}`, or make another key the default"
        yield Issue(state="fail", evidence=f"KeyState is {state}: no volume opens", fix=fix)
    if spec != "SYMMETRIC_DEFAULT":
        evidence = f"KeySpec is {spec}: EBS takes symmetric keys alone"
        yield Issue(state="fail", evidence=evidence, fix="make a symmetric key the default")


def _foreign(key: "Key", who: Sequence[Launcher]) -> Issue:
    names = ", ".join(each.name for each in who)
    return Issue(
        state="warn",
        evidence=f"a key of account {key.get('AWSAccountId')}, whose policy cannot be read here; "
        f"without it every node ends at its launch: it has to let {names} use it",
        fix="ask the key's owner; for Auto Scaling make a grant from this account: `aws kms "
        f"create-grant --key-id {key.get('Arn', key['KeyId'])} --grantee-principal ROLE "
        "--operations Encrypt Decrypt ReEncryptFrom ReEncryptTo GenerateDataKey "
        "GenerateDataKeyWithoutPlaintext DescribeKey CreateGrant`",
    )


def _access(
    context: Context, key: "Key", who: Launcher, policy: Json, grants: "Sequence[Grant]"
) -> Iterator[Issue]:
    missing, unclear = _missing(context, who, policy)
    for grant in grants:
        if fnmatchcase(grant.get("GranteePrincipal", ""), who.pattern):
            operations = set(grant.get("Operations", ()))
            missing = {action for action in missing if _USES[action] not in operations}
    if not missing:
        return
    state: State = "fail" if who.certain and not unclear else "warn"
    doubt = ", unless a statement with other conditions allows it" if unclear else ""
    yield Issue(
        state=state,
        evidence=f"{who.name} may not use the key ({', '.join(sorted(missing))}){doubt}: each of "
        "its nodes ends at its launch",
        fix=f"allow {who.pattern} in the policy of {key['KeyId']}: kms:Encrypt, kms:Decrypt, "
        "kms:ReEncrypt*, kms:GenerateDataKey*, kms:DescribeKey, and kms:CreateGrant with "
        "kms:GrantIsForAWSResource true; or, for all who launch by EC2, principal * with "
        f"kms:ViaService ec2.{context.plan.region}.amazonaws.com and kms:CallerAccount "
        f"{context.account.id}",
    )


def _missing(context: Context, who: Launcher, policy: Json) -> tuple[set[str], bool]:
    """Return the uses that a key's policy does not allow, and whether a statement is unclear."""
    missing, unclear = set(_USES), False
    denied: set[str] = set()
    for statement in _listed(look_up(policy, "Statement")):
        if not _names(statement, who):
            continue
        actions = {use for use in _USES if _has(statement, use)}
        holds = _holds(context, statement)
        if text(statement, "Effect") == "Deny":
            denied |= actions if holds else set()
            unclear = unclear or (holds is None and bool(actions))
        elif holds:
            missing -= actions
        elif holds is None and actions & missing:
            unclear = True
    return missing | denied, unclear


def _names(statement: Json, who: Launcher) -> bool:
    """Return whether a statement names a principal; the whole account does not reach it.

    A statement for the account leaves it to IAM, and neither the service-linked roles nor ours
    have policies for keys.
    """
    principal = look_up(statement, "Principal")
    named = [principal] if principal == "*" else _listed(look_up(principal, "AWS"))
    return any(
        value == "*" or (isinstance(value, str) and fnmatchcase(value, who.pattern))
        for value in named
    )


def _has(statement: Json, use: str) -> bool:
    return any(
        isinstance(action, str) and fnmatchcase(use.lower(), action.lower())
        for action in _listed(look_up(statement, "Action"))
    )


def _holds(context: Context, statement: Json) -> bool | None:
    """Return whether the conditions of a statement hold for a launch; None where it is unclear."""
    for tests in mapping(statement, "Condition").values():
        for key, wanted in mapping(tests).items():
            values = {str(value).lower() for value in _listed(wanted)}
            name = key.lower()
            if name == _FOR_RESOURCES and values == {"true"}:
                continue
            if name == _VIA:
                if f"ec2.{context.plan.region}.amazonaws.com" in values:
                    continue
                return False
            if name == _CALLER:
                if context.account.id in values:
                    continue
                return False
            return None
    return True


def _listed(value: Json) -> Sequence[Json]:
    """Return a value of a policy as a list: one may stand by itself."""
    if value is None:
        return ()
    if isinstance(value, str | Mapping):
        return (value,)
    return sequence({"list": value}, "list") or (value,)


VOLUME_KEY = Check(
    name=_NAME,
    title="key of the nodes' volumes",
    actions=(_DEFAULT, _KEY, _DESCRIBE, _POLICY, _GRANTS),
    run=_run,
    resources={
        action: "arn:{partition}:kms:{region}:*:key/*" for action in (_DESCRIBE, _POLICY, _GRANTS)
    },
)
