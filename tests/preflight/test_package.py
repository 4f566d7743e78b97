"""The wheel that a pipeline installs from a bucket is there, before its first run looks for it."""

from base64 import b64encode
from typing import Any

from tests.support.cases import for_each
from tests.support.fake_aws import ID, THROTTLED, Refusal, Told
from tests.support.preflight_context import found, pools_plan
from ultrascale.parts.pipeline.preflight import PACKAGE
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.checks import all_checks
from ultrascale.preflight.policy import policy

GET = "s3:GetObject"
WHEEL = "wheels/ultrascale-0.4.0-py3-none-any.whl"
FORBIDDEN = Refusal("403", "Forbidden", status=403)
URL = "s3://artifacts/tools/ultrascale-0.4.0-py3-none-any.whl"
DIGEST = "0" * 64
THERE: dict[str, Any] = {"ContentLength": 1_500_000}


def planned(*, package: str = URL, account: str = ID) -> ClusterPlan:
    pipeline = {
        "connection": f"arn:aws:codeconnections:us-west-2:{account}:connection/0aa1",
        "repository": "example/clusters",
        "stages": [{"name": "prod"}],
        "package": package,
    }
    return pools_plan(account=ID, pipeline=pipeline)


def checksum(digest: str) -> dict[str, Any]:
    encoded = b64encode(bytes.fromhex(digest)).decode()
    return {**THERE, "ChecksumSHA256": encoded}


@for_each(
    {
        "there": (THERE, "pass", "it is there, 1,500,000 bytes"),
        # HEAD has no body that says more.
        "no object or bucket": (Refusal("404", "Not Found", status=404), "fail", "no such object"),
        "no answer": (THROTTLED, "unknown", "throttled"),
    }
)
def test_a_wheel_that_is_not_there_is_found(answer: Told, state: str, told: str) -> None:
    (finding,) = found(PACKAGE, planned(), {GET: answer})
    assert (finding.subject, finding.state) == (URL, state)
    assert told in finding.evidence


@for_each(
    {
        "the same": (checksum(DIGEST), "pass"),
        "another": (checksum("1" * 64), "fail"),
        "of parts": ({**THERE, "ChecksumSHA256": "AAAA-3"}, "pass"),
        "none": (THERE, "pass"),
    }
)
def test_another_wheel_under_the_name_is_found(answer: Told, state: str) -> None:
    plan = planned(package=f"{URL}#sha256={DIGEST}")
    (finding,) = found(PACKAGE, plan, {GET: answer})
    assert finding.state == state


def test_an_object_that_this_role_may_not_read_stops_no_run() -> None:
    """The builds, which install it, read it by roles of their own, and compare its digest."""
    (finding,) = found(PACKAGE, planned(), {GET: FORBIDDEN})
    assert finding.state == "warn"
    assert "it is not there, or you may not read it" in finding.evidence
    assert "s3:GetObject" in str(finding.fix)


def test_a_digest_under_a_key_that_this_role_may_not_use_is_left_to_the_builds() -> None:
    """S3 asks KMS for the checksum alone."""

    def head(asked: dict[str, Any]) -> dict[str, Any]:
        if "ChecksumMode" in asked:
            raise FORBIDDEN
        return THERE

    (finding,) = found(PACKAGE, planned(package=f"{URL}#sha256={DIGEST}"), {GET: head})

    assert finding.state == "pass"
    assert "each build compares its digest" in finding.evidence


def test_the_policy_names_the_one_object() -> None:
    named = {
        statement["Resource"] for statement in _statements(planned()) if GET in statement["Action"]
    }
    assert named == {"arn:aws:s3:::artifacts/tools/ultrascale-0.4.0-py3-none-any.whl"}


def test_of_a_foreign_bucket_and_a_wheel_of_the_repository_nothing_is_asked_nor_allowed() -> None:
    for plan in (planned(account="999988887777"), planned(package=WHEEL)):
        assert found(PACKAGE, plan) == []
        assert not [each for each in _statements(plan) if GET in each["Action"]]


def _statements(plan: ClusterPlan) -> list[Any]:
    document: Any = policy(all_checks(), plan, ID)
    return document["Statement"]
