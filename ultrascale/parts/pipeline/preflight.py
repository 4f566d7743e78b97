"""The wheel in a bucket, which the builds of the pipeline install.

Only credentials of the pipeline's account can check it: to other accounts the bucket is foreign.
The rights of the builds follow from their own role, and from the policies of the bucket and of its
key. So an object that this role may not read is only a warning: the builds may read it.

Sources:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ultrascale.config import Release
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.parts.pipeline.model import Plan
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.model import Check, Context

if TYPE_CHECKING:
    # As in the words of preflight.
    from ultrascale.account import Account

_NAME = "pipeline-package"
_GET = "s3:GetObject"
# Without s3:ListBucket, S3 answers 403 for an object that does not exist.
_ABSENT = "404"


def _run(context: Context) -> Iterator[Finding]:
    own = context.plan.part(Plan)
    name = next(_objects(context.plan, context.account.id), None)
    if own is None or name is None:
        return
    package = own.release
    try:
        size, checksum = _size_and_checksum(context.account, name, package.sha256)
    except UnansweredError as error:
        if not error.denied and error.code != _ABSENT:
            yield unknown(_NAME, package.place, error)
            return
        account = own.home.account
        issue = _denied_issue(package, account, error) if error.denied else _absent_issue(package)
        yield finding(_NAME, package.place, [issue], fine="")
        return
    fine = f"it is there, {size:,} bytes"
    if package.sha256 is not None and not checksum:
        fine = f"{fine}; each build compares its digest"
    yield finding(_NAME, package.place, _digest_issues(package, checksum), fine=fine)


def _size_and_checksum(account: "Account", name: str, sha256: str | None) -> tuple[int, str]:
    """Return the bytes of ``BUCKET/KEY``, and its SHA-256 checksum; empty where S3 tells none.

    The checksum needs the right to decrypt the object; the size does not.

    Raises:
        UnansweredError: The object is not there, may not be read, or S3 did not answer.
    """
    s3, (bucket, _, key) = account.client("s3"), name.partition("/")
    if sha256 is not None:
        try:
            answer = account.ask(s3.head_object, Bucket=bucket, Key=key, ChecksumMode="ENABLED")
            return answer.get("ContentLength", 0), answer.get("ChecksumSHA256", "")
        except UnansweredError as error:
            if not error.denied:
                raise
    answer = account.ask(s3.head_object, Bucket=bucket, Key=key)
    return answer.get("ContentLength", 0), ""


def _absent_issue(package: Release) -> Issue:
    fix = f"`aws s3 cp WHEEL {package.place}`, or correct pipeline.package"
    return Issue(state="fail", evidence="there is no such object or bucket", fix=fix)


def _denied_issue(package: Release, account: str, error: UnansweredError) -> Issue:
    return Issue(
        state="warn",
        evidence=f"it is not there, or you may not read it ({error.reason})",
        fix=f"`aws s3 ls {package.place}`; a bucket of another account has to allow {_GET} to "
        f"account {account}",
    )


def _digest_issues(package: Release, checksum: str) -> Iterator[Issue]:
    """Yield an issue if the digest differs; an object of many parts has no digest as a whole."""
    if package.sha256 is None or not checksum or "-" in checksum:
        return
    if (digest := b64decode(checksum).hex()) != package.sha256:
        yield Issue(
            state="fail",
            evidence=f"its SHA-256 digest is {digest}, and pipeline.package has {package.sha256}",
            fix="upload the wheel that you meant, or write its digest",
        )


def _objects(plan: ClusterPlan, account: str) -> Iterator[str]:
    """Yield bucket and key of the object; nothing in accounts other than the pipeline's."""
    own = plan.part(Plan)
    if own and own.release.object_name and account in ("*", own.home.account):
        yield own.release.object_name


PACKAGE = Check(
    name=_NAME,
    title="wheel that the pipeline installs",
    actions=(_GET,),
    run=_run,
    resources={_GET: "arn:{partition}:s3:::{object}"},
    objects=_objects,
    follows="stacks",
)

CHECKS = (PACKAGE,)
