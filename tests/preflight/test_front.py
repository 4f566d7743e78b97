"""The load balancer of the front: a certificate or a subnet that it does not take fails a stack."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.existing_vpc import existing_document, subnet, subnets
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.pools import as_text
from tests.support.preflight_context import NOW, found, pools_plan, states
from ultrascale import config
from ultrascale.errors import UnansweredError
from ultrascale.parts.front.preflight import FRONT
from ultrascale.plan import plan_cluster
from ultrascale.plan.model import ClusterPlan

DESCRIBE, VPCS, SUBNETS = "acm:DescribeCertificate", "ec2:DescribeVpcs", "ec2:DescribeSubnets"
ARN = f"arn:aws:acm:us-west-2:{ID}:certificate/11111111-2222-4333-8444-555555555501"
OWN = {
    "VpcId": "vpc-own",
    "Tags": [{"Key": "aws:cloudformation:stack-name", "Value": "research-network"}],
}


NETWORK = {"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2a", "us-west-2b"]}


def front(**keys: Any) -> ClusterPlan:
    return pools_plan(serving={"front": keys}, network=NETWORK)


def ends(days: int) -> datetime:
    return NOW + timedelta(days=days)


def answers(told: Told | None = None, **changes: Any) -> dict[str, Told]:
    """Return an account without the VPC, whose certificate is sound but for ``changes``."""
    certificate = {
        "DomainName": "models.corp.internal",
        "Status": "ISSUED",
        "Type": "AMAZON_ISSUED",
        # As the API answers, whatever its model says.
        "KeyAlgorithm": "RSA-2048",
        "NotAfter": ends(200),
    } | changes
    return {DESCRIBE: told or {"Certificate": certificate}, VPCS: {"Vpcs": []}}


IMPORTED = {"Type": "IMPORTED"}
CERTIFICATES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "issued": ({}, "pass", "issued for models.corp.internal, until 2027-06-09", ""),
    "an elliptic curve": ({"KeyAlgorithm": "EC_prime256v1"}, "pass", "issued for", ""),
    "never validated": (
        {"Status": "PENDING_VALIDATION"},
        "fail",
        "its status is PENDING_VALIDATION: no listener takes it",
        f"publish the records that `aws acm describe-certificate --certificate-arn {ARN}",
    ),
    "not there": (
        {"told": Refusal("ResourceNotFoundException")},
        "fail",
        "no such certificate in",
        "",
    ),
    "revoked": ({"Status": "REVOKED"}, "fail", "REVOKED", "write the ARN of another certificate"),
    "expired": (
        IMPORTED | {"Status": "EXPIRED", "NotAfter": ends(-1)},
        "fail",
        "EXPIRED",
        "aws acm import-certificate",
    ),
    "imported and over at that time": (
        IMPORTED | {"NotAfter": ends(-1)},
        "fail",
        "it ends at 2026-11-20",
        "aws acm import-certificate",
    ),
    "imported and about to end": (
        IMPORTED | {"NotAfter": ends(29)},
        "warn",
        "it ends at 2026-12-20 00:00, and ACM renews no imported one",
        f"aws acm import-certificate --certificate-arn {ARN} --region us-west-2",
    ),
    "imported with time left": (IMPORTED | {"NotAfter": ends(31)}, "pass", "issued for", ""),
    "not renewed in time": ({"NotAfter": ends(29)}, "warn", "it ends at", "that ACM can renew it"),
    "a renewal that waits for its record": (
        {
            "NotAfter": ends(50),
            "RenewalSummary": {
                "RenewalStatus": "PENDING_VALIDATION",
                "DomainValidationOptions": [{"DomainName": "models.corp.internal"}],
                "UpdatedAt": NOW,
            },
        },
        "warn",
        "its renewal is PENDING_VALIDATION",
        "publish the records",
    ),
    "a key of another kind": (
        {"KeyAlgorithm": "ED25519"},
        "fail",
        "its key is ED25519, which Application Load Balancers do not take",
        "EC_prime256v1",
    ),
}


@pytest.mark.parametrize(
    ("told", "state", "evidence", "fix"), CERTIFICATES.values(), ids=CERTIFICATES
)
def test_a_certificate_is_one_that_the_listener_takes_for_longer(
    told: dict[str, Any], state: str, evidence: str, fix: str
) -> None:
    (finding,) = found(FRONT, front(certificate=ARN), answers(**told))
    assert (finding.subject, finding.state) == (ARN, state)
    assert evidence in finding.evidence
    assert fix in (finding.fix or "")
    assert bool(finding.fix) == (state != "pass")


def test_a_certificate_of_another_account_fails_without_a_question() -> None:
    """The file may name no account; load balancers take certificates of their own."""
    (finding,) = found(FRONT, front(certificate=ARN.replace(ID, "999988887777")), answers())
    assert finding.state == "fail"
    assert f"of account 999988887777, and the load balancer is of {ID}" in finding.evidence


def test_a_certificate_that_nobody_may_see_is_unknown_and_the_subnets_are_looked_at() -> None:
    given = answers(denied(DESCRIBE)) | room(8, 8)
    findings = found(FRONT, front(certificate=ARN), given)
    assert [each.state for each in findings] == ["unknown", "pass", "pass"]
    assert findings[0].denied == DESCRIBE


def room(*free: int, kind: str = "private") -> dict[str, Told]:
    """Return the VPC of the cluster with so many free addresses in the zones' subnets."""
    planned = [each for each in pools_plan(network=NETWORK).network.subnets if each.kind == kind]
    there = [
        {"SubnetId": f"subnet-{number}", "CidrBlock": str(each.cidr), "AvailableIpAddressCount": n}
        for number, (each, n) in enumerate(zip(planned, free, strict=True))
    ]
    return {VPCS: {"Vpcs": [OWN, {"VpcId": "vpc-2"}]}, SUBNETS: {"Subnets": there}}


