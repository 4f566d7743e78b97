"""The account: its Region, zones that offer the pools' instance types, and its CDK bootstrap."""

from collections.abc import Iterator, Set

from ultrascale.account.zones import ACTION, Zones, zones_of
from ultrascale.catalog import regions
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, State
from ultrascale.preflight.model import Check, Context, WholePool, whole_pools

# --- Account and Region: the file's account, an enabled Region, and a recent CDK bootstrap stack


_REGIONS = "ec2:DescribeRegions"
_ENABLED = frozenset({"opt-in-not-required", "opted-in"})
_NOT_ENABLED = "not-opted-in"


def _identity_findings(context: Context) -> Iterator[Finding]:
    yield _account(context)
    yield _region(context)


def _account(context: Context) -> Finding:
    account, wanted = context.account, context.plan.account
    evidence = f"{account.arn} of account {account.id}"
    if wanted is None:
        return _identity_finding("account", "pass", f"{evidence}; the file names none")
    if wanted == account.id:
        return _identity_finding("account", "pass", f"{evidence}, which the file names")
    fix = "name a profile of that account by --profile, or change `account` in the file"
    return _identity_finding("account", "fail", f"{evidence}; the file names {wanted}", fix)


def _region(context: Context) -> Finding:
    region = context.plan.region
    regions = context.account.ask_all(
        context.account.client("ec2").describe_regions,
        lambda page: page["Regions"],
        AllRegions=True,
        RegionNames=[region],
    )
    status = next(
        (answer["OptInStatus"] for answer in regions if answer["RegionName"] == region), None
    )
    if status in _ENABLED:
        return _identity_finding(region, "pass", f"enabled: {status}")
    fix = f"aws account enable-region --region-name {region}"
    if status == _NOT_ENABLED:
        return _identity_finding(region, "fail", "the account has not enabled it", fix)
    said = "EC2 does not name it" if status is None else f"OptInStatus is {status}"
    return _identity_finding(region, "unknown", said, f"unless the console shows it enabled: {fix}")


def _identity_finding(subject: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=IDENTITY.name, subject=subject, state=state, evidence=evidence, fix=fix)


IDENTITY = Check(
    name="identity",
    title="account and Region",
    # No policy has to allow sts:GetCallerIdentity.
    actions=(_REGIONS,),
    run=_identity_findings,
)


# --- Check of the account's CDK bootstrap stack and its version -----------------------------------


_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
"""Systems Manager parameter with the bootstrap stack's version, for the CDK's default qualifier."""

# aws-cdk-lib 2.275.0 writes it into an assembly as `requiresBootstrapStackVersion`.
# Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/core/lib/stack-synthesizers/default-synthesizer.ts
_LEAST = 6
# Earlier versions let the role that uploads assets use a bucket with the assets' name in any
# account.
# Source: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_SAFE = 21


def _bootstrap_findings(context: Context) -> Iterator[Finding]:
    try:
        answer = context.account.ask(context.account.client("ssm").get_parameter, Name=_PARAMETER)
    except UnansweredError as error:
        if error.code != "ParameterNotFound":
            raise
        yield _bootstrap_finding(context, "fail", f"there is no parameter {_PARAMETER}")
        return
    text: str = answer["Parameter"]["Value"]
    if not (text.isascii() and text.isdigit()):
        yield _bootstrap_finding(
            context, "fail", f"{_PARAMETER} says {text!r}, which is no version"
        )
    elif (version := int(text)) < _LEAST:
        yield _bootstrap_finding(context, "fail", f"version {version}; at least {_LEAST} is needed")
    elif version < _SAFE:
        evidence = (
            f"version {version} is enough; before {_SAFE}, assets may go to somebody else's bucket"
        )
        yield _bootstrap_finding(context, "warn", evidence)
    else:
        yield _bootstrap_finding(context, "pass", f"version {version}; at least {_LEAST} is needed")


def _bootstrap_finding(context: Context, state: State, evidence: str) -> Finding:
    account, region = context.account.id, context.plan.region
    return Finding(
        check=BOOTSTRAP.name,
        subject=f"aws://{account}/{region}",
        state=state,
        evidence=evidence,
        fix=None if state == "pass" else f"ultrascale cdk bootstrap aws://{account}/{region}",
    )


BOOTSTRAP = Check(
    name="bootstrap",
    title="CDK bootstrap",
    actions=("ssm:GetParameter",),
    run=_bootstrap_findings,
    resources={
        "ssm:GetParameter": "arn:{partition}:ssm:{region}:{account}:parameter/cdk-bootstrap/*"
    },
)


# --- Zones of the cluster file: they exist, take subnets, and offer the pools' instance types -----
# An offering means that a type is sold in a zone, not that there is capacity.
#
# Source:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html


_ACTION = "ec2:DescribeInstanceTypeOfferings"
_NAME = "offerings"
# An instance type, and a zone that offers it.
Offered = Set[tuple[str, str]]


def _offering_findings(context: Context) -> Iterator[Finding]:
    pools = whole_pools(context.plan.all_pools)
    own = [pool for pool in pools if pool.in_account]
    # A file names all zones by name, or all by id.
    by_id = all(map(regions.is_zone_id, context.plan.network.zones))
    offerings = context.account.ask_all(
        context.account.client("ec2").describe_instance_type_offerings,
        lambda page: page["InstanceTypeOfferings"],
        LocationType="availability-zone-id" if by_id else "availability-zone",
        Filters=[
            {
                "Name": "instance-type",
                "Values": sorted({name for pool in own for name in pool.plan.instance_types}),
            }
        ],
    )
    offered = {(offering["InstanceType"], offering["Location"]) for offering in offerings}
    for pool in pools:
        if not pool.in_account:
            yield sagemaker_finding(pool, context.plan.region)
        else:
            yield offering_finding(pool, offered)


