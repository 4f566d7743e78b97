"""Storage that is named to go: data of the same name that nobody meant stays."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.estate.account import Estate
from tests.support.estate.cluster import (
    BUCKET,
    FILE_SYSTEM,
    FSX_GROUP,
    NOTHING,
    estate,
    ids,
    kept,
    stack,
)
from tests.support.fake_aws import ID
from ultrascale.errors import QuestionError
from ultrascale.teardown import sweep
from ultrascale.teardown.kept import Asked

OLD, OLD_BUCKET = "fs-0f9e8d7c6b5a43210", "research-storage-data-old"
LAYER, LOGICAL = "aws:cloudformation:stack-name", "aws:cloudformation:logical-id"


def tags(logical_id: str, stack: str = "research-storage") -> list[dict[str, str]]:
    return [{"Key": LAYER, "Value": stack}, {"Key": LOGICAL, "Value": logical_id}]


def replaced() -> Estate:
    """Return the account of a cluster of which a file system and a bucket were replaced, and kept.

    CloudFormation's stack holds neither of the old ones any more.
    """
    cluster = estate()
    cluster.file_systems[OLD] = {
        "FileSystemId": OLD,
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 4800,
        "CreationTime": datetime(2026, 3, 1, tzinfo=UTC),
        "LustreConfiguration": {"PerUnitStorageThroughput": 125},
        "Tags": tags("scratch1CA5CB2F"),
    }
    cluster.buckets[OLD_BUCKET] = ["z"]
    cluster.tagged = {
        f"arn:aws:s3:::{OLD_BUCKET}": tags("BucketsdataB73376C8"),
        f"arn:aws:s3:::{BUCKET}": tags("BucketsdataB73376C8"),
        "arn:aws:s3:::gone-since": tags("BucketsdataB73376C8"),
    }
    return cluster


def named(*names: str) -> Asked:
    return Asked(storage=frozenset(names))


def test_what_was_replaced_and_kept_is_listed_with_its_age_and_size() -> None:
    left = kept(replaced().planned())

    assert (
        str(left[OLD].thing) == f"AWS::FSx::FileSystem {OLD} (scratch, 4800 GiB, made 2026-03-01)"
    )
    assert "1200 GiB, made 2026-08-01" in str(left[FILE_SYSTEM].thing)
    assert left[OLD].price.startswith("$696.00 per month")
    assert left[OLD].command.startswith(f"--delete-storage {OLD}, or")
    assert left[OLD_BUCKET].command.startswith(f"--delete-storage {OLD_BUCKET}, or")
    assert "gone-since" not in left


def test_the_ledger_outlives_its_cluster_and_the_plan_says_so() -> None:
    cluster, ledger = estate(), "research-observability-ledgerbucket-1"
    cluster.buckets[ledger] = ["ledger/state.json.gz"]
    cluster.tagged = {
        f"arn:aws:s3:::{ledger}": tags("LedgerBucketC8DD7298", "research-observability")
    }
    left = kept(cluster.planned())[ledger]
    assert (left.why, left.command.startswith("empty it")) == ("data", True)


@pytest.mark.parametrize(("name", "both"), [("scratch", [OLD, FILE_SYSTEM]), ("data", [BUCKET])])
def test_a_name_of_old_and_new_data_takes_neither(name: str, both: list[str]) -> None:
    cluster = replaced()
    with pytest.raises(QuestionError, match=f"{name!r} is the name of 2 things") as refused:
        cluster.planned(named(name))
    assert all(id in str(refused.value) for id in both)


def test_an_id_takes_exactly_what_it_names(tmp_path: Path) -> None:
    cluster = replaced()
    cluster.run(tmp_path, named(OLD, OLD_BUCKET))
    assert {*cluster.file_systems} == {FILE_SYSTEM}
    assert {*cluster.buckets} == {BUCKET}
    assert FSX_GROUP in cluster.groups


def test_the_security_group_goes_with_the_last_file_system_of_its_name() -> None:
    printed = ids(replaced().planned(named(OLD, FILE_SYSTEM)))
    assert {OLD, FILE_SYSTEM, FSX_GROUP, "research-network"} <= printed


def test_an_id_that_is_gone_already_keeps_nobody_from_going_on() -> None:
    teardown = estate().planned(named("fs-0123", "scratch"))
    assert teardown.absent == ("fs-0123",)
    assert FILE_SYSTEM in ids(teardown)


def test_a_file_system_of_another_stack_cannot_be_named() -> None:
    cluster = replaced()
    cluster.file_systems[OLD]["Tags"] = tags("scratch1CA5CB2F", "theirs-storage")
    teardown = cluster.planned(named(OLD))
    assert teardown.absent == (OLD,)
    assert OLD not in ids(teardown)


def test_a_stack_that_would_take_a_file_system_along_stops_everything() -> None:
    held = [("AWS::FSx::FileSystem", "scratch1CA5CB2F", FILE_SYSTEM, False)]
    cluster = estate(storage=stack("storage", resources=held))
    with pytest.raises(
        QuestionError, match=f"it no longer keeps AWS::FSx::FileSystem {FILE_SYSTEM}"
    ):
        cluster.planned(named("scratch"))


def test_what_old_stacks_left_is_found_by_its_tags() -> None:
    cluster = replaced()
    database = f"arn:aws:rds:us-west-2:{ID}:cluster:research-db"
    cluster.tagged[database] = tags("Database0A1", "research-backend")
    cluster.answers["rds:DescribeDBClusters"] = {
        "DBClusters": [{"DBClusterIdentifier": "research-db", "Status": "available"}]
    }
    found = sweep(cluster.scope, NOTHING)

    left: dict[str, Any] = {each.thing.id: each for each in found.orphans}
    assert {OLD, OLD_BUCKET, "research-db"} <= left.keys()
    assert left["research-db"].paid
    assert "gone-since" not in left


def backup(id: str, type: str, system: str) -> dict[str, Any]:
    made = datetime(2026, 9, 1, tzinfo=UTC)
    about = {"FileSystemId": system, "Tags": tags("scratch1CA5CB2F")}
    return {
        "BackupId": id,
        "Lifecycle": "AVAILABLE",
        "Type": type,
        "CreationTime": made,
        "FileSystem": about,
    }


def test_backups_that_outlive_their_file_system_are_told_with_what_removes_them() -> None:
    cluster = replaced()
    automatic, ours, orphan, old = (f"backup-0000000000{number}" for number in range(4))
    cluster.backups = [
        backup(automatic, "AUTOMATIC", FILE_SYSTEM),
        backup(ours, "USER_INITIATED", FILE_SYSTEM),
        backup(orphan, "USER_INITIATED", "fs-0123456789long-gone"),
        backup(old, "AUTOMATIC", OLD),
        backup("backup-of-a-volume", "AUTOMATIC", "") | {"FileSystem": {}},
    ]

    left = kept(cluster.planned(named(FILE_SYSTEM)))

    assert {id for id in left if "backup" in id} == {ours, orphan, old}
    assert left[ours].thing.note == f"of {FILE_SYSTEM}, made 2026-09-01"
    assert f"delete-backup --backup-id {ours}" in left[ours].command
    orphans = sweep(cluster.scope, NOTHING).orphans
    assert {ours, orphan} <= {each.thing.id for each in orphans}
