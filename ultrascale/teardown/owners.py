"""Whose a resource is by now: another stack may have what no stack of the cluster holds.

What a stack has left can be imported into another, and a log group has the name that its service
looks for, whoever makes it.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResources.html
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from ultrascale.account import Account
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.teardown.leftovers import Retained
from ultrascale.teardown.retained import LOG_GROUP

# What CloudFormation answers of what no stack holds, among other things.
_NO_STACK = "ValidationError"
# Of stacks that are gone it tells for 90 days.
_LEFT = frozenset({"DELETE_COMPLETE", "DELETE_SKIPPED"})


def with_owners(
    account: Account, found: Sequence[Retained], going: Set[str], own: Set[str]
) -> tuple[Retained, ...]:
    """Return what would stay, and of that which is to go, which other stack holds it by now.

    Args:
        account: The account.
        found: What would stay.
        going: Ids of what is to go of that.
        own: Ids of what the stacks of the cluster hold.

    Raises:
        QuestionError: Storage that was named is another stack's; one line for each.
        UnansweredError: Nobody could tell.
    """
    asked = going - own
    every = tuple(
        replace(each, owner=_owner(account, each)) if each.id in asked else each for each in found
    )
    wrong = [
        f"--delete-storage: {each.thing} is in the stack {each.owner} by now, which is not of this "
        "cluster; leave it out"
        for each in every
        if each.owner and each.type != LOG_GROUP
    ]
    if wrong:
        raise QuestionError(wrong)
    return every


def _owner(account: Account, found: Retained) -> str:
    """Return the stack that holds a resource; empty where none does."""
    return next(_holders(account, found), "")


def _holders(account: Account, found: Retained) -> Iterator[str]:
    try:
        held = account.ask(
            account.client("cloudformation").describe_stack_resources, PhysicalResourceId=found.id
        ).get("StackResources", [])
    except UnansweredError as error:
        if error.code == _NO_STACK and "does not exist" in error.reason:
            return
        raise
    for each in held:
        same = (each.get("PhysicalResourceId"), each["ResourceType"]) == (found.id, found.type)
        if same and each["ResourceStatus"] not in _LEFT:
            yield each["StackName"]
