"""Offerings of the pools' instance types in their zones.

An offering means that a type is sold in a zone, not that there is capacity.

Source:
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html
"""

from collections.abc import Iterator, Set

from ultrascale.catalog import regions
from ultrascale.preflight.model import Check, Context, Finding, State
from ultrascale.preflight.pools import WholePool, whole_pools

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
