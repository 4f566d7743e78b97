"""The stack behind the dashboard and the alarms: what reaches whom, and with which rights."""

import json
from collections.abc import Iterator
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.assertions import Template
from msgspec.structs import replace

from tests.support.applied import applied
from tests.support.assembly import Assembly
from tests.support.construct_stacks import make_stack, resources, the
from tests.support.hyperpod import hyperpod_of
from tests.support.observability_plans import CLUSTERS, alerts, of
from ultrascale_constructs.alarm import send_alarms
from ultrascale_constructs.hyperpod.addons import HyperPodObservability
from ultrascale_k8s import define_charts
from ultrascale_k8s.observability import charts
from ultrascale_stacks.builders import define_stacks

Document = dict[str, Any]
FUNCTION = "lambdas.fleet_metrics.handler.on_event"


@pytest.fixture(scope="session")
def template(hybrid: Assembly) -> Document:
    return dict(hybrid.templates["observability"])


def bodies(template: Document, kind: str) -> list[Any]:
    return [each for each in template["Resources"].values() if each["Type"] == kind]


def properties(template: Document, kind: str) -> list[Any]:
    return [each["Properties"] for each in bodies(template, kind)]


def statements(document: Any) -> Iterator[Any]:
    yield from document["Statement"]


def service(statement: Any) -> str:
    principal: Any = statement["Principal"]
    return "*" if isinstance(principal, str) else principal.get("Service", "")


def schedules(template: Document) -> dict[str, Any]:
    return {
        each["ScheduleExpression"]: each
        for each in properties(template, "AWS::Scheduler::Schedule")
    }


def test_the_schedule_hands_the_plan_to_the_function_which_reads_its_cluster_and_no_more(
    hybrid: Assembly, template: Document
) -> None:
    (function,) = properties(template, "AWS::Lambda::Function")
    called = schedules(template)["rate(1 minute)"]["Target"]
    policies = properties(template, "AWS::IAM::Policy")
    found = [s["Action"] for p in policies for s in statements(p["PolicyDocument"])]

    assert function["Handler"] == FUNCTION
    sent = of(hybrid.plan).fleet_metrics.input
    assert json.loads(called["Input"]) == json.loads(json.dumps(sent))
    assert called["Arn"]["Fn::GetAtt"][1] == "Arn"
    # It reaches a private API server.
    assert function["VpcConfig"]["SubnetIds"]
    assert len(function["VpcConfig"]["SecurityGroupIds"]) == 1
    actions = {a for each in found for a in ([each] if isinstance(each, str) else each)}
    assert actions == {"eks:DescribeCluster", "logs:CreateLogStream", "logs:PutLogEvents"}


def test_the_function_may_list_and_nothing_else(hybrid: Assembly, template: Document) -> None:
    (access,) = properties(template, "AWS::EKS::AccessEntry")
    role = hybrid.find("ClusterRole", "ultrascale:fleet-metrics")
    binding = hybrid.find("ClusterRoleBinding", "ultrascale:fleet-metrics")

    assert access["KubernetesGroups"] == [binding["subjects"][0]["name"]]
    assert "AccessPolicies" not in access
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
    kinds = {kind for rule in role["rules"] for kind in rule["resources"]}
    assert kinds == {"nodes", "pods", "workloads"}


def test_it_reads_behind_pods_of_services_alone_and_changes_nothing_there() -> None:
    """RBAC knows no ports: whoever may create on pods/proxy may send a request of any method."""
    charts = define_charts(CLUSTERS["with a service"])
    (chart,) = (each for each in charts.all if each.name == "service-metrics")
    found: list[Any] = [*chart.manifests]
    role, binding = found

    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}]
    assert {each["metadata"]["namespace"] for each in (role, binding)} == {"training"}
    assert binding["subjects"][0]["name"] == of(CLUSTERS["with a service"]).fleet_metrics.group
    assert not [
        each for each in define_charts(CLUSTERS["neuron"]).all if each.name == "service-metrics"
    ]


def test_it_may_delete_no_hyper_node_but_the_one_that_it_makes() -> None:
    """A job on nodes whose HyperNodes go is placed anywhere."""
    own = of(CLUSTERS["neuron"])
    metrics = replace(own.fleet_metrics, touched_group="touched")
    plain, touching = (
        applied(charts(each)["platform"][0].published)[0]["rules"]
        for each in (own, replace(own, fleet_metrics=metrics))
    )

    # A cluster without queues gives no right to list them.
    assert len(plain) == 1
    rules = [rule for rule in touching if rule["resources"] == ["hypernodes"]]
    named = {verb: rule.get("resourceNames") for rule in rules for verb in rule["verbs"]}
    assert named == {"list": None, "create": None, "delete": ["touched"]}


