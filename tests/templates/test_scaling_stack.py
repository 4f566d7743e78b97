"""The stack of what sizes node groups: made before them, and before the controllers' pods."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import NO_CHARTS, cluster_of
from tests.support.pools import SPOT, SYSTEM_POOL, make_cluster, pool_document
from ultrascale import plan
from ultrascale.plan.cluster import assemble
from ultrascale_stacks.cluster import ClusterStacks
from ultrascale_stacks.feature_flags import FLAGS
from ultrascale_stacks.nodes import ScalingStack
from ultrascale_stacks.validation import validate

FIXED = SYSTEM_POOL | {"nodes": {"static": 2}}
SPOT_GROUP = pool_document(
    provisioner="self-managed",
    instance_types=["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"],
    purchase=SPOT,
)


def made(*pools: dict[str, Any], **changes: Any) -> plan.ClusterPlan:
    return assemble(make_cluster(pools=[*pools], **changes))


def synthesize(cluster: plan.ClusterPlan) -> ScalingStack:
    return ScalingStack(cluster_of(cluster), "research-scaling")


@pytest.fixture(scope="module")
def everything() -> ScalingStack:
    return synthesize(made(SYSTEM_POOL, SPOT_GROUP))


def test_a_cluster_of_fixed_size_needs_neither_controller() -> None:
    stack = synthesize(made(FIXED))
    template = Template.from_stack(stack)

    template.resource_count_is("AWS::EKS::PodIdentityAssociation", 0)
    template.resource_count_is("AWS::SQS::Queue", 0)
    assert stack.placeholders == {}


def test_each_controller_has_its_role_and_the_manifests_learn_the_queues_url(
    everything: ScalingStack,
) -> None:
    template = Template.from_stack(everything)
    associations = template.find_resources("AWS::EKS::PodIdentityAssociation").values()
    (queue,) = template.find_resources("AWS::SQS::Queue").values()
    (function,) = template.find_resources("AWS::Lambda::Function")
    ((placeholder, url),) = everything.placeholders.items()

    accounts = {each["Properties"]["ServiceAccount"] for each in associations}
    assert accounts == {"cluster-autoscaler", "aws-node-termination-handler"}
    parts = everything.resolve(url)["Fn::Join"][1]
    assert placeholder == "${TERMINATION_QUEUE_URL}"
    assert parts[0].startswith("https://sqs.")
    assert {"Ref": "AWS::AccountId"} in parts
    assert parts[-1] == f"/{queue['Properties']['QueueName']}"
    template.has_output("TerminationQueueUrl", {"Value": everything.resolve(url)})
    # Node groups reach the function.
    assert everything.resolve(everything.service_token) == {"Fn::GetAtt": [function, "Arn"]}


@pytest.mark.parametrize(
    "changes", [{}, {"account": "111122223333"}], ids=["any account", "one account"]
)
def test_no_rule_finds_anything_to_say(changes: dict[str, Any], tmp_path: Path) -> None:
    app = cdk.App(
        context=dict(FLAGS), outdir=str(tmp_path), builtin_cloud_formation_validation=False
    )
    validate(app)
    own = made(SYSTEM_POOL, SPOT_GROUP, **changes)
    ScalingStack(ClusterStacks(app=app, plan=own, charts=NO_CHARTS), "research-scaling")

    app.synth()

    report = json.loads((tmp_path / "validation-report.json").read_text())
    assert report["pluginReports"]
    assert not any(each["violations"] for each in report["pluginReports"])
