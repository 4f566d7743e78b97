"""Copies that are missing in the mirror are found before a node waits for one that never comes."""

from typing import cast

from msgspec.structs import replace

from tests.support.fake_aws import ID, REGION, Refusal, Told
from tests.support.preflight_context import found, pools_plan
from ultrascale.errors import UltrascaleError
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.plan import Plan
from ultrascale.parts.mirror.preflight import MIRROR
from ultrascale.parts.mirror.session import check_copies
from ultrascale.parts.mirror.tools import CopyTool
from ultrascale.plan.model import ClusterPlan

GET = "ecr:DescribeImages"
HOST = f"{ID}.dkr.ecr.{REGION}.amazonaws.com"
ETCD, DIGEST = "quay.io/coreos/etcd:v3.6.14", "sha256:" + "a" * 64
CHART, OTHER = "oci://public.ecr.aws/karpenter/karpenter:1.15.2", "sha256:" + "b" * 64
LOCK = {ETCD: DIGEST, CHART: OTHER}


def planned(location: str = f"{HOST}/mirror", digests: dict[str, str] | None = None) -> ClusterPlan:
    plan = pools_plan(account=ID, images={"mirror": location})
    assert plan.copies is not None
    registry = replace(plan.copies, digests=digests or {})
    return replace(plan, parts=(Plan(registry=registry, is_recorded=digests is not None),))


def answer(*missing: str) -> Told:
    """Return what ECR tells of each repository: all that is recorded but ``missing``."""
    there = [{"imageDigest": each} for each in LOCK.values() if each not in missing]
    return {"imageDetails": there}


def test_each_copy_that_is_missing_is_named() -> None:
    plan = planned(digests=LOCK)
    (finding,) = found(MIRROR, plan, {GET: answer()})
    assert (finding.subject, finding.state) == (f"{HOST}/mirror", "pass")
    assert "2 images and charts are there" in finding.evidence
    (finding,) = found(MIRROR, plan, {GET: answer(OTHER)})
    assert finding.state == "fail"
    assert f"{CHART} is not there ({OTHER})" in finding.evidence
    assert ETCD not in finding.evidence
    assert finding.fix == "run `ultrascale mirror FILE copy`"
    # A repository that is missing has no copy.
    (finding,) = found(MIRROR, plan, {GET: Refusal("RepositoryNotFoundException")})
    assert finding.state == "fail"
    assert ETCD in finding.evidence
    assert CHART in finding.evidence


def test_a_mirror_that_nobody_has_filled_fails() -> None:
    (finding,) = found(MIRROR, planned(), {})

    assert finding.state == "fail"
    assert "no copies in mirror.lock" in finding.evidence


def test_another_registry_is_left_to_its_own_command() -> None:
    (finding,) = found(MIRROR, planned("registry.example.com/mirror", LOCK), {})

    assert finding.state == "warn"
    assert finding.fix == "run `ultrascale mirror FILE check`"


def test_a_cluster_without_a_mirror_has_nothing_to_find() -> None:
    assert found(MIRROR, pools_plan(account=ID), {}) == []


class _Unanswered:
    """A registry that no program reaches."""

    def digest(self, reference: str) -> str | None:
        raise UltrascaleError(f"{reference}: no route to host")


def test_a_registry_that_does_not_answer_leaves_each_copy_unknown() -> None:
    """One that fails must not end the check of the others, nor pass for one that is there."""
    copies = [Copy(source=source, target=f"{HOST}/mirror/{source}", used_by=()) for source in LOCK]
    tool = cast("CopyTool", _Unanswered())
    assert [each.state for each in check_copies(copies, LOCK, tool)] == ["unknown", "unknown"]
