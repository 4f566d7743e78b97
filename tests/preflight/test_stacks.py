"""Remains of an earlier deployment that stop the next one, an hour into it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.cases import rows
from tests.support.fake_aws import ID, Refusal, Told, denied
from tests.support.preflight_context import file_plan, found, pools_plan, states
from ultrascale.findings import Finding
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.stacks import STACKS, names_check

DESCRIBE, RESOURCES = "cloudformation:DescribeStacks", "cloudformation:ListStackResources"
CLUSTER, LOGS = "eks:DescribeCluster", "logs:DescribeLogGroups"
ROLE, REPOSITORIES = "iam:GetRole", "ecr:DescribeRepositories"
HYPERPOD = "sagemaker:DescribeCluster"
MADE = datetime(2026, 11, 1, tzinfo=UTC)
LOG_GROUP = "/aws/eks/research/cluster"
NOTHING: Mapping[str, Told] = {
    DESCRIBE: {"Stacks": []},
    CLUSTER: Refusal("ResourceNotFoundException", "No cluster found"),
    LOGS: {"logGroups": []},
    ROLE: Refusal("NoSuchEntity", "The role cannot be found"),
    REPOSITORIES: Refusal("RepositoryNotFoundException", "does not exist"),
    HYPERPOD: Refusal("ResourceNotFound", "Cluster not found"),
}


def stacks(**statuses: str) -> dict[str, Any]:
    return {
        "Stacks": [
            {
                "StackName": name.replace("_", "-"),
                "CreationTime": MADE,
                "StackStatus": status,
                "Description": "Part of the cluster research, made by ultrascale",
            }
            for name, status in statuses.items()
        ]
    }


def resources(*ids: str) -> dict[str, Any]:
    return {
        "StackResourceSummaries": [
            {
                "LogicalResourceId": f"R{number}",
                "PhysicalResourceId": id,
                "ResourceType": "AWS::Any::Thing",
                "LastUpdatedTimestamp": MADE,
                "ResourceStatus": "CREATE_COMPLETE",
            }
            for number, id in enumerate(ids)
        ]
    }


def log_group(name: str) -> dict[str, Any]:
    return {"logGroups": [{"logGroupName": name}]}


def names(plan: ClusterPlan, answers: Mapping[str, Told]) -> list[Finding]:
    return found(names_check(), plan, {**NOTHING, **answers})


@pytest.mark.parametrize(
    ("description", "told"),
    [
        ("Part of the cluster research-node, made by ultrascale", "cluster research-node"),
        (None, "no description"),
    ],
)
def test_a_stack_of_something_else_is_not_deployed_over(description: str | None, told: str) -> None:
    answer = stacks(research_network="CREATE_COMPLETE")
    del answer["Stacks"][0]["Description"]
    if description:
        answer["Stacks"][0]["Description"] = description
    (finding,) = found(STACKS, pools_plan(), {DESCRIBE: answer})
    assert (finding.state, finding.subject) == ("fail", "research-network")
    assert told in finding.evidence


@pytest.mark.parametrize(
    ("status", "state", "fix"),
    [
        ("CREATE_COMPLETE", "pass", ""),
        ("UPDATE_ROLLBACK_COMPLETE", "pass", ""),
        ("REVIEW_IN_PROGRESS", "pass", ""),
        ("ROLLBACK_COMPLETE", "fail", "delete-stack --stack-name research-network"),
        ("DELETE_FAILED", "fail", "delete-stack --stack-name research-network"),
        ("UPDATE_ROLLBACK_FAILED", "fail", "continue-update-rollback --stack-name research-netw"),
        (
            "UPDATE_FAILED",
            "fail",
            "rollback-stack --stack-name research-network --region us-west-2",
        ),
        (
            "IMPORT_ROLLBACK_FAILED",
            "unknown",
            "describe-stack-events --stack-name research-network",
        ),
        ("UPDATE_IN_PROGRESS", "fail", "wait until it ends"),
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "fail", "wait until it ends"),
    ],
)
def test_a_stack_that_cannot_be_updated_is_named(status: str, state: str, fix: str) -> None:
    (finding,) = found(STACKS, pools_plan(), {DESCRIBE: stacks(research_network=status)})
    assert finding.state == state
    assert fix in str(finding.fix or "")
    assert state == "pass" or status in finding.evidence


def test_a_stack_that_somebody_protected_would_lose_its_protection() -> None:
    """The CDK sets it as the app says, which says nothing of it."""
    answer = stacks(research_network="UPDATE_COMPLETE")
    answer["Stacks"][0]["EnableTerminationProtection"] = True
    (finding,) = found(STACKS, pools_plan(), {DESCRIBE: answer})
    assert finding.state == "warn"
    assert "--enable-termination-protection --stack-name research-network" in str(finding.fix)


@pytest.mark.parametrize(("mode", "state"), [("EXPRESS", "warn"), ("STANDARD", "pass")])
def test_a_stack_of_an_express_deployment_may_not_be_ready(mode: str, state: str) -> None:
    answer = stacks(research_network="UPDATE_COMPLETE")
    answer["Stacks"][0]["DeploymentConfig"] = {"Mode": mode}
    (finding,) = found(STACKS, pools_plan(), {DESCRIBE: answer})
    assert finding.state == state
    assert ("express mode" in finding.evidence) == (state == "warn")


@pytest.mark.parametrize(
    ("others", "evidence"),
    [
        # Nothing is deployed to one that has left the file, and what it holds may take days to go.
        *(
            (stacks(research_storage=status, research_network="UPDATE_COMPLETE"), "1 are there")
            for status in ("DELETE_FAILED", "DELETE_IN_PROGRESS", "IMPORT_ROLLBACK_FAILED")
        ),
        # Names of clusters may begin alike.
        (stacks(research_2_network="ROLLBACK_COMPLETE", other="UPDATE_IN_PROGRESS"), "none is the"),
    ],
)
def test_no_other_stack_keeps_a_deployment_from_those_of_the_file(
    others: dict[str, Any], evidence: str
) -> None:
    (finding,) = found(STACKS, pools_plan(), {DESCRIBE: others})
    assert finding.state == "pass"
    assert finding.evidence.startswith(evidence)


def test_an_empty_account_has_every_name_free() -> None:
    findings = names(file_plan("hybrid-hyperpod"), {})
    assert {each.state for each in findings} == {"pass"}
    kinds = {each.subject.rpartition(" ")[0] for each in findings}
    assert kinds == {"EKS cluster", "log group", "IAM role", "HyperPod cluster"}


def test_each_name_that_something_else_has_fails() -> None:
    """Repositories and logs stay when their stacks go: a second deployment meets them."""
    answers: dict[str, Told] = {
        CLUSTER: {"cluster": {"name": "trainium-bert"}},
        LOGS: log_group("/aws/eks/trainium-bert/cluster"),
        REPOSITORIES: {"repositories": [{"repositoryName": "any"}]},
    }

    findings = names(file_plan("trainium-bert"), answers)

    assert states(findings) == {
        "EKS cluster trainium-bert": "fail",
        "log group /aws/eks/trainium-bert/cluster": "fail",
        "ECR repository trainium-bert/bert-pretrain": "fail",
        "ECR repository trainium-bert/tensorboard": "fail",
    }
    assert findings[2].fix == (
        "take it over by `ultrascale deploy FILE --import-existing-resources`, remove it by `aws "
        "ecr delete-repository --repository-name trainium-bert/bert-pretrain --force --region "
        "us-west-2` if nobody needs it, or choose another name"
    )
    assert "take it over" not in str(findings[0].fix)


ARN = f"arn:aws:sagemaker:us-east-1:{ID}:cluster/abcdefghijkl"
THERE: dict[str, Any] = {"ClusterArn": ARN, "ClusterStatus": "InService", "InstanceGroups": []}
OWN = stacks(research_cluster="CREATE_COMPLETE")


@rows(
    "file, answers, taken, by",
    {
        "made by its own stack": (
            None,
            {
                DESCRIBE: OWN,
                CLUSTER: {"cluster": {"name": "research"}},
                LOGS: log_group(LOG_GROUP),
                RESOURCES: [resources("research") | {"NextToken": "more"}, resources(LOG_GROUP)],
            },
            *(set[str](), "the stack research-cluster has it"),
        ),
        "a stack without the thing did not make it": (
            None,
            {DESCRIBE: OWN, LOGS: log_group(LOG_GROUP), RESOURCES: resources("research")},
            *({f"log group {LOG_GROUP}"}, ""),
        ),
        "a name that begins alike": (None, {LOGS: log_group(f"{LOG_GROUP}-old")}, set[str](), ""),
        "HyperPod, which is known by its ARN": (
            "hybrid-hyperpod",
            {
                DESCRIBE: stacks(hybrid_hyperpod_hyperpod_groups="CREATE_COMPLETE"),
                HYPERPOD: THERE,
                RESOURCES: resources(ARN),
            },
            *(set[str](), "hyperpod-groups"),
        ),
    },
)
def test_what_the_clusters_own_stacks_have_made_is_no_collision(
    file: str | None, answers: dict[str, Told], taken: set[str], by: str
) -> None:
    findings = names(file_plan(file) if file else pools_plan(), answers)
    assert {each.subject for each in findings if each.state != "pass"} == taken
    assert any(by in each.evidence for each in findings)


@pytest.mark.parametrize("action", [CLUSTER, LOGS])
def test_what_may_not_be_asked_is_unknown_and_hides_no_other(action: str) -> None:
    findings = names(pools_plan(), {action: denied(action)})
    assert sorted(each.state for each in findings) == ["pass", "unknown"]
    (unknown,) = [each for each in findings if each.state == "unknown"]
    assert action in str(unknown.fix)
