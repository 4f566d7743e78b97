"""Stacks: what they hold, what they keep, and how they are deleted.

Nothing is forced: neither FORCE_DELETE_STACK nor a list of resources to retain is ever sent. Both
leave what is paid for where nobody looks for it.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DeleteStack.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

from ultrascale.account import Account
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.plan import names
from ultrascale.teardown.causes import first_cause
from ultrascale.teardown.model import State, StoppedError, Thing

STACK = "AWS::CloudFormation::Stack"
# What CloudFormation answers of a stack that is not there, among other things.
_ABSENT = "ValidationError"
_GONE = "DELETE_COMPLETE"
_RETAINED = ("Retain", "RetainExceptOnCreate")
# Objects of Kubernetes, which go with the cluster whatever a stack says of them.
_OF_KUBERNETES = ("Custom::AWSCDK-EKS-",)
# A change set that was never executed.
_REVIEW = "REVIEW_IN_PROGRESS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource of a stack.

    Attributes:
        type: CloudFormation's name of its type.
        logical_id: Its name in the template.
        id: What its service calls it.
        retained: Whether it stays when the stack goes.
    """

    type: str
    logical_id: str
    id: str
    retained: bool

    @property
    def of_kubernetes(self) -> bool:
        """Whether it is objects of Kubernetes."""
        return self.type.startswith(_OF_KUBERNETES)

    @property
    def thing(self) -> Thing:
        """The resource, as a plan prints it."""
        return Thing(kind=self.type, id=self.id, note=self.logical_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack of the account.

    Attributes:
        name: Its name.
        id: Its ARN, which no later stack of the same name has.
        status: CloudFormation's word for its state.
        protected: Whether termination protection is on.
        resources: What it holds.
    """

    name: str
    id: str
    status: str
    protected: bool
    resources: tuple[Resource, ...]

    @property
    def retained(self) -> tuple[Resource, ...]:
        """What it leaves in the account."""
        return tuple(each for each in self.resources if each.retained and not each.of_kubernetes)

    @property
    def going(self) -> bool:
        """Whether its deletion has been asked for, and goes on."""
        return self.status == "DELETE_IN_PROGRESS"

    @property
    def busy(self) -> bool:
        """Whether CloudFormation is at it, other than by deleting it."""
        ending = self.status.endswith("_IN_PROGRESS") and self.status != _REVIEW
        return ending and not self.status.startswith("DELETE_")


def read_stacks(account: Account, cluster: str, wanted: frozenset[str]) -> Mapping[str, Stack]:
    """Return the stacks of a cluster by name, those of pools that have left its file among them.

    Args:
        account: The account.
        cluster: Name of the cluster.
        wanted: Names that stacks of the cluster file may have.

    Raises:
        QuestionError: One of the names is that of another's stack.
    """
    found: dict[str, Stack] = {}
    foreign: list[str] = []
    for answer in account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    ):
        name = answer["StackName"]
        if is_of(answer.get("Description"), cluster):
            found[name] = _stack(account, answer)
        elif name in wanted and answer["StackStatus"] != _REVIEW:
            foreign.append(
                f"stack {name}: it is no stack of this cluster: "
                f"{answer.get('Description', 'no description')}; the cluster file is wrong, or "
                "another cluster's"
            )
    if foreign:
        raise QuestionError(foreign)
    return found


def is_of(description: str | None, cluster: str) -> bool:
    """Return whether a stack's description says that it is of a cluster: a name alone does not."""
    return description == names.stack_description(cluster)


def _stack(account: Account, answer: Mapping[str, Any]) -> Stack:
    id = answer["StackId"]
    # What was never executed has neither a template nor resources.
    made = answer["StackStatus"] != _REVIEW
    return Stack(
        name=answer["StackName"],
        id=id,
        status=answer["StackStatus"],
        protected=bool(answer.get("EnableTerminationProtection", False)),
        resources=_resources(account, id, _template(account, id)) if made else (),
    )


def _resources(
    account: Account, stack_id: str, template: Mapping[str, Any]
) -> tuple[Resource, ...]:
    stated = cast("Mapping[str, Mapping[str, Any]]", template.get("Resources", {}))
    return tuple(
        Resource(
            type=each["ResourceType"],
            logical_id=each["LogicalResourceId"],
            id=each["PhysicalResourceId"],
            retained=stated.get(each["LogicalResourceId"], {}).get("DeletionPolicy") in _RETAINED,
        )
        for each in account.ask_all(
            account.client("cloudformation").list_stack_resources,
            lambda page: page["StackResourceSummaries"],
            StackName=stack_id,
        )
        if each.get("PhysicalResourceId") and each["ResourceStatus"] != _GONE
    )


def _template(account: Account, stack_id: str) -> Mapping[str, Any]:
    # Of the original, not of what transforms made of it, what stays follows as well.
    body: object = account.ask(account.client("cloudformation").get_template, StackName=stack_id)[
        "TemplateBody"
    ]
    if isinstance(body, str):
        body = json.loads(body) if body.lstrip().startswith("{") else yaml.safe_load(body)
    return cast("Mapping[str, Any]", body)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackTarget:
    """Deletes a stack through CloudFormation, which takes its resources in their own order.

    Attributes:
        account: The account.
        stack: The stack, as the plan was printed with it.
    """

    account: Account
    stack: Stack

    @property
    def thing(self) -> Thing:
        """The stack."""
        return Thing(kind=STACK, id=self.stack.name)

    @property
    def things(self) -> Sequence[Thing]:
        """The stack, and what it does not retain."""
        going = (each.thing for each in self.stack.resources if not each.retained)
        return (self.thing, *going)

    def look(self) -> State:
        """Return how far the stack is."""
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
        """Delete the stack, if it takes nothing with it that the plan did not print."""
        printed = {each.id for each in self.stack.resources}
        kept = {each.id for each in self.stack.resources if each.retained}
        now = _resources(self.account, self.stack.id, _template(self.account, self.stack.id))
        new = sorted(
            f"it holds {each.type} {each.id}, too" for each in now if each.id not in printed
        )
        new += sorted(
            f"it no longer keeps {each.type} {each.id}"
            for each in now
            if each.id in kept and not each.retained
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
        why, fix = first_cause(self.account, self.stack.id)
        return StoppedError(f"stack {self.stack.name}", why=why, fix=fix)
