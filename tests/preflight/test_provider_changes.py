"""Changes that EKS makes by itself, or for others, are told before they cost."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.fake_aws import Refusal, Told
from tests.support.pools import CAPACITY_BLOCK, pool_document
from tests.support.preflight_context import NOW, found, pools_plan
from ultrascale.findings import Finding
from ultrascale.preflight.provider_changes import PROVIDER_CHANGES

SIGNER = {"id": "ca-1", "signingStatus": "IN_USE"}
NEXT = {"id": "ca-2", "signingStatus": "NOT_USED"}


def by_subject(
    *listed: dict[str, Any],
    events: dict[str, datetime] | None = None,
    pools: Sequence[dict[str, Any]] = (),
    **group: Any,
) -> dict[str, Finding]:
    told: dict[str, Told] = {
        "eks:ListCertificateAuthorities": {"certificateAuthorities": [*listed]},
        "eks:DescribeCertificateAuthority": lambda asked: {
            "certificateAuthority": {
                "id": asked["certificateAuthorityId"],
                "scheduledEvents": events or {},
            }
        },
        "eks:ListNodegroups": {"nodegroups": ["train"]},
        "eks:DescribeNodegroup": {"nodegroup": {"nodegroupName": "train", **group}},
    }
    return {each.subject: each for each in found(PROVIDER_CHANGES, pools_plan(*pools), told)}


@pytest.mark.parametrize(
    ("days", "state"), [(None, "pass"), (91, "pass"), (89, "warn"), (-3, "warn")]
)
def test_nodes_are_renewed_before_eks_changes_who_signs(days: int | None, state: str) -> None:
    events = {} if days is None else {"firstAutoActivation": NOW + timedelta(days=days)}
    finding = by_subject(SIGNER, NEXT, events=events)["certificate authorities"]
    assert finding.state == state
    if state == "warn":
        assert "ca-2" in finding.evidence
        assert f"in {max(days or 0, 0)} days" in finding.evidence
        assert "kubeconfigs" in finding.evidence
        assert "--certificate-authority-id ca-2" in (finding.fix or "")


def test_a_last_day_alone_is_a_warning_and_launch_templates_with_the_old_one_are_named() -> None:
    events = {"finalAutoActivation": NOW + timedelta(days=40)}
    block = pool_document(purchase=CAPACITY_BLOCK, provisioner="self-managed", zones=["us-west-2b"])
    told = by_subject(SIGNER, NEXT, events=events, pools=[block])["certificate authorities"]
    assert told.state == "warn"
    assert "launch templates of train" in told.evidence
    assert "at the latest on 2026-12-31" in told.evidence


def test_the_authority_that_signs_is_not_asked_for() -> None:
    events = {"firstAutoActivation": NOW}
    assert by_subject(SIGNER, events=events)["certificate authorities"].state == "pass"


@pytest.mark.parametrize(
    ("config", "state", "cost"),
    [
        (None, "pass", ""),
        ({"enabled": False, "minSize": 2}, "pass", ""),
        ({"enabled": True, "minSize": 2}, "warn", "volumes are paid for"),
        ({"enabled": True, "poolState": "RUNNING"}, "warn", "each instance costs as a node"),
    ],
)
def test_instances_that_no_file_states_are_told(
    config: dict[str, Any] | None, state: str, cost: str
) -> None:
    group: Any = {} if config is None else {"warmPoolConfig": config}
    finding = by_subject(SIGNER, **group)["warm pools"]
    assert (finding.state, cost in finding.evidence) == (state, True)


def test_a_cluster_that_does_not_exist_changes_nothing() -> None:
    gone = Refusal("ResourceNotFoundException", "No cluster found for name: research.")
    (finding,) = found(PROVIDER_CHANGES, pools_plan(), {"eks:ListCertificateAuthorities": gone})
    assert finding.state == "pass"
