"""Safeguards of a resource: without them the next change may lose it."""

from typing import Any

import pytest

from tests.support.changes import Body, between, body, of
from ultrascale.guard import Changes

RETAINED: Body = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def changed(kind: str, old: dict[str, Any], new: dict[str, Any]) -> Changes:
    return between({"A": body(kind, old)}, {"A": body(kind, new)})


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        (("DeletionPolicy",), "when it leaves"),
        (("UpdateReplacePolicy",), "when it is replaced"),
        (tuple(RETAINED), "when it leaves"),
    ],
)
@pytest.mark.parametrize("left", [None, "Delete"])
@pytest.mark.parametrize("kind", ["AWS::S3::Bucket", "AWS::FSx::FileSystem", "AWS::KMS::Key"])
def test_retention_that_is_dropped_is_refused_unless_it_is_named(
    kind: str, gone: tuple[str, ...], words: str, left: str | None
) -> None:
    dropped: Body = {} if left is None else dict.fromkeys(gone, left)
    kept: Body = {key: value for key, value in RETAINED.items() if key not in gone}

    changes = between({"A": body(kind, **RETAINED)}, {"A": body(kind, **kept, **dropped)})

    change = of(changes, "A")
    assert (change.action, change.protected) == ("loses protection", True)
    assert f"its retention {words}" in change.lost
    assert not changes.is_safe
    assert changes.permit("A").is_safe


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("Retain", "RetainExceptOnCreate", False),
        ("Retain", "Snapshot", True),
        ("Snapshot", None, False),
        ("Snapshot", "Delete", True),
        (None, "Retain", False),
    ],
)
def test_a_policy_that_keeps_as_much_loses_nothing(
    old: str | None, new: str | None, lost: bool
) -> None:
    policies: list[Body] = [{} if each is None else {"DeletionPolicy": each} for each in (old, new)]
    before, after = (body("AWS::RDS::DBCluster", **each) for each in policies)

    assert between({"A": before}, {"A": after}).is_safe is not lost


ON: dict[str, tuple[str, Body, Body]] = {
    "deletion protection of a cluster": (
        "AWS::EKS::Cluster",
        {"DeletionProtection": True},
        {"DeletionProtection": False},
    ),
    "deletion protection of a database": ("AWS::RDS::DBCluster", {"DeletionProtection": True}, {}),
    "backups that outlive the database": (
        "AWS::RDS::DBInstance",
        {"DeleteAutomatedBackups": False},
        {},
    ),
    "backups of a database": (
        "AWS::RDS::DBCluster",
        {"BackupRetentionPeriod": 14},
        {"BackupRetentionPeriod": 7},
    ),
    "backups of a file system": (
        "AWS::FSx::FileSystem",
        {"LustreConfiguration": {"AutomaticBackupRetentionDays": 7}},
        {"LustreConfiguration": {}},
    ),
    "versions of objects": (
        "AWS::S3::Bucket",
        {"VersioningConfiguration": {"Status": "Enabled"}},
        {"VersioningConfiguration": {"Status": "Suspended"}},
    ),
    "old versions": (
        "AWS::S3::Bucket",
        {
            "LifecycleConfiguration": {
                "Rules": [{"NoncurrentVersionExpiration": {"NoncurrentDays": 30}}]
            }
        },
        {
            "LifecycleConfiguration": {
                "Rules": [{"NoncurrentVersionExpiration": {"NoncurrentDays": 3}}]
            }
        },
    ),
    "objects": (
        "AWS::S3::Bucket",
        {},
        {"LifecycleConfiguration": {"Rules": [{"ExpirationInDays": 90}]}},
    ),
    "a key": ("AWS::KMS::Key", {}, {"Enabled": False}),
    "the days to keep a key after all": (
        "AWS::KMS::Key",
        {"PendingWindowInDays": 30},
        {"PendingWindowInDays": 7},
    ),
    "images": ("AWS::ECR::Repository", {}, {"EmptyOnDelete": True}),
    "reserved instances": (
        "AWS::EC2::CapacityReservation",
        {"InstanceCount": 16},
        {"InstanceCount": 8},
    ),
}


@pytest.mark.parametrize(("kind", "on", "off"), ON.values(), ids=list(ON))
def test_what_a_service_protects_no_more_is_refused_and_from_now_on_passes(
    kind: str, on: Body, off: Body
) -> None:
    change, back = of(changed(kind, on, off), "A"), changed(kind, off, on)

    assert (change.action, change.protected) == ("loses protection", True)
    assert "what may go then: " in change.lost
    assert (of(back, "A").action, back.is_safe) == ("updated", True)


def test_a_number_that_is_known_only_later_may_be_lower() -> None:
    changes = changed(
        "AWS::RDS::DBCluster",
        {"BackupRetentionPeriod": 7},
        {"BackupRetentionPeriod": {"Fn::ImportValue": "days"}},
    )

    assert "days that backups are kept: 7, then " in of(changes, "A").lost


def expiry(days: int, **scope: Any) -> Body:
    """Return a rule by which S3 deletes objects."""
    return {"ExpirationInDays": days, "Status": "Enabled", **scope}


@pytest.mark.parametrize(
    ("old", "new", "safe"),
    [
        ([expiry(1, Prefix="tmp/")], [expiry(1, Prefix="tmp/"), expiry(7, Prefix="ckpt/")], False),
        ([expiry(1, Prefix="tmp/")], [expiry(1)], False),
        ([expiry(1, Prefix="tmp/")], [expiry(2, Prefix="tmp/")], True),
        ([expiry(7)], [expiry(7), expiry(9, Prefix="ckpt/")], True),
        ([], [expiry(1, Status="Disabled")], True),
        ([expiry(1, Status="Disabled")], [expiry(1)], False),
        ([], [{"ExpirationDate": "2026-12-01", "Status": "Enabled"}], False),
    ],
    ids=[
        "other objects",
        "all objects",
        "the same objects later",
        "sooner by another rule",
        "a rule that is off",
        "a rule that is switched on",
        "a date",
    ],
)
def test_a_rule_that_deletes_objects_is_held_against_those_for_the_same_objects(
    old: list[Body], new: list[Body], safe: bool
) -> None:
    before, after = ({"LifecycleConfiguration": {"Rules": each}} for each in (old, new))

    assert changed("AWS::S3::Bucket", before, after).is_safe is safe
