"""Why CloudFormation could not delete a stack: the first real cause, and what to do about it.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ultrascale.account import Account

_EVENTS = "cloudformation:DescribeStackEvents"
_INTERFACES = "ec2:DescribeNetworkInterfaces"
_AGAIN = "then run the command again: it goes on here"
# By which filter EC2 finds the interfaces that keep a resource from going.
_HELD_BY = {
    "AWS::EC2::SecurityGroup": "group-id",
    "AWS::EC2::Subnet": "subnet-id",
    "AWS::EC2::VPC": "vpc-id",
}
_SHOWN = 5


def first_cause(account: Account, stack_id: str) -> tuple[str, str]:
    """Return why the latest deletion of a stack stands still, and what to do.

    Args:
        account: The account.
        stack_id: ARN of the stack.
    """
    events = account.ask_all(_EVENTS, "StackEvents", StackName=stack_id)
    failed = _first_failure(events, stack_id)
    if failed is None:
        waiting = _still_going(events, stack_id)
        seen = (
            f"CloudFormation is still at {', '.join(waiting)}" if waiting else "no event says why"
        )
        return seen, f"wait until it is DELETE_FAILED or gone, {_AGAIN}"
    what = f"{failed['ResourceType']} {failed.get('PhysicalResourceId', '')}"
    why = f"{what}: {failed.get('ResourceStatusReason', 'CloudFormation does not say why')}"
    return why, _fix(account, failed)


def _first_failure(events: Iterable[Mapping[str, Any]], stack_id: str) -> Mapping[str, Any] | None:
    """Return the earliest failure since the deletion was last asked for; events come latest first.

    The stack's own failure only counts the others, but where it alone failed: an export is in use.
    """
    first: Mapping[str, Any] | None = None
    own: Mapping[str, Any] | None = None
    for event in events:
        is_stack = event.get("PhysicalResourceId") == stack_id
        status = event.get("ResourceStatus")
        if is_stack and status == "DELETE_IN_PROGRESS":
            break
        if status == "DELETE_FAILED" and not _is_cancelled(event):
            own, first = (event, first) if is_stack else (own, event)
    return first or own


def _is_cancelled(event: Mapping[str, Any]) -> bool:
    """Return whether a resource only stays because another one failed before it."""
    return "deletion cancelled" in str(event.get("ResourceStatusReason", "")).lower()


def _still_going(events: Iterable[Mapping[str, Any]], stack_id: str) -> list[str]:
    latest: dict[str, Mapping[str, Any]] = {}
    for event in events:
        latest.setdefault(str(event["LogicalResourceId"]), event)
    going = (
        f"{each['ResourceType']} {each.get('PhysicalResourceId', '')}"
        for each in latest.values()
        if each.get("ResourceStatus") == "DELETE_IN_PROGRESS"
        and each.get("PhysicalResourceId") != stack_id
    )
    return sorted(going)[:_SHOWN]


def _fix(account: Account, failed: Mapping[str, Any]) -> str:
    reason = str(failed.get("ResourceStatusReason", ""))
    held_by = _HELD_BY.get(str(failed["ResourceType"]))
    if held_by is not None:
        interfaces = account.ask_all(
            _INTERFACES,
            "NetworkInterfaces",
            Filters=[{"Name": held_by, "Values": [failed.get("PhysicalResourceId", "")]}],
        )
        if interfaces:
            shown = ", ".join(_interface(each) for each in interfaces[:_SHOWN])
            more = f" and {len(interfaces) - _SHOWN} more" if len(interfaces) > _SHOWN else ""
            return f"remove what has its network interfaces ({shown}{more}), {_AGAIN}"
        return f"remove what uses it (another security group may name it), {_AGAIN}"
    if "in use by" in reason:
        return f"delete the stacks that import it first, {_AGAIN}"
    return f"do what the message asks for, {_AGAIN}"


def _interface(found: Mapping[str, Any]) -> str:
    about = found.get("Description") or found.get("InterfaceType", "")
    return f"{found['NetworkInterfaceId']} {found['Status']}: {about}"
