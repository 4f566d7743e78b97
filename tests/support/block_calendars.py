"""Block calendars in stacks of their own, and what to read out of their templates."""

from collections.abc import Mapping
from typing import Any

from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_context, make_stack, resources, the
from tests.support.pools import CAPACITY_BLOCK, SYSTEM_POOL, make_cluster, pool_document
from ultrascale.lambdas.block_calendar.entry import Entry
from ultrascale.plan.model import NodePoolPlan, PoolPlan
from ultrascale.plan.pools.node_pools import plan_node_pools
from ultrascale.plan.pools.pool import plan_pool
from ultrascale_constructs.block_calendar import NodeGroupCalendar, NodePoolCalendar

SCHEDULE = "AWS::Scheduler::Schedule"
CALENDAR = "Custom::BlockCalendar"
FUNCTION = "AWS::Lambda::Function"
MANAGED_ARN = "arn:aws:eks:us-west-2:111122223333:nodegroup/research/train-1/0123"
GROUP_ARN = (
    "arn:aws:autoscaling:us-west-2:111122223333:autoScalingGroup:0123:autoScalingGroupName/a"
)
# What the function of every calendar may do.
OF_EVERY_FUNCTION = {
    ("ec2:DescribeCapacityReservations", "*"),
    ("logs:CreateLogStream", "Arn"),
    ("logs:PutLogEvents", "Arn"),
}


def block_pool(provisioner: str) -> PoolPlan:
    nodes = {"static": 16} if provisioner == "karpenter" else {"max": 16}
    document = pool_document(
        role="reserved", purchase=CAPACITY_BLOCK, provisioner=provisioner, nodes=nodes
    )
    cluster = make_cluster(karpenter={"version": "1.15.2"}, pools=[SYSTEM_POOL, document])
    return plan_pool(cluster.pools[-1], kubernetes_version=cluster.kubernetes.version)


def block_node_pool() -> NodePoolPlan:
    pool = block_pool("karpenter")
    (node_pool,) = plan_node_pools(make_cluster(), [pool])
    return node_pool


def group_calendar(provisioner: str, plan: PoolPlan | None = None) -> Template:
    stack = make_stack()
    NodeGroupCalendar(
        stack,
        "Calendar",
        plan=plan or block_pool(provisioner),
        cluster_name="research",
        group_name="train-1",
        group_arn=MANAGED_ARN if provisioner == "managed-node-group" else GROUP_ARN,
        log_retention_days=90,
    )
    return Template.from_stack(stack)


def pool_calendar(plan: NodePoolPlan) -> Template:
    stack = make_stack()
    NodePoolCalendar(
        stack, "Calendar", plan=plan, cluster=make_context(stack), log_retention_days=90
    )
    return Template.from_stack(stack)


def schedules(template: Template) -> Mapping[str, Mapping[str, Any]]:
    """Return the schedules by their expression."""
    found = [body["Properties"] for body in resources(template, SCHEDULE)]
    return {schedule["ScheduleExpression"]: schedule for schedule in found}


def direct_calls(template: Template) -> Mapping[str, Mapping[str, Any]]:
    """Return the schedules that set a size themselves, by their expression."""
    found = schedules(template)
    return {expression: found[expression] for expression in found if "cron" in expression}


def alarm_on(template: Template, metric: str) -> Mapping[str, Any]:
    alarms = [body["Properties"] for body in resources(template, "AWS::CloudWatch::Alarm")]
    (alarm,) = (alarm for alarm in alarms if alarm["MetricName"] == metric)
    return alarm


def text(value: Any) -> str:
    """Return a text of a template in which what CloudFormation fills in is a star."""
    if isinstance(value, str):
        return value
    parts = value["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else "*" for part in parts)


def rights(template: Template) -> set[tuple[str, str]]:
    """Return every action that a policy in the template allows, with its resource."""
    policies = [body["Properties"] for body in resources(template, "AWS::IAM::Policy")]
    for role in resources(template, "AWS::IAM::Role"):
        policies += role["Properties"].get("Policies", [])
    allowed: set[tuple[str, str]] = set()
    for policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            actions = statement["Action"]
            for action in [actions] if isinstance(actions, str) else actions:
                resource = statement["Resource"]
                allowed.add((action, _resource(resource)))
    return allowed


def _resource(value: Any) -> str:
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        return text(value)
    return value["Ref"] if "Ref" in value else value["Fn::GetAtt"][1]


def read_back(template: Template) -> Entry:
    """Return what the function of the calendar is called with at a deploy, as it reads it."""
    properties: Any = the(template, CALENDAR)
    return Entry.parse(properties)


def trusts_of_schedules(template: Template) -> list[Mapping[str, Any]]:
    """Return the statements by which schedules may take on a role."""
    return [
        statement
        for role in resources(template, "AWS::IAM::Role")
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        if statement["Principal"] == {"Service": "scheduler.amazonaws.com"}
    ]
