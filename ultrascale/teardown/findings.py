"""What there is of a cluster, in its account and in its API server, before anything is decided."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ultrascale.account import Account
from ultrascale.cluster_api.server import Cluster
from ultrascale.config.pipeline import ConnectionId
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.plan import ClusterPlan
from ultrascale.plan.stacks import pipeline_stacks, stack_names, stack_of
from ultrascale.teardown import leftovers
from ultrascale.teardown.gates import NO_CLUSTER, NO_HYPERPOD
from ultrascale.teardown.leftovers import Retained
from ultrascale.teardown.model import Left
from ultrascale.teardown.remains import InterfaceTarget, remains
from ultrascale.teardown.retained import (
    DATABASE,
    DATABASE_INSTANCE,
    FILE_SYSTEM,
    RetainedTarget,
)
from ultrascale.teardown.stacks import Stack, read_stacks
from ultrascale.teardown.strangers import strangers
from ultrascale.teardown.tagged import nodes_of_pools

_VPC, _CLUSTER = "AWS::EC2::VPC", "AWS::EKS::Cluster"
_HYPERPOD = "AWS::SageMaker::Cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What there is of a cluster.

    Attributes:
        stacks: Its stacks, by name.
        retained: What stacks of it keep, or have left.
        cluster: Its API server; None where it answers no more.
        status: EKS's word for the state of the cluster; empty where there is none.
        hyperpod: Name or ARN of its HyperPod cluster, which may have left the file; empty where
            there is none.
        remains: What Kubernetes left in its VPC.
        strangers: Network interfaces of others in its VPC, as EC2 tells them.
        nodes: Instances that run without an API server that could end them.
        vpc: Id of its VPC; empty where there is none.
        pipeline_home: Where the pipeline of its file lies; None for a file without one.
    """

    stacks: Mapping[str, Stack]
    retained: tuple[Retained, ...]
    cluster: Cluster | None
    status: str
    hyperpod: str
    remains: tuple[InterfaceTarget | RetainedTarget, ...] = ()
    strangers: tuple[Mapping[str, Any], ...] = ()
    nodes: tuple[Left, ...] = ()
    vpc: str = ""
    pipeline_home: ConnectionId | None = None


def look(
    account: Account,
    plan: ClusterPlan,
    cluster: Cluster | None,
    status: str,
    pipeline_home: ConnectionId | None = None,
) -> Findings:
    """Return what there is of a cluster.

    Args:
        account: Its account.
        plan: The cluster.
        cluster: Its API server; None where there is none to ask.
        status: EKS's word for the state of the cluster; empty where there is none.
        pipeline_home: Where the pipeline of its file lies; None for a file without one.

    Raises:
        UnansweredError: Something could not be asked: what is not known cannot be planned.
        QuestionError: A stack is being changed, is protected, is another's, or would take a file
            system along.
    """
    stacks = read_stacks(account, plan.name, stack_names(plan))
    _refuse(stacks.values(), plan)
    made = (each for stack in stacks.values() for each in stack.resources if each.type == _CLUSTER)
    if all(each.id != plan.name for each in made):
        # No stack of ours made what has the name: it is somebody else's, or gone.
        cluster, status = None, ""
    own = frozenset(each.id for stack in stacks.values() for each in stack.resources)
    vpc = _vpc(stacks, plan)
    retained = leftovers.find(account, plan, stacks)
    # EKS ends the nodes of Auto Mode with its cluster.
    alone = cluster is None and not (plan.control_plane.auto_mode and status)
    return Findings(
        stacks=stacks,
        retained=retained,
        strangers=_strangers(account, plan, vpc, own, retained) if vpc else (),
        nodes=nodes_of_pools(account, plan.name) if alone else (),
        vpc=vpc,
        pipeline_home=pipeline_home,
        cluster=cluster,
        status=status,
        hyperpod=_hyperpod(account, plan, stacks),
        remains=remains(account, plan.name, vpc, own) if vpc else (),
    )


def _strangers(
    account: Account, plan: ClusterPlan, vpc: str, own: frozenset[str], retained: Iterable[Retained]
) -> tuple[Mapping[str, Any], ...]:
    every = tuple(retained)
    has_database = any(each.type in (DATABASE, DATABASE_INSTANCE) for each in every)
    known = own | {each.id for each in every}
    return tuple(strangers(account, plan.name, vpc, known, has_database=has_database))


def eks_status(account: Account, cluster: str) -> str:
    """Return EKS's word for the state of a cluster; empty where there is none.

    Raises:
        UnansweredError: Nobody could tell.
    """
    try:
        return str(
            account.ask(account.client("eks").describe_cluster, name=cluster)["cluster"]["status"]
        )
    except UnansweredError as error:
        if error.code == NO_CLUSTER:
            return ""
        raise


def _vpc(stacks: Mapping[str, Stack], plan: ClusterPlan) -> str:
    network = stacks.get(stack_of(plan.name, "network"))
    found = (each.id for each in network.resources if each.type == _VPC) if network else ()
    return next(iter(found), "")


def _hyperpod(account: Account, plan: ClusterPlan, stacks: Mapping[str, Stack]) -> str:
    made = (each for stack in stacks.values() for each in stack.resources if each.type == _HYPERPOD)
    name = plan.hyperpod.name if plan.hyperpod is not None else next((e.id for e in made), "")
    try:
        if name:
            account.ask(account.client("sagemaker").describe_cluster, ClusterName=name)
    except UnansweredError as error:
        if error.code == NO_HYPERPOD:
            return ""
        raise
    return name


def _refuse(stacks: Iterable[Stack], plan: ClusterPlan) -> None:
    """Refuse to begin beside a deployment, and where a stack may not go that has to."""
    of_pipeline = {*pipeline_stacks(plan.name)}
    wrong: list[str] = []
    for stack in stacks:
        wrong += [
            f"stack {stack.name}: it no longer keeps {each.thing}, and would take all its data "
            "along; let it keep that again (DeletionPolicy: Retain), or delete the stack by hand"
            for each in stack.resources
            if each.type == FILE_SYSTEM and not (each.retained or stack.going)
        ]
        if stack.busy:
            todo = (
                "its pipeline runs, and would deploy the cluster meanwhile: stop that first"
                if stack.name in of_pipeline
                else "wait until that ends"
            )
            wrong.append(f"stack {stack.name}: it is {stack.status}; {todo}")
        if stack.protected and stack.name not in of_pipeline:
            wrong.append(
                f"stack {stack.name}: its termination protection is on; `aws cloudformation "
                f"update-termination-protection --no-enable-termination-protection --stack-name "
                f"{stack.name} --region {plan.region}`"
            )
    if wrong:
        raise QuestionError(wrong)
