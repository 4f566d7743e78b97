"""Existing buckets: Region, owner, encryption and policy compared with the cluster file.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/example-walkthroughs-managing-access-example2.html
"""

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ultrascale.documents import Json, as_list, look_up, mapping, parse_json, text
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.plan.model import ExistingBucketPlan
from ultrascale.plan.needs.existing_storage import bucket_actions, bucket_statements
from ultrascale.preflight.model import Check, Context

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ServerSideEncryptionByDefaultTypeDef as Encryption

_NAME = "existing-buckets"
_LIST, _ENCRYPTION, _POLICY, _KEY = (
    "s3:ListBucket",
    "s3:GetEncryptionConfiguration",
    "s3:GetBucketPolicy",
    "kms:DescribeKey",
)
# Reason: the answer to HEAD has no body that says more.
_ABSENT = frozenset({"404", "NoSuchBucket"})
_REFUSED = frozenset({"403", "AccessDenied"})
_NO_POLICY = "NoSuchBucketPolicy"
_NO_ENCRYPTION = "ServerSideEncryptionConfigurationNotFoundError"
_AWS_KEY = "alias/aws/s3"
_KMS = frozenset({"aws:kms", "aws:kms:dsse"})


def _bucket_findings(context: Context) -> Iterator[Finding]:
    for plan in context.plan.storage.existing_buckets:
        subject = f"{plan.name} ({plan.bucket_name})"
        try:
            yield finding(
                _NAME, subject, _issues(context, plan), fine=_pass_evidence(context, plan)
            )
        except UnansweredError as error:
            yield unknown(_NAME, subject, error)


def _issues(context: Context, plan: ExistingBucketPlan) -> Iterator[Issue]:
    owner = plan.owner or context.account.id
    s3 = context.account.client("s3")
    try:
        answer = context.account.ask(
            s3.head_bucket, Bucket=plan.bucket_name, ExpectedBucketOwner=owner
        )
    except UnansweredError as error:
        if error.code in _ABSENT:
            evidence = "there is no such bucket"
            yield Issue(state="fail", evidence=evidence, fix="correct existing")
            return
        if not error.denied and error.code not in _REFUSED:
            raise
        yield Issue(
            state="warn",
            evidence=f"it is not account {owner}'s, or its policy lets nobody here see it "
            f"({error.reason})",
            fix="name its account in owner; " + _permission_advice(context, plan),
        )
        return
    region = answer.get("BucketRegion", context.plan.region)
    if region != context.plan.region:
        evidence = f"it lies in {region}, the cluster in {context.plan.region}"
        fix = f"name a bucket in {context.plan.region}, such as a replica"
        yield Issue(state="fail", evidence=evidence, fix=fix)
    yield from _encryption(context, plan, owner)
    yield from _policy(context, plan, owner)


def _encryption(context: Context, plan: ExistingBucketPlan, owner: str) -> Iterator[Issue]:
    s3 = context.account.client("s3")
    try:
        answer = context.account.ask(
            s3.get_bucket_encryption, Bucket=plan.bucket_name, ExpectedBucketOwner=owner
        )
    except UnansweredError as error:
        if error.code == _NO_ENCRYPTION:
            yield from encryption_issues(plan, {"SSEAlgorithm": "AES256"}, key=None)
            return
        if plan.owner is None or not (error.denied or error.code in _REFUSED):
            raise
        evidence = f"its encryption cannot be read here ({error.reason})"
        fix = f"have account {owner} compare the key: `aws s3api get-bucket-encryption --bucket "
        yield Issue(state="warn", evidence=evidence, fix=f"{fix}{plan.bucket_name}`")
        return
    for rule in answer["ServerSideEncryptionConfiguration"].get("Rules", []):
        default = rule.get("ApplyServerSideEncryptionByDefault")
        if default is not None:
            yield from encryption_issues(plan, default, key=_key_arn(context, default))


def _key_arn(context: Context, default: "Encryption") -> str | None:
    """Return the ARN of a bucket's KMS key; None for keys of S3 or managed by AWS.

    A bucket may name a key by its ARN, its id or an alias.
    """
    name = default.get("KMSMasterKeyID", "")
    if default.get("SSEAlgorithm") not in _KMS or not name or name.endswith(_AWS_KEY):
        return None
    if ":key/" in name:
        return name
    kms = context.account.client("kms")
    return context.account.ask(kms.describe_key, KeyId=name)["KeyMetadata"].get("Arn", name)


