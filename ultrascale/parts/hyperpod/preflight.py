"""Checks of an account: training plans beside the groups that use them, and the cluster's name.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_DescribeTrainingPlan.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ReservedCapacitySummary.html
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from ultrascale.account.zones import ACTION as ZONES_ACTION
from ultrascale.account.zones import Zone, zones_of
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.parts.hyperpod.model import Plan
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.model import Check, Context, WholePool, whole_pools
from ultrascale.preflight.reservation_fields import in_utc, time_text, window_issues
from ultrascale.preflight.stacks import FixedName, PartNames

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.type_defs import DescribeTrainingPlanResponseTypeDef as TrainingPlan
    from mypy_boto3_sagemaker.type_defs import ReservedCapacitySummaryTypeDef as ReservedCapacity

    from ultrascale.account import Account

_NAME = "training-plans"
_ACTION = "sagemaker:DescribeTrainingPlan"
_TARGET = "hyperpod-cluster"
# SageMaker's codes for a plan that does not exist.
_NOT_THERE = frozenset({"ResourceNotFound", "ResourceNotFoundException", "ValidationException"})


def _run(context: Context) -> Iterator[Finding]:
    plans = training_plans(context.plan)
    if not plans:
        return
    zones = zones_of(context.account)
    for arn, pools in plans.items():
        subject = f"{', '.join(pool.name for pool in pools)}: {arn.rpartition('/')[2]}"
        try:
            answer = context.account.ask(
                context.account.client("sagemaker").describe_training_plan,
                TrainingPlanName=arn.rpartition("/")[2],
            )
        except UnansweredError as error:
            yield (
                _missing_plan_finding(subject, error)
                if error.code in _NOT_THERE
                else unknown(_NAME, subject, error)
            )
        else:
            wrong = plan_issues(arn, pools, answer, zones=zones, at=context.at)
            yield finding(_NAME, subject, wrong, fine=_passing_text(answer))


def training_plans(plan: ClusterPlan) -> Mapping[str, tuple[WholePool, ...]]:
    """Return the training plans in ``plan``, by ARN, with the pools of each."""
    arns: dict[str, str] = {}
    own = plan.part(Plan)
    for group in own.cluster.groups if own is not None else ():
        if group.training_plan is not None:
            arns[group.name] = group.training_plan
    grouped: dict[str, list[WholePool]] = {}
    for pool in whole_pools(plan.all_pools):
        if pool.plan.name in arns:
            grouped.setdefault(arns[pool.plan.name], []).append(pool)
    return {arn: tuple(pools) for arn, pools in grouped.items()}


def plan_issues(
    arn: str,
    pools: Sequence[WholePool],
    answer: "TrainingPlan",
    *,
    zones: Mapping[str, Zone],
    at: datetime,
) -> Iterator[Issue]:
    """Yield the issues of a training plan.

    Args:
        arn: Its ARN in the cluster file.
        pools: The pools that name it.
        answer: The plan in SageMaker's description.
        zones: Zones of the account, by name and by id.
        at: The time that counts as now, in UTC.
    """
    if answer["TrainingPlanArn"] != arn:
        # The call names the plan: in another account, that name means another plan.
        evidence = f"TrainingPlanArn is {answer['TrainingPlanArn']} in the account"
        yield Issue(state="fail", evidence=evidence, fix="write the ARN of the account's own plan")
    yield from _status(answer, at)
    targets = answer.get("TargetResources", ())
    if _TARGET not in targets:
        yield Issue(
            state="fail",
            evidence=f"TargetResources are {', '.join(targets) or 'none'}: HyperPod cannot use it",
            fix=f"name a plan that was bought for {_TARGET}",
        )
    window = pools[0].plan.window
    yield from window_issues(
        window,
        starts=("StartTime", answer.get("StartTime")),
        ends=("EndTime", answer.get("EndTime")),
    )
    yield from _capacities(pools, answer, zones)


def _status(answer: "TrainingPlan", at: datetime) -> Iterator[Issue]:
    status, starts = answer["Status"], in_utc(answer.get("StartTime"))
    why = f" ({answer['StatusMessage']})" if answer.get("StatusMessage") else ""
    if status in ("Expired", "Failed"):
        evidence = f"Status is {status}{why}"
        yield Issue(state="fail", evidence=evidence, fix="name a plan that is there")
    elif status == "Pending":
        evidence = f"Status is Pending{why}: the purchase is not final"
        yield Issue(state="warn", evidence=evidence, fix="run preflight again")
    elif status == "Scheduled" and starts is not None and at >= starts:
        evidence = f"Status is Scheduled, to start {time_text(starts)}, which is over"
        yield Issue(state="warn", evidence=evidence, fix="open a support case if it stays so")
    elif status not in ("Active", "Scheduled"):
        yield Issue(state="unknown", evidence=f"Status is {status}{why}", fix="look in the console")


def _capacities(
    pools: Sequence[WholePool],
    answer: "TrainingPlan",
    zones: Mapping[str, Zone],
) -> Iterator[Issue]:
    """Yield the issues of the parts of a plan: it may have two, one after the other."""
    parts = answer.get("ReservedCapacitySummaries", ())
    if not parts:
        evidence = "ReservedCapacitySummaries is empty: SageMaker does not say what is reserved"
        yield Issue(state="unknown", evidence=evidence, fix="ask again once the plan is scheduled")
        return
    nodes = sum(pool.nodes for pool in pools)
    types = {name for pool in pools for name in pool.plan.node_types}
    wanted = {zones[name] for pool in pools for name in pool.plan.zones if name in zones}
    for part in parts:
        where = f"ReservedCapacitySummaries[] from {time_text(in_utc(part.get('StartTime')))}"
        type = part.get("InstanceType")
        if type not in types:
            ours = " or ".join(sorted(types))
            evidence = f"{where}: InstanceType is {type} in the plan bought, {ours} in the file"
            yield Issue(state="fail", evidence=evidence, fix="set the pool's instance_types to it")
        yield from _zone(where, part, wanted, zones)
        total = part.get("TotalInstanceCount", 0)
        if total < nodes:
            evidence = f"{where}: TotalInstanceCount is {total}, the pools take {nodes}"
            yield Issue(state="fail", evidence=evidence, fix=f"set nodes to {total} in all")
        elif total > nodes:
            evidence = (
                f"{where}: TotalInstanceCount is {total}, the pools take {nodes}: "
                f"{total - nodes} are paid for and not used by this cluster"
            )
            yield Issue(state="warn", evidence=evidence, fix="raise the pools' nodes")
    unhealthy = answer.get("UnhealthyInstanceCount", 0)
    if unhealthy:
        evidence = f"UnhealthyInstanceCount is {unhealthy}"
        yield Issue(state="warn", evidence=evidence, fix="expect as many nodes less, or a wait")


def _zone(
    where: str, part: "ReservedCapacity", wanted: set[Zone], zones: Mapping[str, Zone]
) -> Iterator[Issue]:
    """Compare the zone of a part with the zone of the pools, whose subnets must lie in it."""
    said = part.get("AvailabilityZoneId") or part.get("AvailabilityZone")
    ours = " or ".join(sorted(map(str, wanted)))
    if said is None or not wanted:
        evidence = f"{where}: SageMaker reports no zone; the file has {ours or 'none'}"
        yield Issue(state="unknown", evidence=evidence, fix="look in the console")
        return
    zone = zones.get(said)
    if zone not in wanted:
        evidence = f"{where}: the zone is {zone or said} in the account, {ours} in the file"
        fix = f"set the pool's zones: [{zone.name if zone else said}]"
        yield Issue(state="fail", evidence=evidence, fix=fix)


def _missing_plan_finding(subject: str, error: UnansweredError) -> Finding:
    return Finding(
        check=_NAME,
        subject=subject,
        state="fail",
        evidence=f"the account has no such training plan: {error.reason}",
        fix="`aws sagemaker list-training-plans` lists them; copy the ARN",
    )


def _passing_text(answer: "TrainingPlan") -> str:
    total, status = answer.get("TotalInstanceCount"), answer["Status"]
    return f"{total} instances, {status}, for HyperPod"


TRAINING_PLANS = Check(
    name=_NAME,
    title="training plans are what the pools take them for",
    actions=(_ACTION, ZONES_ACTION),
    run=_run,
    resources={_ACTION: "arn:{partition}:sagemaker:{region}:{account}:training-plan/*"},
    follows="reservations",
)
CHECKS = (TRAINING_PLANS,)


def _fixed_names(plan: ClusterPlan) -> Iterator[FixedName]:
    own = plan.part(Plan)
    if own is not None:
        name = own.cluster.name
        yield FixedName(
            kind="HyperPod cluster",
            name=name,
            layers=("hyperpod-groups",),
            find=partial(_cluster_arn, name=name),
            remove=f"aws sagemaker delete-cluster --cluster-name {name} --region {plan.region}",
        )


def _cluster_arn(account: "Account", name: str) -> str:
    """Return the ARN, which is CloudFormation's id of a HyperPod cluster."""
    answer = account.ask(account.client("sagemaker").describe_cluster, ClusterName=name)
    return answer["ClusterArn"]


NAMES = PartNames(
    names=_fixed_names,
    resources={
        "sagemaker:DescribeCluster": "arn:{partition}:sagemaker:{region}:{account}:cluster/*"
    },
)
