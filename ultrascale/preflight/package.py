"""The wheel in a bucket that the builds of the pipeline install.

Only credentials of the pipeline's account can tell: to others the bucket is foreign. What the
builds may read follows from their own role, and from the policies of the bucket and of its key. So
an object that this role may not read is a warning: the builds read it all the same, or say so.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
"""

from base64 import b64decode
from collections.abc import Iterator

from ultrascale.errors import UnansweredError
from ultrascale.plan.model.package import PackageObject
from ultrascale.preflight.model import Check, Context, Finding, Issue, finding, unknown

_NAME = "pipeline-package"
_GET = "s3:GetObject"
# Without s3:ListBucket, S3 answers 403 for an object that does not exist.
_ABSENT = "404"


def _run(context: Context) -> Iterator[Finding]:
    package = context.plan.package.object
    if package is None or context.account.id != package.account:
        return
    try:
        size, checksum = _size_and_checksum(context, package)
    except UnansweredError as error:
        if not error.denied and error.code != _ABSENT:
            yield unknown(_NAME, package.url, error)
            return
        issue = _denied_issue(package, error) if error.denied else _absent_issue(package)
        yield finding(_NAME, package.url, [issue], fine="")
        return
    fine = f"it is there, {size:,} bytes"
    if package.sha256 is not None and not checksum:
        fine = f"{fine}; each build compares its digest"
    yield finding(_NAME, package.url, _digest_issues(package, checksum), fine=fine)


def _size_and_checksum(context: Context, package: PackageObject) -> tuple[int, str]:
    """Return the bytes of the object, and its SHA-256 checksum; empty where S3 does not tell it.

    For the checksum S3 asks KMS whether the caller may decrypt the object; for the size it does
    not.

    Raises:
        UnansweredError: The object is not there, may not be read, or S3 did not answer.
    """
    s3, bucket, key = context.account.client("s3"), package.bucket, package.key
    if package.sha256 is not None:
        try:
            found = context.account.ask(
                s3.head_object, Bucket=bucket, Key=key, ChecksumMode="ENABLED"
            )
            return found.get("ContentLength", 0), found.get("ChecksumSHA256", "")
        except UnansweredError as error:
            if not error.denied:
                raise
    found = context.account.ask(s3.head_object, Bucket=bucket, Key=key)
    return found.get("ContentLength", 0), ""


def _absent_issue(package: PackageObject) -> Issue:
    fix = f"`aws s3 cp WHEEL {package.url}`, or correct pipeline.package"
    return Issue(state="fail", evidence="there is no such object or bucket", fix=fix)


def _denied_issue(package: PackageObject, error: UnansweredError) -> Issue:
    return Issue(
        state="warn",
        evidence=f"it is not there, or you may not read it ({error.reason})",
        fix=f"`aws s3 ls {package.url}`; a bucket of another account has to allow {_GET} to "
        f"account {package.account}",
    )


def _digest_issues(package: PackageObject, checksum: str) -> Iterator[Issue]:
    """Yield the issue of another digest; an object of many parts has no digest of the whole."""
    if package.sha256 is None or not checksum or "-" in checksum:
        return
    if (found := b64decode(checksum).hex()) != package.sha256:
        yield Issue(
            state="fail",
            evidence=f"its SHA-256 digest is {found}, and pipeline.package has {package.sha256}",
            fix="upload the wheel that you meant, or write its digest",
        )


PACKAGE = Check(
    name=_NAME,
    title="wheel that the pipeline installs",
    actions=(_GET,),
    run=_run,
    resources={_GET: "arn:{partition}:s3:::{package}"},
)