def encryption_issues(
    plan: ExistingBucketPlan, default: "Encryption", *, key: str | None
) -> Iterator[Issue]:
    """Yield an issue if a bucket's key differs from the key in the file.

    Args:
        plan: What the cluster file says of the bucket.
        default: How the bucket encrypts new objects.
        key: ARN of the bucket's KMS key; None if it has no customer's key.
    """
    if key == plan.key_arn:
        managed = default.get("SSEAlgorithm") in _KMS and key is None
        if managed and plan.owner is not None:
            yield Issue(
                state="fail",
                evidence=f"it encrypts by {_AWS_KEY} of account {plan.owner}, which no other "
                "account can use",
                fix="have its owner encrypt it by a customer-managed key, and state that as key",
            )
    elif key is None:
        algorithm = default.get("SSEAlgorithm")
        yield Issue(
            state="warn",
            evidence=f"it encrypts new objects by {algorithm} without a customer's key, not by "
            f"{plan.key_arn}",
            fix="leave key out, unless older objects are encrypted with it",
        )
    else:
        stated = plan.key_arn or "no key"
        yield Issue(
            state="fail",
            evidence=f"it encrypts by {key}, and the file has {stated}: pods may use no other",
            fix=f"set key: {key}",
        )


def _policy(context: Context, plan: ExistingBucketPlan, owner: str) -> Iterator[Issue]:
    s3 = context.account.client("s3")
    try:
        answer = context.account.ask(
            s3.get_bucket_policy, Bucket=plan.bucket_name, ExpectedBucketOwner=owner
        )
    except UnansweredError as error:
        if error.code == _NO_POLICY:
            yield from policy_issues(context, plan, {})
            return
        if plan.owner is None or not (error.denied or error.code in _REFUSED):
            raise
        evidence = f"its policy cannot be read here ({error.reason})"
        yield Issue(state="warn", evidence=evidence, fix=_permission_advice(context, plan))
        return
    yield from policy_issues(context, plan, parse_json(answer["Policy"]))


def policy_issues(context: Context, plan: ExistingBucketPlan, policy: Json) -> Iterator[Issue]:
    """Yield an issue for each access that pods need and a bucket's policy denies.

    Args:
        context: The cluster and its account.
        plan: What the cluster file says of the bucket.
        policy: The policy; empty where there is none.
    """
    needed = set(bucket_actions(context.plan.storage, plan))
    allowed: set[str] = set()
    for statement in as_list(look_up(policy, "Statement")):
        actions = {action for action in needed if _has_action(statement, action)}
        if not actions or not _names_account(statement, context.account.id, context.plan.partition):
            continue
        conditions = mapping(statement, "Condition")
        if text(statement, "Effect") == "Deny":
            if not conditions:
                told = ", ".join(sorted(actions))
                evidence = f"statement {_sid(statement)} of its policy denies {told}"
                yield Issue(state="fail", evidence=evidence, fix=_permission_advice(context, plan))
            elif keys := sorted(set(_condition_keys(conditions)) - {"aws:securetransport"}):
                yield Issue(
                    state="warn",
                    evidence=f"statement {_sid(statement)} of its policy denies by "
                    f"{', '.join(keys)}, and may mean the pods",
                    fix="have its owner let the roles of the storage stack and the VPC's endpoint "
                    "of S3 through",
                )
        else:
            allowed |= actions
    if plan.owner is not None and (missing := sorted(needed - allowed)):
        yield Issue(
            state="fail",
            evidence=f"its policy does not let account {context.account.id} "
            f"({', '.join(missing)}): the rights of our roles alone do not reach a bucket of "
            "another account",
            fix=_permission_advice(context, plan),
        )


def _permission_advice(context: Context, plan: ExistingBucketPlan) -> str:
    statements = [*bucket_statements(context.plan, context.plan.storage, plan, context.account.id)]
    if not statements:
        return "no pod uses it: leave it out of the file, or give it a claim"
    return f"have its owner add to its policy: {json.dumps(statements)}"


def _sid(statement: Json) -> str:
    return text(statement, "Sid") or "without Sid"


def _condition_keys(conditions: Mapping[str, Json]) -> Iterator[str]:
    for tests in conditions.values():
        yield from (key.lower() for key in mapping(tests))


def _has_action(statement: Json, action: str) -> bool:
    return any(
        isinstance(each, str) and fnmatchcase(action.lower(), each.lower())
        for each in as_list(look_up(statement, "Action"))
    )


def _names_account(statement: Json, account: str, partition: str) -> bool:
    """Return whether a policy statement applies to everybody, to the account, or to roles of it."""
    principal = look_up(statement, "Principal")
    roles = f"arn:{partition}:iam::{account}:"
    return principal == "*" or any(
        isinstance(each, str) and (each in ("*", account) or each.startswith(roles))
        for each in as_list(look_up(principal, "AWS"))
    )


def _pass_evidence(context: Context, plan: ExistingBucketPlan) -> str:
    key = plan.key_arn or "S3's own key"
    return f"in {context.plan.region}, encrypted by {key}"


EXISTING_BUCKETS = Check(
    name=_NAME,
    title="buckets that exist",
    actions=(_LIST, _ENCRYPTION, _POLICY, _KEY),
    run=_bucket_findings,
    resources={
        **dict.fromkeys((_LIST, _ENCRYPTION, _POLICY), "arn:{partition}:s3:::{object}"),
        _KEY: "arn:{partition}:kms:{region}:*:key/*",
    },
    objects=lambda plan, _: (bucket.bucket_name for bucket in plan.storage.existing_buckets),
)
