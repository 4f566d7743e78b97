"""Stacks of a pipeline in a teardown: they stay, as they may deploy other clusters."""

from collections.abc import Iterator, Mapping

from ultrascale.parts.pipeline.model import GATE_STACK, OWN_STACK, Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.teardown.model import Left, Thing
from ultrascale.teardown.stacks import STACK, Stack


def kept_stacks(account: str, plan: ClusterPlan, stacks: Mapping[str, Stack]) -> Iterator[Left]:
    """Yield the pipeline and its gate, and a pipeline in another account or Region.

    Args:
        account: Account of the cluster.
        plan: The cluster.
        stacks: Its stacks, by name.
    """
    for name in (OWN_STACK, GATE_STACK):
        stack = stacks.get(names.stack(plan.name, name))
        if stack is not None:
            yield _kept_stack(stack, plan.region, looks=name == GATE_STACK)
    own = plan.part(Plan)
    if own and (own.home.region, own.home.account) != (plan.region, account):
        yield _elsewhere(plan.name, own.home.region, own.home.account)


def _kept_stack(stack: Stack, region: str, *, looks: bool) -> Left:
    """Return the leftover for a pipeline's stack, or for the stack of its right to read.

    Args:
        stack: Its stack.
        region: Region of the cluster.
        looks: Whether the stack only lets a pipeline of any account read this one.
    """
    role = "a pipeline looks by its role" if looks else "it is a pipeline"
    after = "" if looks else "; its bucket and its key stay then"
    unprotect = (
        f"aws cloudformation update-termination-protection --no-enable-termination-protection "
        f"--stack-name {stack.name} --region {region}, then "
    )
    return Left(
        thing=Thing(kind=STACK, id=stack.name),
        why=f"{role}, which deploys the cluster again whenever it runs: take the cluster out of "
        "its stages, and let no run of it go on",
        command=f"{unprotect if stack.protected else ''}aws cloudformation delete-stack "
        f"--stack-name {stack.name} --region {region}{after}",
        paid=False,
        asked=True,
    )


def _elsewhere(cluster: str, region: str, account: str) -> Left:
    """Return the leftover of a pipeline in an account or Region where this command does not look.

    Args:
        cluster: Name of the cluster.
        region: Region of the pipeline.
        account: Its account.
    """
    return Left(
        thing=Thing(
            kind=STACK,
            id=names.stack(cluster, OWN_STACK),
            note=f"in {region} of {account}, not looked at",
        ),
        why="the file has a pipeline, which deploys the cluster again whenever it runs: let no run "
        "of it go on",
        command=f"with credentials of {account}: aws cloudformation delete-stack --stack-name "
        f"{names.stack(cluster, OWN_STACK)} --region {region}; its bucket and its key stay then",
        asked=True,
    )
