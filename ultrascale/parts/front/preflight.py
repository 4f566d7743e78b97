"""The load balancer of the front: its certificate, and room in its subnets.

Sources:
    https://docs.aws.amazon.com/acm/latest/APIReference/API_CertificateDetail.html
    https://docs.aws.amazon.com/acm/latest/userguide/managed-renewal.html
    https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.parts.front import load_balancer_controller as alb
from ultrascale.parts.front.model import LoadBalancerPlan, Plan
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.network import is_own

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef
    from mypy_boto3_ec2.type_defs import SubnetTypeDef as Subnet

    from ultrascale.account.clients import Certificate

_NAME = "front"
_CERTIFICATE = "acm:DescribeCertificate"
_VPCS, _SUBNETS = "ec2:DescribeVpcs", "ec2:DescribeSubnets"
_CLUSTER = "eks:DescribeCluster"
_NOT_THERE = "ResourceNotFoundException"
_ANOTHER = "write the ARN of another certificate into serving.front.certificate"
# Our own figure, in days: ACM renews earlier, so a certificate with less time is not being renewed.
_SOON = timedelta(days=30)
_STUCK = ("PENDING_VALIDATION", "FAILED")


def _run(context: Context) -> Iterator[Finding]:
    front = context.plan.part(Plan)
    if front is not None and any(pool.is_auto_mode for pool in context.plan.all_pools):
        yield from _definitions(context)
    balancer = front.load_balancer if front is not None else None
    if balancer is None:
        return
    if balancer.certificate is not None:
        yield _certificate(context, balancer.certificate)
    yield from _rooms(context, balancer)


def _definitions(context: Context) -> Iterator[Finding]:
    """Yield whether the front alone writes the definitions of the Gateway API.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_GatewayApiConfiguration.html
    """
    name = context.plan.name
    try:
        answer = context.account.ask(context.account.client("eks").describe_cluster, name=name)
    except UnansweredError as error:
        if error.code != _NOT_THERE:
            raise
        return
    balancing = answer["cluster"].get("kubernetesNetworkConfig", {}).get("elasticLoadBalancing", {})
    issues: list[Issue] = []
    if balancing.get("gatewayApi", {}).get("crds", {}).get("managed"):
        evidence = "EKS Auto Mode creates and updates the Gateway API's CRDs, and so does the front"
        fix = "switch gatewayApi.crds.managed off on the cluster: the front brings its version"
        issues.append(Issue(state="fail", evidence=evidence, fix=fix))
    yield finding(_NAME, "Gateway API", issues, fine="EKS Auto Mode leaves its CRDs alone")


def _certificate(context: Context, arn: str) -> Finding:
    owner = arn.split(":")[4]
    if owner != context.account.id:
        evidence = f"of account {owner}, and the load balancer is of {context.account.id}"
        fix = f"request or import it in {context.account.id}, and {_ANOTHER}"
        return finding(_NAME, arn, [Issue(state="fail", evidence=evidence, fix=fix)], fine="")
    acm = context.account.client("acm")
    try:
        certificate = context.account.ask(acm.describe_certificate, CertificateArn=arn)[
            "Certificate"
        ]
        issues = [*_certificate_issues(context, arn, certificate)]
        until = certificate.get("NotAfter")
        expiry = f", until {until:%Y-%m-%d}" if until is not None else ""
        fine = f"issued for {certificate['DomainName']}{expiry}"
    except UnansweredError as error:
        if error.code != _NOT_THERE:
            return unknown(_NAME, arn, error)
        evidence = f"there is no such certificate in {context.plan.region}"
        fix = f"request or import it there, and {_ANOTHER}"
        return finding(_NAME, arn, [Issue(state="fail", evidence=evidence, fix=fix)], fine="")
    return finding(_NAME, arn, issues, fine=fine)


def _certificate_issues(context: Context, arn: str, certificate: "Certificate") -> Iterator[Issue]:
    where = f"--certificate-arn {arn} --region {context.plan.region}"
    imported = certificate["Type"] == "IMPORTED"
    anew = f"`aws acm import-certificate {where}` with a new one"
    validate = f"publish the records that `aws acm describe-certificate {where}` shows"
    status = certificate["Status"]
    if status != "ISSUED":
        fixes = {"PENDING_VALIDATION": validate, "EXPIRED": anew if imported else _ANOTHER}
        evidence = f"its status is {status}: no listener takes it"
        yield Issue(state="fail", evidence=evidence, fix=fixes.get(status, _ANOTHER))
    # ACM writes RSA-2048 in answers, but RSA_2048 in its documentation.
    algorithm = certificate["KeyAlgorithm"].replace("-", "_")
    if algorithm not in alb.KEY_ALGORITHMS:
        evidence = f"its key is {algorithm}, which Application Load Balancers do not take"
        taken = ", ".join(sorted(alb.KEY_ALGORITHMS))
        yield Issue(state="fail", evidence=evidence, fix=f"{_ANOTHER}, with a key of {taken}")
    until = certificate.get("NotAfter")
    if status != "ISSUED" or until is None:
        return
    renewal = certificate.get("RenewalSummary", {}).get("RenewalStatus", "")
    if imported and until <= context.at:
        yield Issue(state="fail", evidence=f"it ends at {until:%Y-%m-%d %H:%M}", fix=anew)
    elif imported and until <= context.at + _SOON:
        evidence = f"it ends at {until:%Y-%m-%d %H:%M}, and ACM renews no imported one"
        yield Issue(state="warn", evidence=evidence, fix=anew)
    elif not imported and (renewal in _STUCK or until <= context.at + _SOON):
        stands = f", its renewal is {renewal}" if renewal else ""
        evidence = f"it ends at {until:%Y-%m-%d %H:%M}{stands}"
        fix = f"see that ACM can renew it, which it does where it is in use: {validate}"
        yield Issue(state="warn", evidence=evidence, fix=fix)


def _rooms(context: Context, balancer: LoadBalancerPlan) -> Iterator[Finding]:
    for zone, subnet in _subnets(context, balancer):
        free = subnet["AvailableIpAddressCount"]
        issues: list[Issue] = []
        if free < alb.FREE_ADDRESSES:
            evidence = f"{free} addresses are free, and a load balancer needs {alb.FREE_ADDRESSES}"
            fix = (
                "see what holds them: `aws ec2 describe-network-interfaces --filters "
                f"Name=subnet-id,Values={subnet['SubnetId']} --region {context.plan.region}`"
            )
            issues.append(Issue(state="fail", evidence=evidence, fix=fix))
        subject = f"{subnet['SubnetId']} in {zone}"
        yield finding(_NAME, subject, issues, fine=f"{free:,} addresses are free")


def _subnets(context: Context, balancer: LoadBalancerPlan) -> "Iterator[tuple[str, Subnet]]":
    """Yield the subnets of the load balancer with their zones; none before the VPC is there."""
    ec2 = context.account.client("ec2")
    existing = context.plan.network.existing
    if existing is not None:
        vpcs: Sequence[str] = [existing.vpc_id]
    else:
        vpcs_of_account = context.account.ask_all(ec2.describe_vpcs, lambda page: page["Vpcs"])
        vpcs = [vpc["VpcId"] for vpc in vpcs_of_account if is_own(vpc, context.plan.name)]
    if not vpcs:
        return
    filters: list[FilterTypeDef] = [{"Name": "vpc-id", "Values": vpcs}]
    there = context.account.ask_all(
        ec2.describe_subnets, lambda page: page["Subnets"], Filters=filters
    )
    for planned in balancer.subnets:
        for subnet in there:
            # The file has the id of a subnet in an existing VPC, but only the range of our own.
            key = subnet["SubnetId"] if planned.id is not None else subnet["CidrBlock"]
            if key == (planned.id or str(planned.cidr)):
                yield planned.zone, subnet


FRONT = Check(
    name=_NAME,
    title="certificate and subnets of the front's load balancer",
    actions=(_CERTIFICATE, _VPCS, _SUBNETS, _CLUSTER),
    run=_run,
    resources={
        _CERTIFICATE: "arn:{partition}:acm:{region}:{account}:certificate/*",
        _CLUSTER: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}",
    },
)
CHECKS = (FRONT,)
