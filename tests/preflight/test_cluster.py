"""Changes that a cluster with running jobs cannot take, found before the deployment."""

from typing import Any

import pytest

from tests.support.fake_aws import Refusal
from tests.support.preflight_context import found, pools_plan
from ultrascale.findings import Finding
from ultrascale.preflight.cluster import CLUSTER

ACTION = "eks:DescribeCluster"
OWN_KEY = "arn:aws:kms:us-west-2:444455556666:key/11111111-2222-4333-8444-555555555502"


def found_of(**changes: Any) -> Finding:
    """Return what is found of a cluster that is as the file says, but for ``changes``."""
    cluster: dict[str, Any] = {
        "name": "research",
        "status": "ACTIVE",
        "version": "1.35",
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "172.20.0.0/16"},
        "controlPlaneScalingConfig": {"tier": "standard"},
    } | changes
    (finding,) = found(CLUSTER, pools_plan(), {ACTION: {"cluster": cluster}})
    return finding


OTHER_RANGE = {"serviceIpv4Cidr": "10.100.0.0/16"}
KEY_OFF = {"issues": [{"code": "KmsKeyDisabled", "message": "key off"}]}


@pytest.mark.parametrize(
    ("changes", "state", "text", "fix"),
    [
        ({}, "pass", "ACTIVE, version 1.35", ""),
        ({"version": "1.34"}, "pass", "ACTIVE, version 1.34", ""),
        ({"version": "1.33"}, "fail", "EKS goes one minor version", 'deploy with "1.34" first'),
        (
            {"version": "1.36"},
            *("fail", "version is 1.36 in the account, 1.35 in the file: EKS takes"),
            'set kubernetes.version: "1.36"',
        ),
        ({"status": "UPDATING"}, "fail", "status is UPDATING", ""),
        (
            {"kubernetesNetworkConfig": OTHER_RANGE},
            *("fail", "serviceIpv4Cidr is 10.100.0.0/16 in the account, 172.20.0.0/16 in", ""),
        ),
        (
            {"controlPlaneScalingConfig": {"tier": "tier-xl"}},
            *("warn", "tier is tier-xl, standard in the file", ""),
        ),
        ({"health": KEY_OFF}, "warn", "health: KmsKeyDisabled: key off", ""),
    ],
)
def test_what_the_cluster_cannot_become_is_named(
    changes: dict[str, Any], state: str, text: str, fix: str
) -> None:
    finding = found_of(**changes)
    assert (finding.subject, finding.state) == ("research", state)
    assert text in finding.evidence
    assert (finding.fix is None) == (state == "pass")
    assert fix in str(finding.fix or "")


@pytest.mark.parametrize(
    ("deployed", "state"), [(OWN_KEY, "pass"), (OWN_KEY[:-1] + "9", "fail"), (None, "fail")]
)
def test_a_key_of_the_apis_data_is_that_of_the_deployed_cluster(
    deployed: str | None, state: str
) -> None:
    """Another one replaces the cluster, with all that runs on it."""
    config = [{"resources": ["secrets"], "provider": {"keyArn": deployed}}] if deployed else []
    answer = {"name": "research", "status": "ACTIVE", "version": "1.35", "encryptionConfig": config}
    (finding,) = found(
        CLUSTER, pools_plan(keys={"secrets": OWN_KEY}), {ACTION: {"cluster": answer}}
    )
    assert finding.state == state
    assert deployed is None or deployed in finding.evidence or state == "pass"


def test_a_cluster_that_is_not_made_yet_passes() -> None:
    (finding,) = found(CLUSTER, pools_plan(), {ACTION: Refusal("ResourceNotFoundException")})
    assert (finding.state, finding.evidence) == ("pass", "it does not exist yet")
