"""Decides what goes, in which order, and what stays: by what the account and the cluster hold."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ultrascale.account import Account
from ultrascale.cluster_api.server import Cluster
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.capacity import NODE_GROUPS
from ultrascale.plan.stacks import (
    LayerId,
    pipeline_stacks,
    stack_names,
    stack_of,
    stacks_of,
)
from ultrascale.teardown import keeping, kept_stacks, order, workloads
from ultrascale.teardown.backups import backups
from ultrascale.teardown.closing import NothingNew, submitters
from ultrascale.teardown.findings import Findings
from ultrascale.teardown.gates import (
    HyperPodGate,
    ProtectionTarget,
)
from ultrascale.teardown.keeping import Asked
from ultrascale.teardown.model import Left, Step, Target, Teardown
from ultrascale.teardown.owners import with_owners
from ultrascale.teardown.remains import VpcGate, in_use
from ultrascale.teardown.reserved import reservations
from ultrascale.teardown.retained import IN_VPC
from ultrascale.teardown.stacks import StackTarget


def plan_teardown(account: Account, plan: ClusterPlan, found: Findings, asked: Asked) -> Teardown:
    """Return what goes and what stays.

    Args:
        account: The account.
        plan: The cluster.
        found: What there is of it.
        asked: What is to go that would stay.

    Raises:
        QuestionError: A name that was asked for stands for more than one thing, or for what is
            another stack's by now.
        UnansweredError: Something could not be asked.
    """
    chosen = keeping.chosen(found.retained, asked, plan)
    own = frozenset(each.id for stack in found.stacks.values() for each in stack.resources)
    found = replace(found, retained=with_owners(account, found.retained, chosen, own))
    going = chosen - {each.id for each in found.retained if each.owner}
    planner = _Planner(account=account, plan=plan, found=found, going=going)
    steps = (
        Step(
            name=phase.name,
            title=phase.title,
            minutes=phase.minutes,
            waves=waves,
            stops=planner.stops(phase),
        )
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
            former = self._former() if "node-groups" in wave else ()
            yield (*self._stacks(wave), *former)

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

    def stops(self, phase: order.Phase) -> str:
        """Return what a step will stop at; empty where nothing is known that it would."""
        if phase != order.NETWORK:
            return ""
        found, why = self.found, list[str]()
        if found.nodes:
            why.append(f"nodes run in it that nobody ends: {len(found.nodes)}")
        if found.strangers:
            why.append(in_use(found.strangers))
        return f"VPC {found.vpc}: {'; '.join(why)}" if why else ""

    def kept(self) -> Iterator[Left]:
        """Yield what stays."""
        yield from self.found.nodes
        yield from keeping.staying(self.found.retained, self.going, self.plan)
        yield from backups(self.account, self.plan, self.going, asked=True)
        yield from reservations(self.account, self.plan)
        if self.found.cluster is not None:
            yield from workloads.kept_volumes(self.found.cluster, self.account)
        own, gate = pipeline_stacks(self.plan.name)
        for name in (own, gate):
            pipeline = self.found.stacks.get(name)
            if pipeline is not None:
                looks = name == gate
                yield kept_stacks.pipeline(pipeline, self.plan.region, looks=looks)
        home = self.found.pipeline_home
        if home and (home.region, home.account) != (self.plan.region, self.account.id):
            yield kept_stacks.pipeline_elsewhere(self.plan.name, home.region, home.account)
        network = self.found.stacks.get(stack_of(self.plan.name, "network"))
        if network is not None and self._network_stays():
            yield from kept_stacks.network(self.account, network, self.found.vpc)

    def _before(self, wave: Sequence[LayerId]) -> Iterator[tuple[Target, ...]]:
        """Yield what has to be done before the stacks of a wave can go."""
        if "hyperpod-groups" in wave and self.found.hyperpod:
            yield (HyperPodGate(account=self.account, cluster=self.found.hyperpod),)
        if "system-node-pools" in wave and self.found.cluster is not None:
            yield workloads.node_pools(self.found.cluster, self.plan)[1]

    def _stacks(self, layers: Sequence[LayerId]) -> tuple[Target, ...]:
        wanted = (name for layer in layers for name in stacks_of(self.plan, layer))
        stacks = (self.found.stacks.get(name) for name in wanted)
        return tuple(StackTarget(account=self.account, stack=stack) for stack in stacks if stack)

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
        if self.found.vpc:
            own = {each.id for stack in self.found.stacks.values() for each in stack.resources}
            yield (
                VpcGate(
                    account=self.account,
                    cluster=self.plan.name,
                    vpc=self.found.vpc,
                    own=frozenset(own | self.going | {each.id for each in self.found.remains}),
                ),
            )