def test_log_groups_are_there_before_the_agents_would_make_them_for_ever(
    template: Document,
) -> None:
    (addon,) = bodies(template, "AWS::EKS::Addon")
    groups = {
        id
        for id, each in template["Resources"].items()
        if "containerinsights" in str(each["Properties"].get("LogGroupName"))
    }

    assert len(groups) == 4
    assert groups <= {*addon["DependsOn"]}
    kept = {each["RetentionInDays"] for each in properties(template, "AWS::Logs::LogGroup")}
    assert kept == {7, 90}


def test_whoever_publishes_may_use_the_topic_and_its_key_and_nobody_plain_http(
    template: Document,
) -> None:
    # A service that may publish but not use the key fails in silence.
    (topic,) = properties(template, "AWS::SNS::Topic")
    (key,) = properties(template, "AWS::KMS::Key")
    (policy,) = properties(template, "AWS::SNS::TopicPolicy")
    (subscription,) = properties(template, "AWS::SNS::Subscription")
    wanted = {"cloudwatch.amazonaws.com", "events.amazonaws.com"}

    assert topic["KmsMasterKeyId"]["Fn::GetAtt"][1] == "Arn"
    denials = [s for s in statements(policy["PolicyDocument"]) if s["Effect"] == "Deny"]
    assert [s["Condition"] for s in denials] == [{"Bool": {"aws:SecureTransport": "false"}}]
    publish = [s for s in statements(policy["PolicyDocument"]) if s["Effect"] == "Allow"]
    use = [s for s in statements(key["KeyPolicy"]) if "kms:Decrypt" in s["Action"]]
    # EventBridge tells neither SNS nor KMS its source: with a condition no event would ever arrive.
    for allowed in (publish, use):
        assert {service(s) for s in allowed} == wanted
        limited = {service(s) for s in allowed if "Condition" in s}
        assert limited == {"cloudwatch.amazonaws.com"}
    told = (subscription["Protocol"], subscription["Endpoint"])
    assert told == ("email", "ml-platform@example.com")


def test_an_unhealthy_hyperpod_node_is_told_with_what_hyperpod_does_about_it(
    template: Document,
) -> None:
    rules = {
        each["EventPattern"]["detail-type"][0]: each
        for each in properties(template, "AWS::Events::Rule")
    }
    health = rules["SageMaker HyperPod Cluster Node Health Event"]
    (target,) = health["Targets"]
    transformer = target["InputTransformer"]

    assert health["EventPattern"]["detail"] == {
        "ClusterName": ["hybrid-hyperpod"],
        "HealthSummary": {"HealthStatus": ["Unhealthy"]},
    }
    assert transformer["InputPathsMap"]["repair"] == "$.detail.HealthSummary.RepairAction"
    # Each of the names between angle brackets has a path, and the text is a JSON string.
    for rule in rules.values():
        (each,) = (target["InputTransformer"] for target in rule["Targets"])
        text = json.loads(each["InputTemplate"])
        assert {f"<{name}>" for name in each["InputPathsMap"]} == {
            word.strip(":.,") for word in text.split() if word.startswith("<")
        }


