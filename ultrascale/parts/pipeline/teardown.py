"""Stacks of a pipeline in a teardown: they stay, as they may deploy other clusters."""

from collections.abc import Iterator, Mapping

from ultrascale.parts.pipeline.model import GATE_STACK, OWN_STACK, Plan
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.teardown.model import Left, Thing
from ultrascale.teardown.stacks import STACK, Stack

_AGAIN = "which deploys the cluster again whenever it runs"


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
    own, name = plan.part(Plan), names.stack(plan.name, OWN_STACK)
    # Where this command does not look.
    if own and (own.home.region, own.home.account) != (plan.region, account):
        where = f"in {own.home.region} of {own.home.account}"
        yield Left(
            thing=Thing(kind=STACK, id=name, note=f"{where}, not looked at"),
            why=f"the file has a pipeline, {_AGAIN}: let no run of it go on",
            command=f"with credentials of {own.home.account}: aws cloudformation delete-stack "
            f"--stack-name {name} --region {own.home.region}; its bucket and its key stay then",
            asked=True,
        )


def _kept_stack(stack: Stack, region: str, *, looks: bool) -> Left:
    """Return the leftover for a pipeline's stack, or for the stack that lets a pipeline read.

    Args:
        stack: Its stack.
        region: Region of the cluster.
        looks: Whether the stack only lets a pipeline of any account read this account.
    """
    role = "a pipeline looks by its role" if looks else "it is a pipeline"
    after = "" if looks else "; its bucket and its key stay then"
    unprotect = (
        f"aws cloudformation update-termination-protection --no-enable-termination-protection "
        f"--stack-name {stack.name} --region {region}, then "
    )
    return Left(
        thing=Thing(kind=STACK, id=stack.name),
        why=f"{role}, {_AGAIN}: take the cluster out of its stages, and let no run of it go on",
        command=f"{unprotect if stack.protected else ''}aws cloudformation delete-stack "
        f"--stack-name {stack.name} --region {region}{after}",
        paid=False,
        asked=True,
    )
