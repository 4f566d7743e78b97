"""FSx file systems, their backups, and S3 buckets.

Sources:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_Backup.html
"""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime
from typing import TYPE_CHECKING

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.plan.stacks import stack_of
from ultrascale.teardown import prices
from ultrascale.teardown.ec2 import tags
from ultrascale.teardown.model import Found, Scope, StoppedError, Thing
from ultrascale.teardown.stacks import STACK_TAG

if TYPE_CHECKING:
    from mypy_boto3_fsx.type_defs import FileSystemTypeDef
    from mypy_boto3_s3.type_defs import DeleteObjectsOutputTypeDef, ObjectIdentifierTypeDef

FILE_SYSTEM, BUCKET = "AWS::FSx::FileSystem", "AWS::S3::Bucket"
BACKUP = "FSx backup"
# FSx deletes automatic backups with their file system, and keeps a user's own backups.
_AUTOMATIC = "AUTOMATIC"
# Requests between two looks at the clock; each deletes as many objects as S3 allows.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
_BATCHES = 50
_NOT_EMPTY = "BucketNotEmpty"
# Passing errors of single objects; the next round deletes these objects again.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
_PASSING = frozenset({"InternalError", "OperationAborted", "ServiceUnavailable", "SlowDown"})


def file_systems(account: Account) -> "Mapping[str, FileSystemTypeDef]":
    """Return the file systems of an account in its Region, by their ids."""
    systems = account.ask_all(
        account.client("fsx").describe_file_systems, lambda page: page["FileSystems"]
    )
    return {system["FileSystemId"]: system for system in systems}


def file_system_facts(system: "FileSystemTypeDef") -> tuple[str, prices.Price]:
    """Return a file system's size and age in words, and its price."""
    gib = system["StorageCapacity"]
    tier = system.get("LustreConfiguration", {}).get("PerUnitStorageThroughput", 0)
    return f"{gib} GiB, {_age_text(system.get('CreationTime'))}", prices.of_lustre(gib, tier)


def backups(account: Account, name: str, going: Set[str]) -> Iterator[Found]:
    """Yield the backups of a cluster's file systems, including deleted file systems.

    Args:
        account: The account.
        name: Name of the cluster.
        going: Ids of file systems that are to be deleted, with their automatic backups.
    """
    stack = stack_of(name, "storage")
    for backup in account.ask_all(
        account.client("fsx").describe_backups, lambda page: page["Backups"]
    ):
        system = backup.get("FileSystem", {})
        id = system.get("FileSystemId", "")
        goes_along = backup["Type"] == _AUTOMATIC and id in going
        if tags(system.get("Tags", [])).get(STACK_TAG) != stack or goes_along:
            continue
        note = f"of {id}, {_age_text(backup.get('CreationTime'))}"
        yield Found(
            thing=Thing(kind=BACKUP, id=backup["BackupId"], note=note),
            why="a backup of a file system of the cluster",
        )


def left_backups(scope: Scope) -> Iterator[Found]:
    """Yield the backups of a cluster's file systems."""
    return backups(scope.account, scope.plan.name, frozenset())


def _age_text(made: datetime | None) -> str:
    return f"made {made:%Y-%m-%d}" if made else "of unknown age"


def empty_and_delete(account: Account, bucket: str) -> None:
    """Delete a batch of a bucket's object versions; once none is left, delete the bucket.

    Raises:
        StoppedError: S3 keeps an object, such as one under a legal hold.
    """
    for _ in range(_BATCHES):
        page = account.ask(account.client("s3").list_object_versions, Bucket=bucket)
        versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        if not versions:
            _delete(account, bucket)
            return
        objects: list[ObjectIdentifierTypeDef] = [
            {"Key": version["Key"], "VersionId": version["VersionId"]} for version in versions
        ]
        answer = account.ask(
            account.client("s3").delete_objects,
            Bucket=bucket,
            Delete={"Objects": objects, "Quiet": True},
        )
        _refuse_kept_objects(bucket, answer)


def _delete(account: Account, bucket: str) -> None:
    try:
        account.ask(account.client("s3").delete_bucket, Bucket=bucket)
    except UnansweredError as error:
        # Somebody wrote another object meanwhile: the next round deletes it.
        if error.code != _NOT_EMPTY:
            raise


def _refuse_kept_objects(bucket: str, answer: "DeleteObjectsOutputTypeDef") -> None:
    for error in answer.get("Errors", []):
        if error.get("Code") in _PASSING:
            continue
        raise StoppedError(
            f"bucket {bucket}",
            why=f"S3 keeps {error.get('Key')}: {error.get('Code')}: {error.get('Message')}",
            fix="release that object, then run the command again: it goes on here",
        )
