"""The first real cause of a failed stack, and what to do about it: nobody reads 300 events."""

import re
from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.deployments import event, stack_event
from tests.support.fake_aws import Refusal, Told, denied
from ultrascale.catalog.deploy_failures import (
    CDK_FAILURES,
    FAILURES,
    GOES_ON,
    IN_PROGRESS,
    STATUSES,
    what_to_do,
)
from ultrascale.deploy.cause import EVENTS, Cause, Events
from ultrascale.errors import UnansweredError

WORDS = {"file": "c.yaml", "cluster": "research", "region": "us-west-2"}
STACK = "research-train"
MISSING = Refusal("ValidationError", f"Stack [{STACK}] does not exist")
CAPACITY = (
    'Resource handler returned message: "[Issue(Code=AsgInstanceLaunchFailures, Message=Could not '
    "launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have "
    'sufficient p5.48xlarge capacity in the Availability Zone you requested (us-west-2b).)]"'
)


def cause(before: Told, *after: dict[str, Any]) -> Cause | None:
    """Return the cause that is found where these events follow, oldest first."""
    told: list[Any] = [before, {"StackEvents": [*reversed(after)]}]
    account, _ = fake_account({EVENTS: told})
    events = Events(account)
    events.mark(STACK)
    return events.first_cause(STACK, WORDS)


def test_what_failed_first_counts_and_not_what_was_cancelled_for_it() -> None:
    found = cause(
        MISSING,
        stack_event(1, "CREATE_IN_PROGRESS", "User Initiated"),
        event(2, "CREATE_FAILED", "Resource creation cancelled", LogicalResourceId="Early"),
        event(3, "CREATE_FAILED", CAPACITY),
        event(4, "CREATE_FAILED", "it is late", LogicalResourceId="Late"),
        stack_event(5, "ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: []"),
        event(6, "DELETE_FAILED", "DependencyViolation", LogicalResourceId="Group"),
        stack_event(7, "ROLLBACK_COMPLETE"),
    )

    assert found is not None
    assert (found.resource, found.kind) == ("NodeGroup", "AWS::EKS::Nodegroup")
    assert "sufficient p5.48xlarge capacity" in str(found.reason)
    assert found.status == "ROLLBACK_COMPLETE"
    assert "ultrascale capacity c.yaml" in found.todo[0]
    assert f"delete-stack --stack-name {STACK} --region us-west-2" in found.todo[1]


def test_failures_of_an_earlier_deployment_are_not_told_again() -> None:
    old = [event(1, "UPDATE_FAILED", "last year"), stack_event(2, "UPDATE_ROLLBACK_COMPLETE")]
    before = {"StackEvents": [*reversed(old)]}

    nothing = cause(before, *old)
    found = cause(
        before,
        *old,
        stack_event(3, "UPDATE_IN_PROGRESS"),
        event(4, "UPDATE_FAILED", "today"),
        stack_event(5, "UPDATE_ROLLBACK_COMPLETE"),
    )

    assert nothing is None
    assert found is not None
    assert found.reason == "today"


def test_events_are_read_to_the_mark_over_pages() -> None:
    pages = {
        None: {"StackEvents": [stack_event(9, "ROLLBACK_COMPLETE")], "NextToken": "2"},
        "2": {"StackEvents": [event(8, "CREATE_FAILED", "first")], "NextToken": "3"},
        "3": {"StackEvents": [stack_event(7, "CREATE_IN_PROGRESS")]},
    }
    turns = iter([MISSING])

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        for refusal in turns:
            raise refusal
        return pages[asked.get("NextToken")]

    account, aws = fake_account({EVENTS: answer})
    events = Events(account)
    events.mark(STACK)

    found = events.first_cause(STACK, WORDS)

    assert found is not None
    assert found.reason == "first"
    assert len(aws.calls) == 4


