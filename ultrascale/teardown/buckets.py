"""Empties a bucket, all versions of its objects, and deletes it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.teardown.model import StoppedError

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

# Requests between two looks at the clock; each takes as many objects as S3 deletes at once.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
_BATCHES = 50
_NOT_EMPTY = "BucketNotEmpty"
# Of one object; the next round asks for it again.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
_PASSING = frozenset({"InternalError", "OperationAborted", "ServiceUnavailable", "SlowDown"})


def empty_and_delete(account: Account, bucket: str) -> None:
    """Delete some versions of a bucket's objects; once there are none, the bucket.

    Raises:
        StoppedError: S3 keeps an object, such as one under a legal hold.
    """
    for _ in range(_BATCHES):
        page = account.ask(account.client("s3").list_object_versions, Bucket=bucket)
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        if not found:
            _delete(account, bucket)
            return
        objects: list[ObjectIdentifierTypeDef] = [
            {"Key": each["Key"], "VersionId": each["VersionId"]} for each in found
        ]
        answer = account.ask(
            account.client("s3").delete_objects,
            Bucket=bucket,
            Delete={"Objects": objects, "Quiet": True},
        )
        _refuse(bucket, answer)


def _delete(account: Account, bucket: str) -> None:
    try:
        account.ask(account.client("s3").delete_bucket, Bucket=bucket)
    except UnansweredError as error:
        # Somebody wrote another object meanwhile: the next round takes it.
        if error.code != _NOT_EMPTY:
            raise


def _refuse(bucket: str, answer: Mapping[str, Any]) -> None:
    for error in answer.get("Errors", []):
        if error.get("Code") in _PASSING:
            continue
        raise StoppedError(
            f"bucket {bucket}",
            why=f"S3 keeps {error.get('Key')}: {error.get('Code')}: {error.get('Message')}",
            fix="release that object, then run the command again: it goes on here",
        )
