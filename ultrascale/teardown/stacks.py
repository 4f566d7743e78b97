"""CloudFormation stacks: their resources, their deletion, and the cause of a failed one.

No deletion is forced: neither FORCE_DELETE_STACK nor a list of resources to retain is ever sent.
Both would leave resources that cost money where nobody looks for them.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteStack.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import yaml

from ultrascale.account import Account
from ultrascale.deploy.cause import (
    first_failure,
    is_stack,
    newest_first,
    reason_of,
    refused_by_hook,
)
from ultrascale.documents import parse_json, text
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.teardown.ec2 import interface_words, interfaces
from ultrascale.teardown.model import Found, Scope, State, StoppedError, Thing

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef as Event
    from mypy_boto3_cloudformation.type_defs import StackResourceSummaryTypeDef, StackTypeDef

STACK, FUNCTION = "AWS::CloudFormation::Stack", "AWS::Lambda::Function"
STACK_TAG = "aws:cloudformation:stack-name"
LOGICAL_ID_TAG = "aws:cloudformation:logical-id"
AGAIN = "run the command again"
PARTS = frozenset(
    {
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::S3::BucketPolicy",
    }
)
"""Types of resources that go with the resource that they are part of."""

# CloudFormation's code where a stack is not there, and in other cases.
_ABSENT = "ValidationError"
_GONE = "DELETE_COMPLETE"
_RETAINED = ("Retain", "RetainExceptOnCreate")
# Kubernetes objects: they go with the cluster, whatever their stack says.
_OF_KUBERNETES = "Custom::AWSCDK-EKS-"
# A change set that was never executed.
_REVIEW = "REVIEW_IN_PROGRESS"
_GOES_ON = f"then {AGAIN}: it goes on here"
# EC2's filters for the network interfaces that block a resource's deletion.
_HELD_BY = {
    "AWS::EC2::SecurityGroup": "group-id",
    "AWS::EC2::Subnet": "subnet-id",
    "AWS::EC2::VPC": "vpc-id",
}
_SHOWN = 5


class Resource(Frozen):
    """A resource of a stack."""

    type: str  # CloudFormation's name of its type
    logical_id: str  # Its name in the template
    id: str  # Its name in its service
    retained: bool  # Whether it stays when the stack goes

    @property
    def of_kubernetes(self) -> bool:
        """Return whether the resource stands for Kubernetes objects."""
        return self.type.startswith(_OF_KUBERNETES)

    @property
    def thing(self) -> Thing:
        """The resource, as a plan prints it."""
        return Thing(kind=self.type, id=self.id, note=self.logical_id)


class Stack(Frozen):
    """A stack of the account."""

    name: str  # Its name
    id: str  # Its ARN, which no later stack of the same name has
    status: str  # CloudFormation's word for its state
    protected: bool  # Whether termination protection is on
    resources: tuple[Resource, ...]  # Its resources

    @property
    def retained(self) -> tuple[Resource, ...]:
        """Resources that the stack leaves in the account."""
        return tuple(
            resource
            for resource in self.resources
            if resource.retained and not resource.of_kubernetes
        )

    @property
    def going(self) -> bool:
        """Return whether the stack is being deleted."""
        return self.status == "DELETE_IN_PROGRESS"

    @property
    def busy(self) -> bool:
        """Return whether CloudFormation works on the stack, other than by deleting it."""
        ending = self.status.endswith("_IN_PROGRESS") and self.status != _REVIEW
        return ending and not self.status.startswith("DELETE_")


def read_stacks(account: Account, cluster: str, wanted: frozenset[str]) -> Mapping[str, Stack]:
    """Return the stacks of a cluster by name, including stacks of pools that left its file.

    Args:
        account: The account.
        cluster: Name of the cluster.
        wanted: Names that stacks of the cluster file may have.

    Raises:
        QuestionError: A stack of another owner has one of the names.
    """
    stacks: dict[str, Stack] = {}
    foreign: list[str] = []
    for answer in account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    ):
        name = answer["StackName"]
        if is_of(answer.get("Description"), cluster):
            stacks[name] = _stack(account, answer)
        elif name in wanted and answer["StackStatus"] != _REVIEW:
            foreign.append(
                f"stack {name}: it is no stack of this cluster: "
                f"{answer.get('Description', 'no description')}; the cluster file is wrong, or "
                "another cluster's"
            )
    if foreign:
        raise QuestionError(foreign)
    return stacks


def is_of(description: str | None, cluster: str) -> bool:
    """Return whether a stack's description names a cluster; the stack's name proves nothing."""
    return description == names.stack_description(cluster)


def _stack(account: Account, answer: "StackTypeDef") -> Stack:
    id = answer["StackId"]
    # A change set that was never executed made neither a template nor resources.
    made = answer["StackStatus"] != _REVIEW
    return Stack(
        name=answer["StackName"],
        id=id,
        status=answer["StackStatus"],
        protected=bool(answer.get("EnableTerminationProtection", False)),
        resources=_resources(account, id) if made else (),
    )


def _resources(account: Account, stack_id: str) -> tuple[Resource, ...]:
    """Return the resources of a stack, with the deletion policies of its template."""
    template = _template(account, stack_id)
    return tuple(
        Resource(
            type=resource["ResourceType"],
            logical_id=resource["LogicalResourceId"],
            id=id,
            retained=text(template, "Resources", resource["LogicalResourceId"], "DeletionPolicy")
            in _RETAINED,
        )
        for resource in _held_resources(account, stack_id)
        if (id := resource.get("PhysicalResourceId")) and resource["ResourceStatus"] != _GONE
    )


def _held_resources(account: Account, stack_id: str) -> "list[StackResourceSummaryTypeDef]":
    return account.ask_all(
        account.client("cloudformation").list_stack_resources,
        lambda page: page["StackResourceSummaries"],
        StackName=stack_id,
    )


def _template(account: Account, stack_id: str) -> object:
    # The original template says what stays, as the transformed one does.
    answer = account.ask(account.client("cloudformation").get_template, StackName=stack_id)
    body: object = answer["TemplateBody"]
    if isinstance(body, str):
        return parse_json(body) if body.lstrip().startswith("{") else yaml.safe_load(body)
    return body


def live_stacks(scope: Scope) -> Iterator[Found]:
    """Yield the stacks of a cluster that are not deleted."""
    for stack in scope.account.ask_all(
        scope.account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    ):
        if is_of(stack.get("Description"), scope.plan.name):
            yield Found(
                thing=Thing(kind=STACK, id=stack["StackName"], note=stack["StackStatus"]),
                why=stack.get("StackStatusReason", "the teardown has not come to it"),
            )


def deleted_stacks(
    account: Account, cluster: str
) -> "Iterator[tuple[str, list[StackResourceSummaryTypeDef]]]":
    """Yield the deleted stacks of a cluster, each with the resources that it held.

    CloudFormation lists a stack for 90 days after its deletion.
    """
    for stack in account.ask_all(
        account.client("cloudformation").list_stacks,
        lambda page: page["StackSummaries"],
        StackStatusFilter=["DELETE_COMPLETE"],
    ):
        if is_of(stack.get("TemplateDescription"), cluster):
            yield stack["StackName"], _held_resources(account, stack["StackId"])


def functions_among(held: "Iterable[StackResourceSummaryTypeDef]") -> frozenset[str]:
    """Return the names of the Lambda functions among the resources of a stack."""
    return frozenset(
        id
        for resource in held
        if resource["ResourceType"] == FUNCTION and (id := resource.get("PhysicalResourceId"))
    )


class StackTarget(Frozen):
    """Target that deletes a stack through CloudFormation, which orders the resources itself."""

    account: Account  # The account
    stack: Stack  # The stack, as the plan was printed with it

    @property
    def thing(self) -> Thing:
        """The stack."""
        return Thing(kind=STACK, id=self.stack.name)

    @property
    def things(self) -> Sequence[Thing]:
        """The stack, and the resources that it does not retain."""
        going = (resource.thing for resource in self.stack.resources if not resource.retained)
        return (self.thing, *going)

    def look(self) -> State:
        """Return the stack's state."""
        try:
            stacks = self.account.ask(
                self.account.client("cloudformation").describe_stacks, StackName=self.stack.id
            )["Stacks"]
        except UnansweredError as error:
            if error.code == _ABSENT and "does not exist" in error.reason:
                return "gone"
            raise
        status = str(stacks[0]["StackStatus"]) if stacks else _GONE
        if status == _GONE:
            return "gone"
        if status == "DELETE_FAILED":
            return "failed"
        return "going" if status == "DELETE_IN_PROGRESS" else "there"

    def remove(self) -> None:
        """Delete the stack, if it holds nothing that the plan did not print."""
        printed = {resource.id for resource in self.stack.resources}
        kept = {resource.id for resource in self.stack.resources if resource.retained}
        now = _resources(self.account, self.stack.id)
        new = sorted(
            f"it holds {resource.type} {resource.id}, too"
            for resource in now
            if resource.id not in printed
        )
        new += sorted(
            f"it no longer keeps {resource.type} {resource.id}"
            for resource in now
            if resource.id in kept and not resource.retained
        )
        if new:
            raise StoppedError(
                f"stack {self.stack.name}",
                why=f"somebody has changed it since the plan was printed: {new[0]}",
                fix="run the command again and read the plan anew",
            )
        self.account.ask(
            self.account.client("cloudformation").delete_stack, StackName=self.stack.id
        )

    def stuck(self) -> StoppedError:
        """Return the first resource that CloudFormation could not delete."""
        why, fix = _first_cause(self.account, self.stack.id)
        return StoppedError(f"stack {self.stack.name}", why=why, fix=fix)