@pytest.mark.parametrize(
    ("events", "resource", "reason"),
    [
        (
            [
                stack_event(1, "CREATE_IN_PROGRESS"),
                stack_event(2, "ROLLBACK_IN_PROGRESS", "Stack creation time exceeded"),
                stack_event(3, "ROLLBACK_COMPLETE"),
            ],
            *(None, "Stack creation time exceeded"),
        ),
        (
            [
                event(2, "CREATE_FAILED", "Resource creation cancelled", LogicalResourceId="Early"),
                event(3, "CREATE_FAILED", "The Spot request was cancelled by the service"),
                stack_event(4, "ROLLBACK_COMPLETE"),
            ],
            *("NodeGroup", "The Spot request was cancelled by the service"),
        ),
        ([event(1, "CREATE_FAILED", "the moon is full")], "NodeGroup", "the moon is full"),
    ],
    ids=["the stack as a whole", "cancelled by a service", "unknown"],
)
def test_a_cause_is_told_in_the_words_of_cloudformation(
    events: list[dict[str, Any]], resource: str | None, reason: str
) -> None:
    found = cause(MISSING, *events)
    assert found is not None
    assert (found.resource, found.reason) == (resource, reason)
    assert cause(MISSING, stack_event(1, "REVIEW_IN_PROGRESS")) is None


def test_a_hook_that_refuses_says_why() -> None:
    hook = {
        "HookType": "Corp::Guard::Tags",
        "HookStatus": "HOOK_COMPLETE_FAILED",
        "HookStatusReason": "no tag cost-centre",
        "HookFailureMode": "FAIL",
    }

    found = cause(
        MISSING,
        event(1, "CREATE_IN_PROGRESS", **hook),
        event(2, "CREATE_FAILED", "The following hook(s) failed: [Corp::Guard::Tags]"),
    )

    assert found is not None
    assert str(found.reason).endswith("Corp::Guard::Tags: no tag cost-centre")
    assert "Hook of the account" in found.todo[0]


def test_the_words_of_a_custom_resource_stand_without_its_stack_trace() -> None:
    reason = (
        "Received response status [FAILED] from custom resource. Message returned: Error: "
        "b'error: resource mapping not found for kind \"NodePool\"\\n'\n\n"
        "Logs: /aws/lambda/research-platform-Handler\n\n"
        "    at invokeUserFunction (/var/task/framework.js:2:6)\n"
        "    at async onEvent (/var/task/framework.js:1:365) (RequestId: 8f0e)"
    )

    found = cause(MISSING, event(1, "CREATE_FAILED", reason))

    assert found is not None
    assert str(found.reason).startswith("Error: b'error: resource mapping not found for kind")
    assert str(found.reason).endswith("Logs: /aws/lambda/research-platform-Handler")


@pytest.mark.parametrize("when", ["before", "after"])
def test_events_that_nobody_could_read_are_no_cause(when: str) -> None:
    told: list[Any] = [MISSING, MISSING]
    told[when == "after"] = denied(EVENTS)
    account, _ = fake_account({EVENTS: told})
    events = Events(account)
    events.mark(STACK)
    with pytest.raises(UnansweredError, match="denied because"):
        events.first_cause(STACK, WORDS)


@pytest.mark.parametrize(
    ("reason", "todo"),
    [
        (CAPACITY, "no such instances"),
        ("We currently do not have sufficient capacity for the requested", "no such instances"),
        ("(InsufficientCidrBlocks) when calling AssignPrivateIpAddresses", "no addresses left"),
        ("ReservationCapacityExceeded: the targeted reservation", "the reservation has no free"),
        ("type (p5.48xlarge) is not supported in your requested Availability Zone", "has none"),
        ("UnsupportedAvailabilityZoneException: Cannot create cluster", "which EKS takes"),
        ("no permission to create the service-linked role for EC2 Spot", "how to make it"),
        ("The image id '[ami-0123]' does not exist (InvalidAMIID.NotFound)", "machine images"),
        ("Requested release version 1.35.9 is not valid for", "machine images"),
        ("InvalidCapacityReservationId.NotFound: cr-1", "the reservation has no free"),
        ("You have requested more vCPU capacity (VcpuLimitExceeded)", "--request-quotas"),
        ("InstanceLimitExceeded", "--request-quotas"),
        ("Request limit exceeded. (RequestLimitExceeded)", "smaller --concurrency"),
        ("etcdserver: throttle: too many requests", "smaller --concurrency"),
        ("[Issue(Code=NodeCreationFailure, Message=Instances failed to join", "did not join"),
        ("[Issue(Code=PodEvictionFailure, Message=Reached max retries (NotStabilized)", "get pdb"),
        ("Version and ReleaseVersion updates cannot be combined with other", "deploy twice"),
        ("Cannot delete export x as it is in use by research-platform", "still imports"),
        ("Export x cannot be deleted as it is in use by research-platform", "still imports"),
        ("a log group already exists in stack", "--import-existing-resources"),
        ("User: arn is not authorized to perform: eks:CreateCluster", "allow that action"),
        ("CloudFormation did not receive a response from your Custom Resource", "aws logs tail"),
        ("Unable to connect to the server: dial tcp: i/o timeout", "did not reach the API server"),
        ("failed calling webhook x: context deadline exceeded", "admission webhook"),
        ("DependencyViolation: sg has a dependent object", "still uses it"),
        ("Exceeded attempts to wait", "in time"),
        ("The following hook(s) failed: [A::B::C]", "Hook"),
        ("The subnet has InsufficientFreeAddresses", "no addresses left"),
    ],
)
def test_a_known_reason_says_what_to_do(reason: str, todo: str) -> None:
    assert todo in (what_to_do(reason) or "")