def offering_finding(pool: WholePool, offered: Offered) -> Finding:
    """Return the finding whether EC2 offers the types of ``pool`` in its zones.

    A node group waits for nodes in all of its zones; Karpenter and EKS Auto Mode pass over zones
    without an offering.

    Args:
        pool: The pool.
        offered: Types and zones that EC2 offers, at least those of the pool.
    """
    plan = pool.plan
    wanted = [(name, zone) for zone in plan.zones for name in plan.instance_types]
    missing = [pair for pair in wanted if pair not in offered]
    if not missing:
        types = _joined_names(plan.instance_types)
        return _finding(pool, "pass", f"{types} in {_joined_names(plan.zones)}")
    empty = [
        zone
        for zone in plan.zones
        if not any((name, zone) in offered for name in plan.instance_types)
    ]
    evidence = "; ".join(f"no {name} in {zone}" for name, zone in missing)
    elsewhere = sorted({zone for name, zone in offered if name in plan.instance_types})
    fix = (
        f"use zones of {_joined_names(elsewhere)}"
        if elsewhere
        else "use other types or another Region"
    )
    if plan.purchase == "capacity-block":
        # A block's reservation says where its instances are, and some types are sold only as
        # blocks.
        fix = "see what the reservation's own check says of the zone"
        return _finding(pool, "warn", evidence, fix)
    state: State = "warn"
    if len(empty) == len(plan.zones) or (empty and plan.is_node_group):
        state = "fail"
    return _finding(pool, state, evidence, fix)


def sagemaker_finding(pool: WholePool, region: str) -> Finding:
    """Return the finding from AWS's published lists: SageMaker cannot be asked for offerings.

    The finding warns at most: an ``unknown`` that no permission solves would fail every cluster
    with HyperPod. A training plan itself states its instances and their zone.
    """
    if pool.plan.purchase == "training-plan":
        return _finding(pool, "pass", "its training plan says where its instances are")
    name = pool.plan.instance_types[0]
    published = {
        True: f"AWS lists ml.{name} in {region}",
        False: f"AWS does not list ml.{name} in {region}, in a list that ages",
        None: f"no list of AWS says whether {region} has ml.{name}",
    }[regions.offered(name, region, by="sagemaker")]
    evidence = f"SageMaker does not say in which zones it has instances; {published}"
    return _finding(pool, "warn", evidence, "ask your account team, or buy a training plan")


def _finding(pool: WholePool, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_NAME, subject=pool.name, state=state, evidence=evidence, fix=fix)


def _joined_names(items: tuple[str, ...] | list[str]) -> str:
    return ", ".join(items)


OFFERINGS = Check(
    name=_NAME,
    title="instance types are offered in the pools' zones",
    actions=(_ACTION,),
    run=_offering_findings,
)


# --- Zones of the cluster file: the account has them, and subnets are allowed in them -------------
# Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html (zones without EKS
# control planes)


_ZONES = "zones"
_ZONE = "availability-zone"


def _zone_findings(context: Context) -> Iterator[Finding]:
    zones, network = zones_of(context.account), context.plan.network
    for name in dict.fromkeys(subnet.zone for subnet in network.subnets):
        controls = any(subnet.zone == name for subnet in network.of_kind("control-plane"))
        yield zone_finding(name, zones, context.plan.region, controls=controls)


def zone_finding(name: str, zones: Zones, region: str, *, controls: bool = True) -> Finding:
    """Return the finding whether a zone allows subnets, including the control plane's.

    Args:
        name: Name or id of the zone in the cluster file.
        zones: Zones of the account, by name and by id.
        region: The Region.
        controls: Whether the control plane has a subnet there.
    """
    zone = zones.get(name)
    if zone is None:
        there = sorted({str(other) for other in zones.values() if other.kind == _ZONE})
        fix = f"name a zone of this account: {', '.join(there)}"
        return _zone_finding(name, "fail", f"the account has no zone {name} in {region}", fix)
    if controls and (zone.id in regions.ZONES_WITHOUT_CONTROL_PLANE or zone.kind != _ZONE):
        why = "EKS takes no subnet of it for a control plane"
        fix = "put no control-plane subnet there; each of network.zones gets one"
        return _zone_finding(name, "fail", f"{zone}, of kind {zone.kind}: {why}", fix)
    if not zone.opted_in:
        command = (
            f"aws ec2 modify-availability-zone-group --group-name {zone.group} "
            f"--opt-in-status opted-in --region {region}"
        )
        return _zone_finding(
            name, "fail", f"the account has not opted in to {zone}", f"`{command}`"
        )
    if zone.state != "available":
        fix = "read the AWS Health dashboard before you deploy there"
        return _zone_finding(name, "warn", f"{zone} is {zone.state}", fix)
    return _zone_finding(name, "pass", str(zone))


def _zone_finding(name: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_ZONES, subject=name, state=state, evidence=evidence, fix=fix)


ZONES = Check(
    name=_ZONES, title="the account has the file's zones", actions=(ACTION,), run=_zone_findings
)