def _first_cause(account: Account, stack_id: str) -> tuple[str, str]:
    """Return why the latest deletion of a stack stands still, and the fix.

    Args:
        account: The account.
        stack_id: ARN of the stack.

    Raises:
        UnansweredError: AWS did not answer.
    """
    events = _deletion_events(newest_first(account, stack_id))
    failed = first_failure(reversed(events))
    if failed is None:
        waiting = _still_going(events)
        seen = (
            f"CloudFormation is still at {', '.join(waiting)}" if waiting else "no event says why"
        )
        return seen, f"wait until it is DELETE_FAILED or gone, {_GOES_ON}"
    failed = refused_by_hook(failed, events) or failed
    what = f"{failed['ResourceType']} {failed.get('PhysicalResourceId', '')}"
    return f"{what}: {reason_of(failed)}", _fix(account, failed, events)


def _deletion_events(events: "Iterable[Event]") -> "list[Event]":
    """Return the events since the last request of the deletion, the latest event first."""
    since: list[Event] = []
    for event in events:
        if is_stack(event) and event.get("ResourceStatus") == "DELETE_IN_PROGRESS":
            break
        since.append(event)
    return since


def _still_going(events: "Iterable[Event]") -> list[str]:
    latest: dict[str, Event] = {}
    for event in events:
        latest.setdefault(str(event["LogicalResourceId"]), event)
    going = (
        f"{event['ResourceType']} {event.get('PhysicalResourceId', '')}"
        for event in latest.values()
        if event.get("ResourceStatus") == "DELETE_IN_PROGRESS"
    )
    return sorted(going)[:_SHOWN]