def test_reminders_are_schedules_that_a_deploy_after_their_moment_does_not_break(
    template: Document,
) -> None:
    # EventBridge Scheduler refuses a moment that has passed; each year it comes again.
    own = {key: each for key, each in schedules(template).items() if key.startswith("cron")}

    assert {*own} == {"cron(30 11 4 1 ? *)", "cron(30 9 5 1 ? *)"}
    for each in own.values():
        assert each["ScheduleExpressionTimezone"] == "UTC"
        assert each["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:sns:publish"


def test_every_alarm_of_every_stack_tells_the_topic(hybrid: Assembly) -> None:
    alarms = [body["Properties"] for _, body in hybrid.resources("AWS::CloudWatch::Alarm")]

    assert len(alarms) >= 4
    for alarm in alarms:
        (action,) = alarm["AlarmActions"]
        assert json.dumps(action).endswith(':hybrid-hyperpod-alarms"]]}')


def test_alarms_of_other_stacks_are_told_of_as_well() -> None:
    stack = make_stack()
    app = stack.node.root
    assert isinstance(app, cdk.App)
    for index in range(2):
        cloudwatch.CfnAlarm(
            stack, f"Alarm{index}", comparison_operator="LessThanThreshold", evaluation_periods=1
        )

    send_alarms(app, alerts(CLUSTERS["neuron"]).topic)

    found = resources(Template.from_stack(stack), "AWS::CloudWatch::Alarm")
    actions = [json.dumps(each["Properties"]["AlarmActions"]) for each in found]
    assert len(actions) == 2
    assert all(":research-alarms" in action for action in actions)


def widgets(template: Document) -> list[Any]:
    (dashboard,) = properties(template, "AWS::CloudWatch::Dashboard")
    # CloudWatch's dashboards are global: of the name alone, one in another Region overwrites it.
    assert dashboard["DashboardName"] == "hybrid-hyperpod-us-east-1"
    parts = dashboard["DashboardBody"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else "TOKEN" for part in parts)
    return json.loads(text)["widgets"]


def test_no_widget_covers_another(template: Document) -> None:
    taken: set[tuple[int, int]] = set()
    for widget in widgets(template):
        cells = {
            (x, y)
            for x in range(widget["x"], widget["x"] + widget["width"])
            for y in range(widget["y"], widget["y"] + widget["height"])
        }
        assert not cells & taken
        assert all(x < 24 for x, _ in cells)
        taken |= cells
    titled = {each["properties"].get("title"): each["properties"] for each in widgets(template)}
    assert titled["Nodes by node type"]["annotations"]["vertical"] == [
        {"label": "hyperpod ends", "value": "2027-01-05T11:30:00Z"}
    ]


def test_every_expression_names_metrics_of_its_own_graph(template: Document) -> None:
    expressions = 0
    for widget in widgets(template):
        entries = widget["properties"].get("metrics", [])
        ids = [entry[-1]["id"] for entry in entries]
        assert len(ids) == len({*ids})
        for entry in entries:
            if text := entry[-1].get("expression"):
                expressions += 1
                words = {word for word in ids if f"({word})" in text or f"{word} " in text}
                assert words
                assert " m " not in f" {text} "
    assert expressions > 5


def test_file_systems_are_named_by_their_ids(template: Document) -> None:
    text = json.dumps(template)

    assert "${" not in json.dumps(widgets(template))
    assert "FSX_" not in text
    (alarm,) = (
        each
        for each in properties(template, "AWS::CloudWatch::Alarm")
        if each.get("MetricName") == "FreeDataStorageCapacity"
    )
    assert alarm["Dimensions"][0]["Name"] == "FileSystemId"
    assert "Fn::ImportValue" in alarm["Dimensions"][0]["Value"]


def test_nothing_but_hyperpods_own_addon_waits_for_hyperpods_first_node() -> None:
    # Task governance fails before the training plan starts, and the CDK deploys nothing after it.
    plan = CLUSTERS["with HyperPod's add-on"]
    app = cdk.App()
    define_stacks(app, plan, define_charts(plan))
    earlier = {
        stack.stack_name.removeprefix("hybrid-hyperpod-"): {
            each.stack_name.removeprefix("hybrid-hyperpod-") for each in stack.dependencies
        }
        for stack in app.node.children
        if isinstance(stack, cdk.Stack)
    }

    assert earlier["hyperpod-metrics"] == {"hyperpod-groups"}
    assert not earlier["observability"] & {"hyperpod-groups", "hyperpod-metrics", "governance"}
    # It has the rights of its function.
    assert "platform" in earlier["observability"]


def test_hyperpods_addon_writes_to_a_workspace_of_its_own_and_nowhere_else() -> None:
    stack = make_stack()
    addon = hyperpod_of(CLUSTERS["with HyperPod's add-on"]).metrics
    assert addon is not None

    HyperPodObservability(stack, "HyperPod", plan=addon, cluster_name="c", key_arn=None)

    template = Template.from_stack(stack)
    workspace = the(template, "AWS::APS::Workspace")
    (role,) = resources(template, "AWS::IAM::Role")
    (policy,) = role["Properties"]["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    association = the(template, "AWS::EKS::Addon")["PodIdentityAssociations"][0]
    assert workspace["KmsKeyArn"]
    assert statement["Action"] == "aps:RemoteWrite"
    assert statement["Resource"]["Fn::GetAtt"][1] == "Arn"
    assert association["ServiceAccount"] == "hyperpod-observability-operator-otel-collector"
    assert "prometheusEndpoint" in json.dumps(the(template, "AWS::EKS::Addon"))
