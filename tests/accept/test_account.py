"""The EKS side is compared where an account is asked, and the file has to be the deployed one."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.accept_runs import AT, FILE, STACK, make_run, write_assembly
from tests.support.account import fake_account
from tests.support.fake_aws import denied
from ultrascale import plan
from ultrascale.accept import account as level
from ultrascale.accept.deployed import differing_stacks
from ultrascale.accept.run import accept
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import QuestionError
from ultrascale.findings import State
from ultrascale.plan import names

PLAN = plan.load(FILE)
CONTROL = PLAN.control_plane
ADDONS = {
    addon.name: {"addonName": addon.name, "addonVersion": addon.version, "status": "ACTIVE"}
    for addon in (*CONTROL.node_addons, *CONTROL.workload_addons)
}
SICK = {"issues": [{"code": "Ec2LaunchTemplateNotFound", "message": "gone"}]}


def account_answers() -> dict[str, Any]:
    cluster = {
        "name": PLAN.name,
        "status": "ACTIVE",
        "version": CONTROL.version,
        "computeConfig": {"enabled": False},
        "controlPlaneScalingConfig": {"tier": CONTROL.tier},
        "upgradePolicy": {"supportType": CONTROL.support_type},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": str(CONTROL.service_cidr)},
    }
    resources = [
        {
            "ResourceType": kind,
            "LogicalResourceId": "it",
            "PhysicalResourceId": id,
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": AT,
        }
        for kind, id in (("AWS::CloudWatch::Alarm", "llm-a"), ("AWS::Logs::LogGroup", "/aws/g"))
    ]
    groups = {"nodegroup": {"nodegroupName": "system", "status": "ACTIVE"}}
    return deepcopy(
        {
            "eks:DescribeCluster": {"cluster": cluster},
            "eks:DescribeAddon": ADDONS,
            "eks:ListNodegroups": {"nodegroups": ["system"]},
            "eks:DescribeNodegroup": groups,
            "cloudformation:ListStackResources": {"StackResourceSummaries": resources},
            "cloudwatch:DescribeAlarms": {
                "MetricAlarms": [{"AlarmName": "llm-a", "ActionsEnabled": True}]
            },
            "logs:DescribeLogGroups": {"logGroups": [{"logGroupName": "/aws/g"}]},
        }
    )


def states(cluster: Cluster, folder: Path, answers: dict[str, Any]) -> dict[str, State]:
    addons = answers["eks:DescribeAddon"]

    def describe(asked: dict[str, Any]) -> dict[str, Any]:
        return {"addon": addons[asked["addonName"]]}

    if isinstance(addons, dict):
        answers["eks:DescribeAddon"] = describe
    write_assembly(folder, [])
    asked, _ = fake_account(answers, region=PLAN.region)
    run = make_run(cluster, folder, plan=PLAN, account=asked)
    done = accept(run, [*level.checks(PLAN)], ["objects"])
    assert all(outcome.finding.check == "account" for outcome in done.outcomes)
    return {outcome.finding.subject: outcome.finding.state for outcome in done.outcomes}


def test_an_account_as_the_file_says_passes(cluster: Cluster, tmp_path: Path) -> None:
    seen = states(cluster, tmp_path, account_answers())
    assert {*seen.values()} == {"pass"}
    assert {"control plane", "node group system", "alarms", "log groups"} < seen.keys()


@pytest.mark.parametrize(
    ("action", "path", "value", "subject"),
    [
        ("eks:DescribeCluster", "cluster version", "1.99", "control plane"),
        ("eks:DescribeCluster", "cluster computeConfig enabled", True, "control plane"),
        ("eks:DescribeCluster", "cluster controlPlaneScalingConfig tier", "t", "control plane"),
        ("eks:DescribeCluster", "cluster health", SICK, PLAN.name),
        ("eks:DescribeAddon", "coredns addonVersion", "v0", "add-on coredns"),
        ("eks:DescribeAddon", "coredns status", "DEGRADED", "add-on coredns"),
        ("eks:DescribeNodegroup", "nodegroup status", "DEGRADED", "node group system"),
        ("eks:DescribeNodegroup", "nodegroup health", SICK, "node group system"),
        ("cloudwatch:DescribeAlarms", "MetricAlarms", [], "alarms"),
        ("logs:DescribeLogGroups", "logGroups", [], "log groups"),
    ],
)
def test_a_change_in_the_account_is_found(
    cluster: Cluster, tmp_path: Path, action: str, path: str, value: object, subject: str
) -> None:
    answers = account_answers()
    holder = answers[action]
    *way, last = path.split()
    for key in way:
        holder = holder[key]
    holder[last] = value
    seen = states(cluster, tmp_path, answers)
    assert seen[subject] == "differs"


def test_a_denied_question_is_not_run(cluster: Cluster, tmp_path: Path) -> None:
    answers = account_answers() | {"eks:DescribeAddon": denied("eks:DescribeAddon")}
    assert "not run" in states(cluster, tmp_path, answers).values()


def test_without_an_account_nothing_is_asked_of_it(cluster: Cluster, tmp_path: Path) -> None:
    assert accept(make_run(cluster, tmp_path), [*level.checks(PLAN)], ["objects"]).has_passed


@pytest.mark.parametrize(
    ("deployed", "differing"), [({"a": 1}, ""), ({"a": 2}, STACK), (None, "nothing of it")]
)
def test_the_file_has_to_be_the_deployed_one(
    deployed: dict[str, int] | None, differing: str
) -> None:
    made = {
        "StackName": STACK,
        "StackStatus": "CREATE_COMPLETE",
        "CreationTime": "2026-12-01T00:00:00Z",
        "Description": names.stack_description(PLAN.name),
    }
    template = {"Description": made["Description"], "Metadata": deployed}
    asked, _ = fake_account(
        {
            "cloudformation:DescribeStacks": {"Stacks": [made] if deployed else []},
            "cloudformation:GetTemplate": {"TemplateBody": json.dumps(template)},
        },
        region=PLAN.region,
    )
    new: Any = {STACK: {"Description": made["Description"], "Metadata": {"a": 1}}}
    if deployed is None:
        with pytest.raises(QuestionError, match=differing):
            differing_stacks(asked, PLAN, new, AT)
    else:
        assert differing_stacks(asked, PLAN, new, AT) == differing
