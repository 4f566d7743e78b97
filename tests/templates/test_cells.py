"""Each cell of the matrix: how its first node comes to exist, and how its last one goes.

A cell that nobody asks for nodes is a reservation that is paid for and never used; one whose nodes
nobody drains loses what its jobs did since their last checkpoint.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
import yaml

from tests.support.assembly import Assembly, synthesize
from tests.support.cell_calendars import (
    emptied_before_ec2_reclaims,
    group_at_the_start,
    kept_full_inside_the_window,
    managed_at_the_start,
    scaled_in_by_eks,
)
from tests.support.cell_parts import container, of, requirement, schedules, spec, the
from tests.support.folders import ROOT
from ultrascale.catalog import matrix

Check = Callable[[Assembly, str], None]
AUTOSCALED = "ultrascale.dev/cluster-autoscaler"
MANAGED, OWN, BLOCK = "managed-node-group", "self-managed", "capacity-block"
IN_THE_WINDOW = (kept_full_inside_the_window, emptied_before_ec2_reclaims)


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The cells that no cluster file has: self-managed On-Demand and reservations."""
    folder = tmp_path_factory.mktemp("rest")
    document = yaml.safe_load((ROOT / "clusters" / "mixed-capacity.yaml").read_text())
    own: dict[str, Any] = {"instance_types": ["trn1.32xlarge"], "provisioner": "self-managed"}
    zone = {"zones": ["us-east-2a"]}
    odcr = {"option": "odcr", "reservation": "cr-0fffffffffffffff6"}
    document["pools"] = [
        document["pools"][0],
        own | zone | {"name": "asg", "nodes": {"min": 1, "max": 4}},
        own | zone | {"name": "asg-odcr", "purchase": odcr, "nodes": {"max": 4}},
    ]
    document["pools"].append(
        own | zone | {"name": "hp", "provisioner": "hyperpod", "nodes": {"static": 3}}
    )
    del document["karpenter"], document["storage"], document["scheduling"]
    file = folder / "rest.yaml"
    file.write_text(yaml.safe_dump(document | {"name": "rest"}))
    return synthesize(file, folder)


# --- node groups --------------------------------------------------------------------------------


def autoscaler_runs(assembly: Assembly) -> None:
    """The Cluster Autoscaler sees the groups of this cluster, and may size them."""
    arguments = container(assembly, "cluster-autoscaler")["args"]
    name = assembly.plan.name
    assert f"--node-group-auto-discovery=asg:tag={AUTOSCALED}={name}" in arguments
    policies = json.dumps(of(assembly, "scaling", "AWS::IAM::Role"))
    policies += json.dumps(of(assembly, "scaling", "AWS::IAM::Policy"))
    for action in ("SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"):
        assert f'"autoscaling:{action}"' in policies


def managed_by_autoscaler(assembly: Assembly, stack: str) -> None:
    """EKS makes the group with its minimum, the autoscaler is told what a node of it would be."""
    lookup = the(assembly, stack, "Custom::NodeGroupSize")
    group = the(assembly, stack, "AWS::EKS::Nodegroup")
    assert lookup["InitialSize"] == group["ScalingConfig"]["MinSize"]
    assert "Fn::GetAtt" in group["ScalingConfig"]["DesiredSize"]
    tags = the(assembly, stack, "Custom::AutoScalingGroupTags")["Tags"]
    assert tags[AUTOSCALED] == assembly.plan.name
    autoscaler_runs(assembly)


def group_by_autoscaler(assembly: Assembly, stack: str) -> None:
    group = the(assembly, stack, "AWS::AutoScaling::AutoScalingGroup")
    assert "DesiredCapacity" not in group
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    assert tags[AUTOSCALED] == assembly.plan.name
    autoscaler_runs(assembly)


def managed_from_the_start(assembly: Assembly, stack: str) -> None:
    scaling = the(assembly, stack, "AWS::EKS::Nodegroup")["ScalingConfig"]
    assert scaling["DesiredSize"] == scaling["MaxSize"]


def group_from_the_start(assembly: Assembly, stack: str) -> None:
    group = the(assembly, stack, "AWS::AutoScaling::AutoScalingGroup")
    assert group["DesiredCapacity"] == group["MaxSize"]


def drained_by_eks(assembly: Assembly, stack: str) -> None:
    assert the(assembly, stack, "AWS::EKS::Nodegroup")["CapacityType"] == "SPOT"