def test_each_subnet_of_the_load_balancer_has_eight_free_addresses() -> None:
    first, second = found(FRONT, front(), room(8, 7))
    assert (first.subject, first.state) == ("subnet-0 in us-west-2a", "pass")
    assert (second.subject, second.state) == ("subnet-1 in us-west-2b", "fail")
    assert second.evidence == "7 addresses are free, and a load balancer needs 8"
    assert "Name=subnet-id,Values=subnet-1 --region us-west-2" in (second.fix or "")


def test_a_load_balancer_of_the_internet_lies_in_public_subnets() -> None:
    plan = front(
        exposure="internet", api_keys="keys", certificate=ARN, allowed_cidrs=["8.8.8.0/24"]
    )
    findings = found(FRONT, plan, answers() | room(0, 100, kind="public"))
    assert states(findings[1:]) == {
        "subnet-0 in us-west-2a": "fail",
        "subnet-1 in us-west-2b": "pass",
    }


def test_of_a_vpc_that_exists_the_subnets_of_the_file_are_looked_at() -> None:
    """One of a zone: the first that is large enough, though others have the same use."""
    more = [subnet(20, "us-east-1a", "10.20.0.128/28", "nodes"), *subnets()]
    document = existing_document(subnets=more)
    document["serving"] = {"front": {}}
    plan = plan_cluster(config.loads(as_text(document)))
    there = [
        {"SubnetId": each["id"], "CidrBlock": each["cidr"], "AvailableIpAddressCount": 9 - number}
        for number, each in enumerate(each for each in more if "nodes" in each["use"])
    ]

    findings = found(FRONT, plan, {SUBNETS: {"Subnets": there}})

    assert states(findings) == {
        "subnet-0a1b2c3d4e5f60021 in us-east-1a": "pass",
        "subnet-0a1b2c3d4e5f60022 in us-east-1b": "fail",
    }


@pytest.mark.parametrize("serving", [None, {"front": {"exposure": "cluster"}}])
def test_without_a_load_balancer_nothing_is_asked(serving: Any) -> None:
    assert found(FRONT, pools_plan(serving=serving), {}) == []


def test_subnets_that_nobody_may_see_are_no_pass() -> None:
    with pytest.raises(UnansweredError, match=SUBNETS):
        found(FRONT, front(), room(8, 8) | {SUBNETS: denied(SUBNETS)})


@pytest.mark.parametrize(("managed", "state"), [(True, "fail"), (False, "pass"), (None, "pass")])
def test_one_alone_writes_the_definitions_of_the_gateway_api(
    managed: bool | None, state: str
) -> None:
    """EKS Auto Mode would put its version in place of that which the front's proxies need."""
    auto = {"name": "gpu", "instance_types": ["g6e.12xlarge"], "provisioner": "auto-mode"}
    cluster = pools_plan(auto | {"nodes": {"max": 4}}, serving={"front": {}}, network=NETWORK)
    balancing = {} if managed is None else {"gatewayApi": {"crds": {"managed": managed}}}
    deployed = {"kubernetesNetworkConfig": {"elasticLoadBalancing": balancing}}
    told = {**answers(), "eks:DescribeCluster": {"cluster": deployed}}

    (finding,) = (each for each in found(FRONT, cluster, told) if each.subject == "Gateway API")

    assert finding.state == state
