"""Decides what goes, in which order, and what stays: by what the account and the cluster hold."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from ultrascale.account import Account
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.jobs.cluster import Cluster
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.capacity import NODE_GROUPS
from ultrascale.plan.stacks import stack_names
from ultrascale.teardown import keeping, leftovers, order, workloads
from ultrascale.teardown.closing import NothingNew, submitters
from ultrascale.teardown.gates import (
    EKS,
    HYPERPOD,
    NO_CLUSTER,
    NO_HYPERPOD,
    HyperPodGate,
    ProtectionTarget,
)
from ultrascale.teardown.keeping import Asked
from ultrascale.teardown.leftovers import Retained
from ultrascale.teardown.model import Left, Step, Target, Teardown
from ultrascale.teardown.remains import InterfaceTarget, VpcGate, remains
from ultrascale.teardown.reserved import reservations
from ultrascale.teardown.retained import IN_VPC, RetainedTarget
from ultrascale.teardown.stacks import Stack, StackTarget, read_stacks
from ultrascale.teardown.tagged import INSTANCES, LIVE

_VPC, _CLUSTER = "AWS::EC2::VPC", "AWS::EKS::Cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What there is of a cluster.

    Attributes:
        stacks: Its stacks, by name.
        retained: What stacks of it keep, or have left.
        cluster: Its API server; None where it answers no more.
        status: EKS's word for the state of the cluster; empty where there is none.
        has_hyperpod: Whether its HyperPod cluster is there.
        remains: What Kubernetes left in its VPC.
    """

    stacks: Mapping[str, Stack]
    retained: tuple[Retained, ...]
    cluster: Cluster | None
    status: str
    has_hyperpod: bool
    remains: tuple[InterfaceTarget | RetainedTarget, ...] = field(default=())


def look(account: Account, plan: ClusterPlan, cluster: Cluster | None, status: str) -> Findings:
    """Return what there is of a cluster.

    Args:
        account: Its account.
        plan: The cluster.
        cluster: Its API server; None where there is none to ask.
        status: EKS's word for the state of the cluster; empty where there is none.

    Raises:
        UnansweredError: Something could not be asked: what is not known cannot be planned.
        QuestionError: A stack is being changed, is protected, or is another's.
    """
    wanted = stack_names(plan)
    stacks = read_stacks(account, plan.name, wanted)
    _refuse(stacks.values())
    made = (each for stack in stacks.values() for each in stack.resources if each.type == _CLUSTER)
    if all(each.id != plan.name for each in made):
        # No stack of ours made what has the name: it is somebody else's, or gone.
        cluster, status = None, ""
    own = frozenset(each.id for stack in stacks.values() for each in stack.resources)
    vpc = _vpc(stacks, plan)
    return Findings(
        stacks=stacks,
        retained=leftovers.find(account, plan, stacks),
        cluster=cluster,
        status=status,
        has_hyperpod=plan.hyperpod is not None and _has_hyperpod(account, plan.hyperpod.name),
        remains=remains(account, plan.name, vpc, own) if vpc else (),
    )


def eks_status(account: Account, cluster: str) -> str:
    """Return EKS's word for the state of a cluster; empty where there is none.

    Raises:
        UnansweredError: Nobody could tell.
    """
    try:
        return str(account.ask(EKS, name=cluster)["cluster"]["status"])
    except UnansweredError as error:
        if error.code == NO_CLUSTER:
            return ""
        raise


