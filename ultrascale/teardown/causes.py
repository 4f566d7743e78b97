"""Why CloudFormation could not delete a stack: the first real cause, and what to do about it.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html
"""

from collections.abc import Iterable, Sequence

from ultrascale.account import Account
from ultrascale.deploy.stack_events import (
    Event,
    first_failure,
    is_stack,
    newest_first,
    reason_of,
    refused_by_hook,
)

_AGAIN = "then run the command again: it goes on here"
# By which filter EC2 finds the interfaces that keep a resource from going.
_HELD_BY = {
    "AWS::EC2::SecurityGroup": "group-id",
    "AWS::EC2::Subnet": "subnet-id",
    "AWS::EC2::VPC": "vpc-id",
}
# What functions of a stack apply to a cluster.
_OF_KUBERNETES = "Custom::AWSCDK-EKS-"
_SHOWN = 5


def first_cause(account: Account, stack_id: str) -> tuple[str, str]:
    """Return why the latest deletion of a stack stands still, and what to do.

    Args:
        account: The account.
        stack_id: ARN of the stack.

    Raises:
        UnansweredError: AWS does not say.
    """
    events = _of_deletion(newest_first(account, stack_id))
    failed = first_failure(reversed(events))
    if failed is None:
        waiting = _still_going(events)
        seen = (
            f"CloudFormation is still at {', '.join(waiting)}" if waiting else "no event says why"
        )
        return seen, f"wait until it is DELETE_FAILED or gone, {_AGAIN}"
    failed = refused_by_hook(failed, events) or failed
    what = f"{failed['ResourceType']} {failed.get('PhysicalResourceId', '')}"
    return f"{what}: {reason_of(failed)}", _fix(account, failed, events)


def _of_deletion(events: Iterable[Event]) -> list[Event]:
    """Return the events since the deletion was last asked for, the latest first."""
    found: list[Event] = []
    for event in events:
        if is_stack(event) and event.get("ResourceStatus") == "DELETE_IN_PROGRESS":
            break
        found.append(event)
    return found


def _still_going(events: Iterable[Event]) -> list[str]:
    latest: dict[str, Event] = {}
    for event in events:
        latest.setdefault(str(event["LogicalResourceId"]), event)
    going = (
        f"{each['ResourceType']} {each.get('PhysicalResourceId', '')}"
        for each in latest.values()
        if each.get("ResourceStatus") == "DELETE_IN_PROGRESS"
    )
    return sorted(going)[:_SHOWN]


def _fix(account: Account, failed: Event, events: Sequence[Event]) -> str:
    held_by = _HELD_BY.get(str(failed["ResourceType"]))
    if held_by is not None:
        interfaces = account.ask_all(
            account.client("ec2").describe_network_interfaces,
            lambda page: page["NetworkInterfaces"],
            Filters=[{"Name": held_by, "Values": [failed.get("PhysicalResourceId", "")]}],
        )
        if interfaces:
            shown = ", ".join(_interface(each) for each in interfaces[:_SHOWN])
            more = f" and {len(interfaces) - _SHOWN} more" if len(interfaces) > _SHOWN else ""
            return f"remove what has its network interfaces ({shown}{more}), {_AGAIN}"
        return f"remove what uses it (another security group may name it), {_AGAIN}"
    if "in use by" in reason_of(failed):
        return f"delete the stacks that import it first, {_AGAIN}"
    if failed["ResourceType"].startswith(_OF_KUBERNETES):
        return _without_cluster(account.region, failed, events)
    return f"do what the message asks for, {_AGAIN}"


def _without_cluster(region: str, failed: Event, events: Iterable[Event]) -> str:
    """Return what to do where objects of Kubernetes do not go: their cluster may be gone."""
    ids = {
        str(each["LogicalResourceId"])
        for each in events
        if each.get("ResourceStatus") == "DELETE_FAILED"
        and each["ResourceType"].startswith(_OF_KUBERNETES)
    }
    return (
        "do what the message asks for; where the EKS cluster was deleted by hand, its objects are "
        f"gone with it: `aws cloudformation delete-stack --region {region} --stack-name "
        f"{failed['StackName']} --retain-resources {' '.join(sorted(ids))}`, {_AGAIN}"
    )


def _interface(found: Event) -> str:
    about = found.get("Description") or found.get("InterfaceType", "")
    return f"{found['NetworkInterfaceId']} {found['Status']}: {about}"
