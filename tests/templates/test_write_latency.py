"""The stack of the objective for writes: who may write what, and what CloudFormation gets."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import REGION, make_context, make_stack, resources, the
from tests.support.kubernetes_schemas import validate_core
from tests.support.observability_plans import CLUSTERS, of
from ultrascale_constructs.observability import Dashboard, WriteLatency
from ultrascale_k8s import define_charts

CLUSTER = CLUSTERS["with an objective"]
PLAN = of(CLUSTER).write_latency
assert PLAN is not None


@pytest.fixture(scope="module")
def template() -> Template:
    stack = make_stack()
    assert PLAN is not None
    WriteLatency(stack, "WriteLatency", plan=PLAN, cluster=make_context(stack))
    Dashboard(
        stack,
        "Dashboard",
        name="d",
        sections=of(CLUSTER).dashboard,
        period_seconds=60,
        placeholders={},
    )
    return Template.from_stack(stack)


def test_the_objective_is_over_the_writes_of_the_canary(template: Template) -> None:
    slo = the(template, "AWS::ApplicationSignals::ServiceLevelObjective")
    metric = slo["RequestBasedSli"]["RequestBasedSliMetric"]
    (good,) = metric["MonitoredRequestCountMetric"]["GoodCountMetric"]
    (total,) = metric["TotalRequestCountMetric"]

    assert slo["Goal"] == {
        "AttainmentGoal": 90,
        "Interval": {"RollingInterval": {"Duration": 7, "DurationUnit": "DAY"}},
    }
    for query, name in ((good, "WritesWithin15ms"), (total, "WritesTotal")):
        assert query["MetricStat"]["Metric"] == {
            "Namespace": "Ultrascale",
            "MetricName": name,
            "Dimensions": [{"Name": "ClusterName", "Value": "research"}],
        }
        assert (query["MetricStat"]["Stat"], query["MetricStat"]["Period"]) == ("Sum", 60)
        assert query["ReturnData"] is True


def test_alarms_name_the_objective_as_it_is_called_and_count_good_writes_of_all(
    template: Template,
) -> None:
    # Of another name there is no metric, and CloudWatch says nothing of that.
    slo = the(template, "AWS::ApplicationSignals::ServiceLevelObjective")
    (schedule,) = template.find_resources("AWS::Scheduler::Schedule")
    alarms = {each["Properties"]["AlarmName"]: each["Properties"] for each in _alarms(template)}
    attained, share = (alarms[f"research-write-latency{end}"] for end in ("-objective", ""))
    good, total, result = share["Metrics"]

    assert attained["Dimensions"] == [{"Name": "SloName", "Value": slo["Name"]}]
    assert attained["Threshold"] == slo["Goal"]["AttainmentGoal"]
    assert attained["TreatMissingData"] == "breaching"
    assert result["Expression"] == "100 * good / total"
    assert [each["ReturnData"] for each in (good, total, result)] == [False, False, True]
    assert (good["Id"], total["Id"]) == ("good", "total")
    assert not share.keys() & {"MetricName", "Namespace", "Statistic", "Period"}
    # They wait for what they watch.
    assert all(schedule in alarm["DependsOn"] for alarm in _alarms(template))


def test_the_canary_is_called_each_minute_as_the_plan_says(template: Template) -> None:
    schedule = the(template, "AWS::Scheduler::Schedule")
    function = the(template, "AWS::Lambda::Function")
    assert PLAN is not None

    assert schedule["ScheduleExpression"] == "rate(1 minute)"
    assert json.loads(schedule["Target"]["Input"]) == PLAN.function.input
    assert function["Handler"] == "lambdas.write_canary.handler.on_event"
    assert function["Timeout"] == 120
    assert function["VpcConfig"]["SubnetIds"] == ["subnet-a", "subnet-b"]
    # Of the ten executions that an account starts with none can be reserved.
    assert "ReservedConcurrentExecutions" not in function


def test_the_canary_may_patch_its_lease_read_its_cluster_and_nothing_else(
    template: Template,
) -> None:
    access = the(template, "AWS::EKS::AccessEntry")
    (chart,) = (each for each in define_charts(CLUSTER).platform if each.name == "write-canary")
    objects: dict[str, Any] = {str(each["kind"]): each for each in chart.manifests}
    found = [
        statement["Action"]
        for policy in resources(template, "AWS::IAM::Policy")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    actions = {action for each in found for action in ([each] if isinstance(each, str) else each)}

    assert actions == {"eks:DescribeCluster", "logs:CreateLogStream", "logs:PutLogEvents"}
    lease = {"resources": ["leases"], "resourceNames": ["write-canary"], "verbs": ["patch"]}
    assert objects["Role"]["rules"] == [{"apiGroups": ["coordination.k8s.io"], **lease}]
    assert access["KubernetesGroups"] == [objects["RoleBinding"]["subjects"][0]["name"]]
    assert "AccessPolicies" not in access
    assert {each["metadata"]["namespace"] for each in objects.values()} == {"write-canary"}
    assert [line for each in objects.values() for line in validate_core(each, "1.35")] == []
    # What a deploy applies again must not take the Lease from the run that holds it.
    assert "spec" not in objects["Lease"]


def test_limits_are_drawn_across_their_graphs(template: Template) -> None:
    body = the(template, "AWS::CloudWatch::Dashboard")["DashboardBody"]
    text = body if isinstance(body, str) else "".join(map(str, body["Fn::Join"][1]))
    graphs = {
        widget["properties"]["title"]: widget["properties"]
        for widget in json.loads(text.replace("{'Ref': 'AWS::Region'}", REGION))["widgets"]
        if widget["type"] == "metric"
    }

    assert graphs["API server seats in use"]["annotations"]["horizontal"] == [
        {"label": "limit of tier-8xl", "value": 16000}
    ]
    assert "annotations" not in graphs["Requests in flight"]


def _alarms(template: Template) -> list[dict[str, Any]]:
    return resources(template, "AWS::CloudWatch::Alarm")
