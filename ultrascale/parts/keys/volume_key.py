"""The account's default key of EBS volumes, and the principals that may launch nodes with it.

Volumes of nodes are encrypted with the account's default key, unless `keys.volumes` names another.
A customer-managed key has to let every principal that launches instances use it: without that,
instances end right after their launch (`Client.InternalError`), while a Capacity Block is paid for.

Sources:
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html
    https://karpenter.sh/docs/troubleshooting/
    https://docs.aws.amazon.com/eks/latest/userguide/auto-kms.html
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.parts.keys import kms
from ultrascale.parts.keys.accesses import volume_accesses
from ultrascale.parts.keys.model import KeyAccess
from ultrascale.parts.keys.policy import KeyPolicy
from ultrascale.parts.keys.statements import PolicyTarget
from ultrascale.preflight.key_state import key_state_issues
from ultrascale.preflight.model import Check, Context, Finding, Issue, finding, unknown

if TYPE_CHECKING:
    from mypy_boto3_kms.type_defs import KeyMetadataTypeDef as Key

_NAME = "volume-key"
_DEFAULT, _KEY = "ec2:GetEbsEncryptionByDefault", "ec2:GetEbsDefaultKmsKeyId"
_DESCRIBE, _POLICY, _GRANTS = "kms:DescribeKey", "kms:GetKeyPolicy", "kms:ListGrants"


def _run(context: Context) -> Iterator[Finding]:
    who = tuple(volume_accesses(PolicyTarget(context.plan, context.account.id)))
    if not who or context.plan.key("volumes") is not None:
        return
    ec2, client = context.account.client("ec2"), context.account.client("kms")
    by_default = context.account.ask(ec2.get_ebs_encryption_by_default)["EbsEncryptionByDefault"]
    name = context.account.ask(ec2.get_ebs_default_kms_key_id)["KmsKeyId"]
    subject = f"{name}, the default key of volumes"
    fine = f"encryption by default is {'on' if by_default else 'off'}; AWS manages the key"
    if name == "alias/aws/ebs":
        yield finding(_NAME, subject, (), fine=fine)
        return
    key = context.account.ask(client.describe_key, KeyId=name)["KeyMetadata"]
    if key.get("KeyManager") == "AWS":
        yield finding(_NAME, subject, (), fine=fine)
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
            yield unknown(_NAME, subject, error)
            return
        yield finding(_NAME, subject, [*key_state_issues(key), _foreign(key, who)], fine="")
        return
    # No role has a policy for a key that the file does not name.
    policy = KeyPolicy(
        json.loads(answer["Policy"]), grants, account=context.account.id, delegates=False
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
    yield finding(_NAME, subject, wrong, fine=f"a key of the account that {names} may use")


def _foreign(key: "Key", who: Sequence[KeyAccess]) -> Issue:
    names = ", ".join(access.who for access in who)
    return Issue(
        state="warn",
        evidence=f"a key of account {key.get('AWSAccountId')}, whose policy cannot be read here; "
        f"without it every node ends at its launch: it has to let {names} use it",
        fix="ask the key's owner; for Auto Scaling make a grant from this account: `aws kms "
        f"create-grant --key-id {key.get('Arn', key['KeyId'])} --grantee-principal ROLE "
        f"--operations {' '.join(kms.GRANT_OPERATIONS)}`",
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
    name=_NAME,
    title="key of the nodes' volumes",
    actions=(_DEFAULT, _KEY, _DESCRIBE, _POLICY, _GRANTS),
    run=_run,
    resources={
        action: "arn:{partition}:kms:{region}:*:key/*" for action in (_DESCRIBE, _POLICY, _GRANTS)
    },
)