def test_a_stack_that_goes_on_without_us_has_not_failed() -> None:
    """The credentials of a `cdk deploy` end, or its network: CloudFormation does not notice."""
    found = cause(MISSING, stack_event(1, "CREATE_IN_PROGRESS"), event(2, "CREATE_IN_PROGRESS"))
    assert found is not None
    assert (found.resource, found.reason, found.status) == (None, None, "CREATE_IN_PROGRESS")
    assert "CloudFormation goes on with it: wait" in found.todo[0]


def left(*after: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return the id of what is left, and why, where these events follow, oldest first."""
    account, _ = fake_account({EVENTS: [MISSING, {"StackEvents": [*reversed(after)]}]})
    events = Events(account)
    events.mark(STACK)
    return [(each.id, each.reason) for each in events.left(STACK)]


def test_what_is_paid_for_after_its_stack_is_gone_is_named() -> None:
    database: dict[str, Any] = {"ResourceType": "AWS::RDS::DBCluster", "PhysicalResourceId": "db"}
    found = left(
        stack_event(1, "CREATE_IN_PROGRESS"),
        event(2, "CREATE_FAILED", "no", PhysicalResourceId=""),
        stack_event(3, "ROLLBACK_IN_PROGRESS"),
        event(4, "DELETE_SKIPPED", **database),
        event(5, "DELETE_SKIPPED", ResourceType="Custom::Manifest", PhysicalResourceId="crd"),
        event(6, "DELETE_SKIPPED", PhysicalResourceId=""),
        event(7, "DELETE_FAILED", "it is in use", PhysicalResourceId="sg-1"),
        event(8, "DELETE_FAILED", "not yet", PhysicalResourceId="sg-2"),
        event(9, "DELETE_COMPLETE", PhysicalResourceId="sg-2"),
        stack_event(10, "ROLLBACK_COMPLETE"),
    )

    assert found == [("db", None), ("sg-1", "it is in use")]


@pytest.mark.parametrize(
    ("said", "todo"),
    [
        ("‣ ExpiredToken: The security token included in the request is expired", "log in again"),
        ("‣ CredentialsProviderError: The SSO session associated with it has expired", "log in"),
        ("Stack:arn is in UPDATE_IN_PROGRESS state and can not be updated.", "wait until that"),
        (
            "SSM parameter x not found. Has the environment been bootstrapped?",
            "ultrascale cdk bootstrap",
        ),
        ("y could not be used to assume 'arn:aws:iam::1:role/cdk-hnb'", "sts:AssumeRole"),
        ("❌ a failed: Rate exceeded", "smaller --concurrency"),
        ("/aws/eks/research/cluster already exists", "--import-existing-resources"),
    ],
)
def test_what_the_cdk_says_by_itself_has_an_answer(said: str, todo: str) -> None:
    assert todo in (what_to_do(said, CDK_FAILURES) or "")


@pytest.mark.parametrize(
    "text",
    [*(each.todo for each in (*FAILURES, *CDK_FAILURES)), *STATUSES.values(), IN_PROGRESS, GOES_ON],
)
def test_all_advice_can_be_filled_in(text: str) -> None:
    filled = text.format(stack=STACK, **WORDS)
    assert not re.search(r"[{}]", filled)