def running_nodes(account: Account, cluster: str) -> tuple[str, ...]:
    """Return the instances of a cluster that only its API server can end: NodePools' nodes.

    Args:
        account: The account.
        cluster: Name of the cluster.
    """
    found: set[str] = set()
    for owner in (
        {"Name": "tag-key", "Values": [f"kubernetes.io/cluster/{cluster}"]},
        {"Name": "tag:eks:eks-cluster-name", "Values": [cluster]},
    ):
        filters = [owner, {"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}, LIVE]
        for each in account.ask_all(INSTANCES, "Reservations", Filters=filters):
            found |= {instance["InstanceId"] for instance in each["Instances"]}
    return tuple(sorted(found))


def plan_teardown(account: Account, plan: ClusterPlan, found: Findings, asked: Asked) -> Teardown:
    """Return what goes and what stays.

    Args:
        account: The account.
        plan: The cluster.
        found: What there is of it.
        asked: What is to go that would stay.

    Raises:
        QuestionError: A name that was asked for stands for more than one thing.
        UnansweredError: Something could not be asked.
    """
    going = keeping.chosen(found.retained, asked, plan)
    planner = _Planner(account=account, plan=plan, found=found, going=going)
    steps = (
        Step(name=phase.name, title=phase.title, minutes=phase.minutes, waves=waves)
        for phase in order.PHASES
        if (waves := tuple(filter(None, planner.waves(phase))))
    )
    return Teardown(
        cluster=plan.name,
        region=plan.region,
        account=account.id,
        steps=tuple(steps),
        kept=tuple(planner.kept()),
        absent=keeping.absent(found.retained, asked, plan),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    account: Account
    plan: ClusterPlan
    found: Findings
    going: frozenset[str]

    def waves(self, phase: order.Phase) -> Iterator[tuple[Target, ...]]:
        """Yield the waves of a step; one that is empty has nothing to do."""
        if phase == order.NETWORK and self._network_stays():
            return
        if self.found.cluster is not None:
            yield from self._of_kubernetes(phase, self.found.cluster)
        yield from self._of_account(phase)
        for wave in phase.waves:
            yield from self._before(wave)
            former = self._former() if order.POOLS in wave else ()
            yield (*self._stacks(order.layers(self.plan, wave)), *former)

    def _of_kubernetes(self, phase: order.Phase, cluster: Cluster) -> Iterator[tuple[Target, ...]]:
        """Yield what goes, and then a look whether more has come meanwhile."""
        listings: Mapping[order.Phase, tuple[str, Callable[[], Sequence[Target]]]] = {
            order.JOBS: ("jobs", lambda: [*chain(*workloads.jobs(cluster, self.plan))]),
            order.NODE_POOLS: ("NodePools", lambda: workloads.node_pools(cluster, self.plan)[0]),
            order.LOAD_BALANCERS: ("load balancers", lambda: workloads.load_balancers(cluster)),
            order.VOLUMES: ("volumes", lambda: workloads.volumes(cluster)),
        }
        if phase not in listings:
            return
        what, listed = listings[phase]
        if phase == order.JOBS:
            yield tuple(submitters(cluster, self.plan))
            yield from workloads.jobs(cluster, self.plan)
        else:
            yield tuple(listed())
        yield (NothingNew(what=what, listed=listed),)

    def _of_account(self, phase: order.Phase) -> Iterator[tuple[Target, ...]]:
        if phase == order.CLUSTER and self.found.status:
            yield (ProtectionTarget(account=self.account, cluster=self.plan.name),)
        elif phase == order.REMAINS:
            yield self.found.remains
        elif phase == order.STORAGE:
            yield from keeping.going(self.account, self.found.retained, self.going)
        elif phase == order.NETWORK:
            yield from self._vpc_gate()

    def kept(self) -> Iterator[Left]:
        """Yield what stays."""
        yield from keeping.staying(self.found.retained, self.going, self.plan)
        yield from reservations(self.account, self.plan)
        if self.found.cluster is not None:
            yield from workloads.kept_volumes(self.found.cluster, self.account)
        for layer in order.PIPELINE:
            pipeline = self.found.stacks.get(names.stack(self.plan.name, layer))
            if pipeline is not None:
                yield keeping.pipeline(pipeline, self.plan.region)
        network = self.found.stacks.get(names.stack(self.plan.name, "network"))
        if network is not None and self._network_stays():
            yield from keeping.network(network, self.plan.region)

    def _before(self, wave: Sequence[str]) -> Iterator[tuple[Target, ...]]:
        """Yield what has to be done before the stacks of a wave can go."""
        if "hyperpod-groups" in wave and self.found.has_hyperpod:
            assert self.plan.hyperpod is not None
            yield (HyperPodGate(account=self.account, cluster=self.plan.hyperpod.name),)
        if "system-node-pools" in wave and self.found.cluster is not None:
            yield workloads.node_pools(self.found.cluster, self.plan)[1]

    def _stacks(self, layers: Sequence[str]) -> tuple[Target, ...]:
        found = (self.found.stacks.get(names.stack(self.plan.name, layer)) for layer in layers)
        return tuple(StackTarget(account=self.account, stack=each) for each in found if each)

    def _former(self) -> tuple[Target, ...]:
        """Return the stacks of pools that have left the file, or whose nodes now come otherwise."""
        moved = {each.name for each in self.plan.all_pools if each.provisioner not in NODE_GROUPS}
        wanted = stack_names(self.plan) - {names.stack(self.plan.name, each) for each in moved}
        return tuple(
            StackTarget(account=self.account, stack=stack)
            for name, stack in self.found.stacks.items()
            if name not in wanted
        )

    def _network_stays(self) -> bool:
        staying = (each for each in self.found.retained if each.id not in self.going)
        return any(each.type in IN_VPC for each in staying)

    def _vpc_gate(self) -> Iterator[tuple[Target, ...]]:
        vpc = _vpc(self.found.stacks, self.plan)
        if vpc:
            own = {each.id for stack in self.found.stacks.values() for each in stack.resources}
            yield (
                VpcGate(
                    account=self.account,
                    cluster=self.plan.name,
                    vpc=vpc,
                    own=frozenset(own | {each.id for each in self.found.remains}),
                ),
            )


def _vpc(stacks: Mapping[str, Stack], plan: ClusterPlan) -> str:
    network = stacks.get(names.stack(plan.name, "network"))
    found = (each.id for each in network.resources if each.type == _VPC) if network else ()
    return next(iter(found), "")


def _has_hyperpod(account: Account, name: str) -> bool:
    try:
        account.ask(HYPERPOD, ClusterName=name)
    except UnansweredError as error:
        if error.code == NO_HYPERPOD:
            return False
        raise
    return True


def _refuse(stacks: Iterable[Stack]) -> None:
    wrong: list[str] = []
    for stack in stacks:
        if stack.busy:
            wrong.append(f"stack {stack.name}: it is {stack.status}; wait until that ends")
        if stack.protected:
            wrong.append(
                f"stack {stack.name}: its termination protection is on; `aws cloudformation "
                f"update-termination-protection --no-enable-termination-protection --stack-name "
                f"{stack.name}`"
            )
    if wrong:
        raise QuestionError(wrong)
