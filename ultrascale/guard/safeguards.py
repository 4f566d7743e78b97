"""What keeps a resource from loss, and is switched off in a change that loses nothing yet.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-updatereplacepolicy.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ultrascale.guard.figures import number
from ultrascale.guard.properties import at
from ultrascale.guard.templates import shown

Values = Mapping[str, Any]

# What each policy keeps: all of it, a copy, or nothing.
_KEEPS = {"Retain": 2, "RetainExceptOnCreate": 2, "Snapshot": 1}
_POLICIES = {
    "DeletionPolicy": "its retention when it leaves its stack",
    "UpdateReplacePolicy": "its retention when it is replaced",
}
# What is deleted without a policy leaves a copy.
_COPIED = {
    ("AWS::RDS::DBCluster", "DeletionPolicy"): "Snapshot",
    ("AWS::RDS::DBInstance", "DeletionPolicy"): "Snapshot",
}
# A property of each type, the value that protects, what it is where it is not stated, and what it
# is called.
_SWITCHES: Mapping[str, Sequence[tuple[str, str, str, str]]] = {
    "AWS::ECR::Repository": (
        ("EmptyOnDelete", "false", "false", "its refusal to go with images in it"),
    ),
    "AWS::EKS::Cluster": (("DeletionProtection", "true", "false", "its deletion protection"),),
    "AWS::KMS::Key": (("Enabled", "true", "true", "its use: disabled, it decrypts nothing"),),
    "AWS::RDS::DBCluster": (
        ("DeletionProtection", "true", "false", "its deletion protection"),
        ("DeleteAutomatedBackups", "false", "true", "its backups once it is deleted"),
    ),
    "AWS::RDS::DBInstance": (
        ("DeletionProtection", "true", "false", "its deletion protection"),
        ("DeleteAutomatedBackups", "false", "true", "its backups once it is deleted"),
    ),
    "AWS::S3::Bucket": (
        ("VersioningConfiguration/Status", "Enabled", "Suspended", "versions of its objects"),
    ),
}
# A number of each type, what it is where it is not stated, and what is less where that is lower.
_NUMBERS: Mapping[str, Sequence[tuple[str, int, str]]] = {
    "AWS::EC2::CapacityReservation": (
        ("InstanceCount", 1, "reserved instances, which EC2 may not give again"),
    ),
    "AWS::FSx::FileSystem": (
        ("LustreConfiguration/AutomaticBackupRetentionDays", 0, "days that backups are kept"),
    ),
    "AWS::KMS::Key": (("PendingWindowInDays", 30, "days to cancel its deletion in"),),
    "AWS::RDS::DBCluster": (("BackupRetentionPeriod", 1, "days that backups are kept"),),
    "AWS::RDS::DBInstance": (("BackupRetentionPeriod", 1, "days that backups are kept"),),
}
# When a rule deletes objects, or versions of them that are not the newest.
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-s3-bucket-rule.html
_EXPIRY: Mapping[str, Sequence[str]] = {
    "objects": ("ExpirationDate", "ExpirationInDays"),
    "old versions of objects": (
        "NoncurrentVersionExpiration/NoncurrentDays",
        "NoncurrentVersionExpirationInDays",
    ),
}
# What limits a rule to some of the objects.
_LIMITS = ("ObjectSizeGreaterThan", "ObjectSizeLessThan", "Prefix", "TagFilters")
_BUCKET = "AWS::S3::Bucket"


def lost_policies(old: Values, new: Values) -> Iterator[str]:
    """Yield what CloudFormation keeps of a resource no more.

    Args:
        old: The resource in the old template.
        new: The resource in the new one.
    """
    for name, words in _POLICIES.items():
        default = _COPIED.get((old["Type"], name), "Delete")
        before, after = (_KEEPS.get(each.get(name, default), 0) for each in (old, new))
        if after < before:
            yield words


def lost_switches(kind: str, old: Values, new: Values) -> Iterator[str]:
    """Yield what a service protects no more, or for a shorter time.

    Args:
        kind: The type of the resource.
        old: Its properties before, as `World.properties` returns them.
        new: Its properties after.
    """
    for path, safe, default, words in _SWITCHES.get(kind, ()):
        before, after = (at(each, path) or default for each in (old, new))
        if before == safe != after:
            yield words
    for path, least, words in _NUMBERS.get(kind, ()):
        before, after = (number(at(each, path) or least) for each in (old, new))
        if before is not None and (after is None or after < before):
            yield f"{words}: {before}, then {shown(at(new, path)) if after is None else after}"
    if kind == _BUCKET:
        yield from _shorter_expiry(old, new)


def _shorter_expiry(old: Values, new: Values) -> Iterator[str]:
    for what, paths in _EXPIRY.items():
        there = list(_expiries(old, paths))
        for limits, path, value in _expiries(new, paths):
            # A rule without limits deletes these objects as well.
            before = [each for others, _, each in there if others in ({}, limits)]
            if not any(_is_no_sooner(value, each) for each in before):
                yield f"{what}, which S3 would delete sooner ({path} {shown(value)})"


def _expiries(bucket: Values, paths: Sequence[str]) -> Iterator[tuple[Values, str, object]]:
    """Yield the limits of each rule that is on, and where it says when it deletes, and when."""
    rules = at(bucket, "LifecycleConfiguration/Rules")
    for rule in cast("Sequence[object]", rules) if isinstance(rules, list) else ():
        if at(rule, "Status") == "Disabled":
            continue
        limits = {name: each for name in _LIMITS if (each := at(rule, name)) is not None}
        for path in paths:
            if (value := at(rule, path)) is not None:
                yield limits, path, value


def _is_no_sooner(after: object, before: object) -> bool:
    days, least = number(after), number(before)
    return after == before or (days is not None and least is not None and days >= least)
