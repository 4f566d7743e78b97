"""Stacks that stay: of pipelines, and that of the network where something in the VPC stays."""

from collections.abc import Iterator, Mapping

from ultrascale.account import Account
from ultrascale.plan.stacks import pipeline_stacks
from ultrascale.teardown import prices
from ultrascale.teardown.model import Left, Thing
from ultrascale.teardown.remains import in_vpc
from ultrascale.teardown.retained import (
    DATABASE,
    DATABASE_INSTANCE,
    FILE_SYSTEM,
    IN_VPC,
    SECURITY_GROUP,
)
from ultrascale.teardown.stacks import STACK, Stack

_SHORT: Mapping[str, str] = {
    FILE_SYSTEM: "file systems",
    DATABASE: "databases",
    DATABASE_INSTANCE: "their instances",
    SECURITY_GROUP: "their security groups",
}
assert set(_SHORT) == IN_VPC, "each kind that keeps a VPC has a name"


def pipeline(stack: Stack, region: str, *, looks: bool) -> Left:
    """Return that a pipeline stays, or what one looks at the cluster's account by.

    Args:
        stack: Its stack.
        region: Its Region.
        looks: Whether the stack only lets a pipeline look, which may lie anywhere.
    """
    what = "a pipeline looks by its role" if looks else "it is a pipeline"
    after = "" if looks else "; its bucket and its key stay then"
    unprotect = (
        f"aws cloudformation update-termination-protection --no-enable-termination-protection "
        f"--stack-name {stack.name} --region {region}, then "
    )
    return Left(
        thing=Thing(kind=STACK, id=stack.name),
        why=f"{what}, which deploys the cluster again whenever it runs: take the cluster out of "
        "its stages, and let no run of it go on",
        command=f"{unprotect if stack.protected else ''}aws cloudformation delete-stack "
        f"--stack-name {stack.name} --region {region}{after}",
        paid=False,
        asked=True,
    )


def pipeline_elsewhere(cluster: str, region: str, account: str) -> Left:
    """Return that the pipeline of a cluster file lies where this command does not look.

    Args:
        cluster: Name of the cluster.
        region: Region of the pipeline.
        account: Its account.
    """
    name = pipeline_stacks(cluster)[0]
    return Left(
        thing=Thing(kind=STACK, id=name, note=f"in {region} of {account}, not looked at"),
        why="the file has a pipeline, which deploys the cluster again whenever it runs: let no run "
        "of it go on",
        command=f"with credentials of {account}: aws cloudformation delete-stack --stack-name "
        f"{name} --region {region}; its bucket and its key stay then",
        asked=True,
    )


def network(account: Account, stack: Stack, vpc: str) -> Iterator[Left]:
    """Yield what stays because something in the VPC does.

    Args:
        account: The account.
        stack: The stack of the network.
        vpc: Id of the VPC.
    """
    yield Left(
        thing=Thing(kind=STACK, id=stack.name),
        why=f"what stays in its VPC needs it ({', '.join(sorted(_SHORT.values()))})",
        command=f"remove that, then aws cloudformation delete-stack --stack-name {stack.name} "
        f"--region {account.region}",
        paid=False,
        asked=True,
    )
    endpoints = account.ask_all(
        account.client("ec2").describe_vpc_endpoints,
        lambda page: page["VpcEndpoints"],
        Filters=in_vpc(vpc),
    )
    zones = {
        each["VpcEndpointId"]: len(each.get("SubnetIds", []))
        for each in endpoints
        if each["VpcEndpointType"] == "Interface"
    }
    for each in stack.resources:
        count = zones.get(each.id, 0)
        price, hourly = prices.of_endpoint(count) if count else prices.of_type(each.type)
        if price:
            yield Left(
                thing=each.thing,
                why=f"the stack {stack.name} stays",
                command="goes with the stack",
                price=price,
                asked=True,
                usd_per_hour=hourly,
            )