def _fix(account: Account, failed: "Event", events: "Sequence[Event]") -> str:
    held_by = _HELD_BY.get(str(failed["ResourceType"]))
    if held_by is not None:
        held = [failed.get("PhysicalResourceId", "")]
        users = interfaces(account, [{"Name": held_by, "Values": held}])
        if users:
            shown = ", ".join(interface_words(user) for user in users[:_SHOWN])
            more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
            return f"remove what has its network interfaces ({shown}{more}), {_GOES_ON}"
        return f"remove what uses it (another security group may name it), {_GOES_ON}"
    if "in use by" in reason_of(failed):
        return f"delete the stacks that import it first, {_GOES_ON}"
    if failed["ResourceType"].startswith(_OF_KUBERNETES):
        return _without_cluster(account.region, failed, events)
    return f"do what the message asks for, {_GOES_ON}"


def _without_cluster(region: str, failed: "Event", events: "Iterable[Event]") -> str:
    """Return the fix for Kubernetes objects that stay because their cluster may be gone."""
    ids = {
        str(event["LogicalResourceId"])
        for event in events
        if event.get("ResourceStatus") == "DELETE_FAILED"
        and event["ResourceType"].startswith(_OF_KUBERNETES)
    }
    return (
        "do what the message asks for; where the EKS cluster was deleted by hand, its objects are "
        f"gone with it: `aws cloudformation delete-stack --region {region} --stack-name "
        f"{failed['StackName']} --retain-resources {' '.join(sorted(ids))}`, {_GOES_ON}"
    )
