"""The Node Termination Handler: a node that EC2 takes is drained first, and no other one is."""

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.applied import applied
from tests.support.construct_stacks import make_stack, resources, the
from tests.support.kubernetes_schemas import findings
from ultrascale.catalog.versions import image
from ultrascale.plan.model import TerminationHandlerPlan
from ultrascale_constructs.node_group_controllers import TerminationHandler
from ultrascale_k8s.node_group_controllers import handler_environment, termination_handler_objects

Documents = dict[tuple[str, str], dict[str, Any]]
NAME = "aws-node-termination-handler"
TAG = "ultrascale.dev/termination-handler/research"
PLAN = TerminationHandlerPlan(
    image=image(NAME).reference,
    region="us-west-2",
    queue="research-termination",
    queue_url="${TERMINATION_QUEUE_URL}",
    managed_tag=TAG,
    drain_seconds=600,
    workers=64,
)


@pytest.fixture(scope="module")
def documents() -> Documents:
    return {
        (d["kind"], d["metadata"]["name"]): d for d in applied(termination_handler_objects(PLAN))
    }


@pytest.fixture(scope="module")
def pod(documents: Documents) -> dict[str, Any]:
    return documents["Deployment", NAME]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def template() -> Template:
    stack = make_stack()
    TerminationHandler(stack, "TerminationHandler", plan=PLAN, cluster_name="research")
    return Template.from_stack(stack)


def test_api_server_takes_the_handler(documents: Documents) -> None:
    assert findings(list(documents.values())) == []


def test_one_of_the_two_stays_when_system_nodes_go(
    documents: Documents, pod: dict[str, Any]
) -> None:
    """A notice of two minutes meets one of them."""
    budget = documents["PodDisruptionBudget", NAME]["spec"]
    deployment = documents["Deployment", NAME]["spec"]

    assert (deployment["replicas"], budget["maxUnavailable"]) == (2, 1)
    assert budget["selector"] == deployment["selector"]
    assert {c["topologyKey"] for c in pod["topologySpreadConstraints"]} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }


def test_it_drains_what_bears_the_clusters_tag_within_the_time_of_the_node() -> None:
    """The names of the settings are those of release 1.25."""
    environment = handler_environment(PLAN)

    assert (
        environment.items()
        >= {
            # It reads its queue, and not its node's metadata.
            "ENABLE_SQS_TERMINATION_DRAINING": "true",
            "QUEUE_URL": "${TERMINATION_QUEUE_URL}",
            "AWS_REGION": "us-west-2",
            "CHECK_TAG_BEFORE_DRAINING": "true",
            "MANAGED_TAG": TAG,
            # Pods have their own time within that of the node.
            "POD_TERMINATION_GRACE_PERIOD": "-1",
            "NODE_TERMINATION_GRACE_PERIOD": "600",
            # No node of a block waits for another one's drain.
            "WORKERS": "64",
            "EMIT_KUBERNETES_EVENTS": "true",
        }.items()
    )
    # It does not only cordon them.
    assert not {"CORDON_ONLY", "DRY_RUN"} & environment.keys()


class TestPod:
    """Two pods of the system pool, so that a notice of two minutes meets one of them."""

    def test_it_is_hardened_and_restarted_when_it_no_longer_answers(
        self, pod: dict[str, Any]
    ) -> None:
        (container,) = pod["containers"]
        variables = {
            each["name"]: each.get("value") or each["valueFrom"]["fieldRef"]["fieldPath"]
            for each in container["env"]
        }

        assert (
            variables.items()
            >= {
                "NODE_NAME": "spec.nodeName",
                "POD_NAME": "metadata.name",
                "NAMESPACE": "metadata.namespace",
                "ENABLE_PROBES_SERVER": "true",
            }.items()
        )
        assert container["livenessProbe"]["httpGet"] == {
            "path": variables["PROBES_SERVER_ENDPOINT"],
            "port": int(variables["PROBES_SERVER_PORT"]),
        }
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }

    def test_it_evicts_pods_and_deletes_none(self, documents: Documents) -> None:
        rules = documents["ClusterRole", NAME]["rules"]
        verbs = {(kind, verb) for r in rules for kind in r["resources"] for verb in r["verbs"]}

        # It cordons a node, evicts its pods and says so; what it deletes nothing can delete.
        assert verbs == {
            *(("nodes", verb) for verb in ("get", "list", "patch", "update")),
            *(("pods", verb) for verb in ("get", "list")),
            ("pods/eviction", "create"),
            *(("events", verb) for verb in ("create", "patch")),
            ("daemonsets", "get"),
        }


def test_lifecycle_spot_state_and_health_reach_the_queue_and_nothing_that_might_be(
    template: Template,
) -> None:
    rules = [rule["Properties"] for rule in resources(template, "AWS::Events::Rule")]

    def pattern(source: str, kind: str, **detail: list[str]) -> dict[str, Any]:
        more = {"detail": detail} if detail else {}
        return {"source": [f"aws.{source}"], "detail-type": [kind], **more}

    ends = ["stopping", "stopped", "shutting-down", "terminated"]
    health = {"service": ["EC2"], "eventTypeCategory": ["scheduledChange"]}
    found = [rule["EventPattern"] for rule in rules]
    for expected in (
        pattern("autoscaling", "EC2 Instance-terminate Lifecycle Action"),
        pattern("ec2", "EC2 Spot Instance Interruption Warning"),
        pattern("ec2", "EC2 Instance State-change Notification", state=ends),
        pattern("health", "AWS Health Event", **health),
    ):
        assert expected in found
    assert "Rebalance" not in json.dumps(rules)


def test_every_rule_fills_the_queue_and_nobody_without_tls(template: Template) -> None:
    (queue,) = template.find_resources("AWS::SQS::Queue")
    rules = template.find_resources("AWS::Events::Rule")
    allow, deny = the(template, "AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]

    for rule in rules.values():
        targets = [target["Arn"] for target in rule["Properties"]["Targets"]]
        assert targets == [{"Fn::GetAtt": [queue, "Arn"]}]
    senders = [{"Fn::GetAtt": [rule, "Arn"]} for rule in rules]
    assert allow["Condition"]["ArnEquals"]["aws:SourceArn"] == senders
    assert (deny["Effect"], deny["Principal"]) == ("Deny", {"AWS": "*"})
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    # An event is kept as long as a node may be drained.
    assert the(template, "AWS::SQS::Queue") == {
        "QueueName": "research-termination",
        "MessageRetentionPeriod": 600,
        "SqsManagedSseEnabled": True,
    }


def test_it_ends_lifecycle_actions_of_its_own_clusters_instances_and_reads_its_queue_alone(
    template: Template,
) -> None:
    (policy,) = the(template, "AWS::IAM::Role")["Policies"]
    (queue,) = template.find_resources("AWS::SQS::Queue")
    found = {str(each["Action"]): each for each in policy["PolicyDocument"]["Statement"]}
    complete = found["autoscaling:CompleteLifecycleAction"]
    (receive,) = (each for action, each in found.items() if "sqs:ReceiveMessage" in action)

    assert complete["Condition"] == {"StringEquals": {f"aws:ResourceTag/{TAG}": "research"}}
    assert receive["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}
    assert set(receive["Action"]) == {"sqs:ReceiveMessage", "sqs:DeleteMessage"}