def drained_by_the_handler(assembly: Assembly, stack: str) -> None:
    """The instance waits until its node is empty: a hook holds it, the handler drains it."""
    group = the(assembly, stack, "AWS::AutoScaling::AutoScalingGroup")
    (hook,) = group["LifecycleHookSpecificationList"]
    assert hook["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    marks = [tag["Key"] for tag in group["Tags"] if tag["PropagateAtLaunch"]]
    env = {
        each["name"]: each.get("value")
        for each in container(assembly, "aws-node-termination-handler")["env"]
    }
    assert env["MANAGED_TAG"] in marks
    assert env["EMIT_KUBERNETES_EVENTS"] == "true"
    patterns = [rule["EventPattern"] for rule in of(assembly, "scaling", "AWS::Events::Rule")]
    assert any("EC2 Instance-terminate Lifecycle Action" in json.dumps(p) for p in patterns)
    assert any("EC2 Spot Instance Interruption Warning" in json.dumps(p) for p in patterns)


def scaled_in_before_ec2_reclaims(assembly: Assembly, stack: str) -> None:
    """Forty minutes before the printed end: ten before EC2 begins to take the instances."""
    operation, request = schedules(assembly, stack)["cron(50 10 19 12 ? *)"]
    assert operation == "autoscaling:setDesiredCapacity"
    assert request["DesiredCapacity"] == 0
    drained_by_the_handler(assembly, stack)


def kept(assembly: Assembly, stack: str) -> None:
    """A reservation is paid for whether its nodes run or not: no scaler knows the group."""
    assert AUTOSCALED not in json.dumps(assembly.templates[stack])
    assert not of(assembly, stack, "AWS::Scheduler::Schedule")


# --- NodePools ----------------------------------------------------------------------------------


def karpenter_runs(assembly: Assembly) -> None:
    charts = of(assembly, "karpenter", "Custom::AWSCDK-EKS-HelmChart")
    assert [chart["Release"] for chart in charts] == ["karpenter-crd", "karpenter"]


def launched_for_pods(assembly: Assembly, name: str) -> None:
    node_pool = spec(assembly, "NodePool", name)
    assert "replicas" not in node_pool
    assert int(node_pool["limits"]["nodes"]) > 0
    if assembly.plan.nodes.karpenter is not None:
        karpenter_runs(assembly)
    else:
        assert the(assembly, "cluster", "AWS::EKS::Cluster")["ComputeConfig"]["Enabled"] is True


def launched_into_the_reservation(assembly: Assembly, name: str) -> None:
    launched_for_pods(assembly, name)
    node_pool = spec(assembly, "NodePool", name)
    assert requirement(node_pool, "karpenter.sh/capacity-type") == ["reserved"]
    kind = node_pool["template"]["spec"]["nodeClassRef"]["kind"]
    assert spec(assembly, kind, name)["capacityReservationSelectorTerms"]


def launched_on_spot_first(assembly: Assembly, name: str) -> None:
    launched_for_pods(assembly, name)
    spot, fallback = (spec(assembly, "NodePool", each) for each in (name, f"{name}-on-demand"))
    assert requirement(spot, "karpenter.sh/capacity-type") == ["spot"]
    assert requirement(fallback, "karpenter.sh/capacity-type") == ["on-demand"]
    assert spot["weight"] > fallback["weight"]


def taken_when_empty(assembly: Assembly, name: str) -> None:
    disruption = spec(assembly, "NodePool", name)["disruption"]
    assert disruption["consolidateAfter"] != "Never"


def never_taken(assembly: Assembly, name: str) -> None:
    node_pool = spec(assembly, "NodePool", name)
    assert node_pool["disruption"]["consolidateAfter"] == "Never"
    assert node_pool["disruption"]["budgets"] == [{"nodes": "0"}]
    assert node_pool["template"]["spec"]["expireAfter"] in {"Never", "503h"}


def drained_on_notice(assembly: Assembly, name: str) -> None:
    """Karpenter reads the notice from its queue; Auto Mode has one of its own."""
    taken_when_empty(assembly, name)
    if assembly.plan.nodes.karpenter is None:
        return
    queue = the(assembly, "karpenter", "AWS::SQS::Queue")["QueueName"]
    values = of(assembly, "karpenter", "Custom::AWSCDK-EKS-HelmChart")[-1]["Values"]
    assert json.loads(values)["settings"]["interruptionQueue"] == queue
    assert len(of(assembly, "karpenter", "AWS::Events::Rule")) == 5


# --- HyperPod -----------------------------------------------------------------------------------


def asked_of_sagemaker(assembly: Assembly, pool: str) -> None:
    """SageMaker launches what the group counts, and goes on trying where capacity is short."""
    cluster = the(assembly, "hyperpod-groups", "AWS::SageMaker::Cluster")
    (group,) = (g for g in cluster["InstanceGroups"] if g["InstanceGroupName"] == pool)
    (plan,) = (each for each in assembly.plan.pools if each.name == pool)
    assert group["InstanceCount"] == plan.max_nodes
    assert cluster["NodeProvisioningMode"] == "Continuous"


def asked_of_the_plan(assembly: Assembly, pool: str) -> None:
    asked_of_sagemaker(assembly, pool)
    cluster = the(assembly, "hyperpod-groups", "AWS::SageMaker::Cluster")
    assert ":training-plan/" in cluster["InstanceGroups"][0]["TrainingPlanArn"]


def kept_until_the_file_says_fewer(assembly: Assembly, pool: str) -> None:
    (plan,) = (each for each in assembly.plan.pools if each.name == pool)
    assert (plan.sized_by, plan.window) == ("file", None)


def said_before_the_end(assembly: Assembly, pool: str) -> None:
    """SageMaker takes the instances an hour before the end, and somebody is told a day before."""
    (plan,) = (each for each in assembly.plan.pools if each.name == pool)
    assert plan.window is not None
    assert plan.window.ends - plan.window.usable_until == timedelta(hours=1)
    told = of(assembly, "observability", "AWS::Scheduler::Schedule")
    assert any(pool in json.dumps(each["Target"]) for each in told)


# The file's fixture, its pool, and who asks for the first node and lets the last one go.
CELLS: Mapping[tuple[str, str], tuple[str, str, Check, Check]] = {
    (MANAGED, "on-demand"): ("mixed", "system", managed_by_autoscaler, managed_by_autoscaler),
    (MANAGED, "spot"): ("mixed", "gpu-spot-mng", managed_by_autoscaler, drained_by_eks),
    (MANAGED, "odcr"): ("mixed", "gpu-odcr-mng", managed_from_the_start, kept),
    (MANAGED, BLOCK): ("mixed", "gpu-block-mng", managed_at_the_start, scaled_in_by_eks),
    (OWN, "on-demand"): ("rest", "asg", group_by_autoscaler, group_by_autoscaler),
    (OWN, "spot"): ("mixed", "gpu-spot-asg", group_by_autoscaler, drained_by_the_handler),
    (OWN, "odcr"): ("rest", "asg-odcr", group_from_the_start, kept),
    (OWN, BLOCK): ("mixed", "trn-block-asg", group_at_the_start, scaled_in_before_ec2_reclaims),
    ("karpenter", "on-demand"): ("mixed", "trn-ondemand", launched_for_pods, taken_when_empty),
    ("karpenter", "spot"): ("mixed", "gpu-burst", launched_on_spot_first, drained_on_notice),
    ("karpenter", "odcr"): (
        "mixed",
        "gpu-reserved-odcr",
        launched_into_the_reservation,
        never_taken,
    ),
    ("karpenter", BLOCK): ("mixed", "gpu-reserved-block", *IN_THE_WINDOW),
    ("hyperpod", "on-demand"): ("rest", "hp", asked_of_sagemaker, kept_until_the_file_says_fewer),
    ("hyperpod", "training-plan"): ("hybrid", "hyperpod", asked_of_the_plan, said_before_the_end),
    ("auto-mode", "on-demand"): ("auto", "neuron", launched_for_pods, taken_when_empty),
    ("auto-mode", "spot"): ("auto", "gpu-burst", launched_on_spot_first, drained_on_notice),
    ("auto-mode", "odcr"): ("auto", "inference", launched_into_the_reservation, never_taken),
    ("auto-mode", BLOCK): ("auto", "gpu-reserved", *IN_THE_WINDOW),
}
each_cell = pytest.mark.parametrize("cell", CELLS, ids="-on-".join)


def test_a_cell_that_is_said_to_work_is_shown_to_work() -> None:
    said = {key for key, cell in matrix.MATRIX.items() if cell.works}

    assert said == set(CELLS)


@each_cell
def test_somebody_asks_for_the_first_node_and_the_last_one_goes_in_time_or_is_kept(
    cell: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    fixture, pool, first, last = CELLS[cell]
    assembly: Assembly = request.getfixturevalue(fixture)

    first(assembly, pool)
    last(assembly, pool)
