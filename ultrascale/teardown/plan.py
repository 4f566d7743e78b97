"""The plan of a teardown: the cluster's state, targets in order, and things that stay."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale.account import Account
from ultrascale.cluster_api.server import Cluster
from ultrascale.core.table import all_parts
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.model import NetworkPlan
from ultrascale.plan.stacks import (
    LayerId,
    stack_names,
    stack_of,
    stacks_apart,
    stacks_of,
)
from ultrascale.teardown import clusters, kept, model
from ultrascale.teardown.clusters import (
    CLUSTER,
    ProtectionTarget,
)
from ultrascale.teardown.ec2 import nodes_of_pools
from ultrascale.teardown.inventory import ResourceTarget, as_left, look
from ultrascale.teardown.kept import Asked, keeps_vpc
from ultrascale.teardown.model import Found, Left, Scope, Step, Target, Teardown, Thing
from ultrascale.teardown.objects import NothingNew
from ultrascale.teardown.orphans import VpcGate, foreign_interfaces, in_use, orphans
from ultrascale.teardown.reservations import reservations
from ultrascale.teardown.retained import (
    DATABASE,
    DATABASE_INSTANCE,
    Retained,
    existing_storage,
    left_by_tags,
    left_file_systems,
    made_by_services,
    stack_leftovers,
    with_details,
    with_owners,
)
from ultrascale.teardown.stacks import (
    FUNCTION,
    PARTS,
    Stack,
    StackTarget,
    deleted_stacks,
    functions_among,
    read_stacks,
)
from ultrascale.teardown.storage import FILE_SYSTEM, backups, file_systems

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import NetworkInterfaceTypeDef

_VPC = "AWS::EC2::VPC"


class Findings(Frozen):
    """State of a cluster in its account and in its API server."""

    stacks: Mapping[str, Stack]  # Its stacks, by name
    retained: tuple[Retained, ...]  # Resources that its stacks keep, or have left behind
    cluster: Cluster | None  # Its API server; None where it no longer answers
    status: str  # EKS's word for the state of the cluster; empty where there is none
    gates: Mapping[LayerId, Target]  # What the stacks of a layer of a part wait for
    # Interfaces and security groups that Kubernetes left in its VPC.
    orphans: tuple[Thing, ...] = ()
    foreign: tuple["NetworkInterfaceTypeDef", ...] = ()  # Network interfaces of others in its VPC
    nodes: tuple[Found, ...] = ()  # Running nodes without an API server that could end them
    vpc: str = ""  # Id of the VPC that its stacks made; empty where there is none

    @property
    def own(self) -> frozenset[str]:
        """Ids of all resources that its stacks hold."""
        return frozenset(
            resource.id for stack in self.stacks.values() for resource in stack.resources
        )


def read_findings(
    scope: Scope,
    cluster: Cluster | None,
    status: str,
) -> Findings:
    """Return the state of a cluster.

    Args:
        scope: The cluster.
        cluster: Its API server; None where there is none to ask.
        status: EKS's word for the state of the cluster; empty where there is none.

    Raises:
        UnansweredError: AWS refused a question: a teardown is not planned on guesses.
        QuestionError: A stack is being changed, is protected, is another's, or would take a file
            system along.
    """
    account, plan = scope.account, scope.plan
    stacks = read_stacks(account, plan.name, stack_names(plan.name, plan.all_pools))
    _refuse_unready_stacks(stacks.values(), plan.name, plan.region)
    made = (
        resource
        for stack in stacks.values()
        for resource in stack.resources
        if resource.type == CLUSTER
    )
    if all(resource.id != plan.name for resource in made):
        # Without a stack of the cluster, an EKS cluster of its name is somebody else's, or gone.
        cluster, status = None, ""
    found = Findings(
        stacks=stacks,
        retained=_retained(scope, stacks),
        cluster=cluster,
        status=status,
        gates=_gates(scope, stacks),
        vpc=_vpc_id(stacks, plan.name),
    )
    # EKS ends the nodes of Auto Mode with its cluster.
    if cluster is None and not (plan.control_plane.auto_mode and status):
        found = replace(found, nodes=nodes_of_pools(account, plan.name))
    return _with_network_leftovers(account, plan.name, plan.network, found)


def _with_network_leftovers(
    account: Account, name: str, network: NetworkPlan, found: Findings
) -> Findings:
    """Return ``found`` with the interfaces and security groups that are left in the VPC."""
    existing = network.existing
    if not found.vpc and existing is not None:
        left = orphans(account, name, existing.vpc_id, found.own, vpc_is_ours=False)
        return replace(found, orphans=left)
    if not found.vpc:
        return found
    known = found.own | {resource.id for resource in found.retained}
    databases = (DATABASE, DATABASE_INSTANCE)
    return replace(
        found,
        foreign=foreign_interfaces(
            account,
            name,
            found.vpc,
            known,
            has_database=any(resource.type in databases for resource in found.retained),
        ),
        orphans=orphans(account, name, found.vpc, found.own),
    )


def _retained(scope: Scope, stacks: Mapping[str, Stack]) -> tuple[Retained, ...]:
    """Return the resources that a cluster's stacks keep, and leftovers of deleted stacks."""
    account, plan = scope.account, scope.plan
    systems, existing = file_systems(account), existing_storage(plan.storage)
    found: dict[str, Retained] = {}
    held: set[str] = set()
    functions: set[str] = set()
    for stack in stacks.values():
        held |= {resource.id for resource in stack.resources}
        functions |= {resource.id for resource in stack.resources if resource.type == FUNCTION}
        for resource in stack.retained:
            found[resource.id] = Retained(
                stack=stack.name,
                type=resource.type,
                logical_id=resource.logical_id,
                id=resource.id,
            )

    def add(resources: Iterable[Retained]) -> None:
        for resource in resources:
            if resource.id in held or resource.id in found:
                continue
            if look(account, resource.type, resource.id) != "gone":
                found[resource.id] = resource

    for name, left in deleted_stacks(account, plan.name):
        functions |= functions_among(left)
        add(stack_leftovers(name, left))
    add(left_file_systems(plan.name, plan.storage, systems))
    add(left_by_tags(account, plan.name))
    for resource in made_by_services(replace(scope, functions=frozenset(functions))):
        if resource.id not in held:
            found.setdefault(resource.id, resource)
    return tuple(
        with_details(plan, resource, systems)
        for resource in found.values()
        if resource.id not in existing
        and resource.type not in PARTS
        and (resource.type != FILE_SYSTEM or resource.id in systems)
    )


def _vpc_id(stacks: Mapping[str, Stack], name: str) -> str:
    network = stacks.get(stack_of(name, "network"))
    resources = network.resources if network else ()
    return next((resource.id for resource in resources if resource.type == _VPC), "")


def _gates(scope: Scope, stacks: Mapping[str, Stack]) -> Mapping[LayerId, Target]:
    gates: dict[LayerId, Target] = {}
    for part in all_parts():
        if part.has_teardown:
            gates |= part.module("teardown").gates(scope, stacks)
    return gates


def _refuse_unready_stacks(stacks: Iterable[Stack], name: str, region: str) -> None:
    """Refuse a teardown beside a deployment, or with a stack that must not be deleted.

    Raises:
        QuestionError: One line for each reason.
    """
    apart = stacks_apart(name)
    wrong: list[str] = []
    for stack in stacks:
        wrong += [
            f"stack {stack.name}: it no longer keeps {resource.thing}, and would take all its data "
            "along; let it keep that again (DeletionPolicy: Retain), or delete the stack by hand"
            for resource in stack.resources
            if resource.type == FILE_SYSTEM and not (resource.retained or stack.going)
        ]
        if stack.busy:
            todo = apart.get(stack.name, "wait until that ends")
            wrong.append(f"stack {stack.name}: it is {stack.status}; {todo}")
        if stack.protected and stack.name not in apart:
            wrong.append(
                f"stack {stack.name}: its termination protection is on; `aws cloudformation "
                f"update-termination-protection --no-enable-termination-protection --stack-name "
                f"{stack.name} --region {region}`"
            )
    if wrong:
        raise QuestionError(wrong)


def plan_teardown(scope: Scope, found: Findings, asked: Asked) -> Teardown:
    """Return the things that go and the things that stay.

    Args:
        scope: The cluster.
        found: Its state.
        asked: The user's choice of resources that would otherwise stay.

    Raises:
        QuestionError: A name that the user gave stands for more than one thing, or for a thing that
            belongs to another stack by now.
        UnansweredError: AWS did not answer.
    """
    account, plan = scope.account, scope.plan
    chosen_ids = kept.chosen_ids(found.retained, asked, plan.name)
    found = replace(found, retained=with_owners(account, found.retained, chosen_ids, found.own))
    going = chosen_ids - {resource.id for resource in found.retained if resource.owner}
    planner = _Planner(account=account, plan=plan, found=found, going=going)
    steps = (
        Step(
            name=phase.name,
            title=planner.title(phase),
            minutes=phase.minutes,
            waves=waves,
            stops=planner.stops(phase),
        )
        for phase in model.PHASES
        if (waves := tuple(filter(None, planner.waves(phase))))
    )
    return Teardown(
        cluster=plan.name,
        region=plan.region,
        account=account.id,
        steps=tuple(steps),
        kept=tuple(planner.kept()),
        absent=kept.unknown_names(found.retained, asked, plan.name),
    )


class _Planner(Frozen):
    """Planner of a teardown."""

    account: Account  # The account
    plan: ClusterPlan  # The cluster
    found: Findings  # Its state
    going: frozenset[str]  # Ids of the retained resources that go

    def waves(self, phase: model.Phase) -> Iterator[tuple[Target, ...]]:
        """Yield the waves of a step; an empty wave has nothing to delete."""
        if phase == model.NETWORK and self._network_stays():
            return
        if self.found.cluster is not None:
            yield from self._kubernetes_waves(phase, self.found.cluster)
        yield from self._account_waves(phase)
        for wave in phase.waves:
            yield from self._targets_before_stacks(wave)
            former = self._former_stacks() if "node-groups" in wave else ()
            yield (*self._stacks(wave), *former)

    def _kubernetes_waves(
        self, phase: model.Phase, cluster: Cluster
    ) -> Iterator[tuple[Target, ...]]:
        """Yield the objects that go, then a gate that stops if new objects came meanwhile."""
        plan = self.plan
        namespaces = [each.name for each in (*plan.namespaces, *plan.team_namespaces)]
        listings: Mapping[model.Phase, tuple[str, Callable[[], Sequence[Target]]]] = {
            model.JOBS: ("jobs", lambda: [*chain(*clusters.jobs(cluster, namespaces))]),
            model.NODE_POOLS: (
                "NodePools",
                lambda: clusters.node_pools(cluster, self.plan)[0],
            ),
            model.LOAD_BALANCERS: ("load balancers", lambda: clusters.load_balancers(cluster)),
            model.VOLUMES: ("volumes", lambda: clusters.volumes(cluster)),
        }
        if phase not in listings:
            return
        subject, listed = listings[phase]
        if phase == model.JOBS:
            yield tuple(clusters.submitters(cluster, self.plan.parts))
            yield from clusters.jobs(cluster, namespaces)
        else:
            yield tuple(listed())
        yield (NothingNew(subject=subject, listed=listed),)

    def _account_waves(self, phase: model.Phase) -> Iterator[tuple[Target, ...]]:
        if phase == model.CLUSTER and self.found.status:
            yield (ProtectionTarget(account=self.account, cluster=self.plan.name),)
        elif phase == model.REMAINS:
            yield tuple(
                ResourceTarget(account=self.account, thing=orphan) for orphan in self.found.orphans
            )
        elif phase == model.STORAGE:
            yield from kept.chosen_targets(self.account, self.found.retained, self.going)
        elif phase == model.NETWORK:
            yield from self._vpc_gate()

    def title(self, phase: model.Phase) -> str:
        """Return the purpose of a step."""
        is_others = self.plan.network.existing is not None and not self.found.vpc
        return model.ENDPOINTS if phase == model.NETWORK and is_others else phase.title

    def stops(self, phase: model.Phase) -> str:
        """Return the obstacle that will stop a step; empty if none is known."""
        if phase != model.NETWORK:
            return ""
        found, why = self.found, list[str]()
        if found.nodes:
            why.append(f"nodes run in it that nobody ends: {len(found.nodes)}")
        if found.foreign:
            why.append(in_use(found.foreign))
        return f"VPC {found.vpc}: {'; '.join(why)}" if why else ""

    def kept(self) -> Iterator[Left]:
        """Yield the things that stay."""
        region = self.plan.region
        yield from (as_left(node, region) for node in self.found.nodes)
        yield from kept.staying_resources(
            self.found.retained, self.going, self.plan.name, self.plan.region
        )
        yield from (as_left(resource, region, asked=True) for resource in self._paid_on())
        for part in all_parts():
            if part.stacks_apart:
                stays = part.module("teardown").kept_stacks
                yield from stays(self.account.id, self.plan, self.found.stacks)
        network = self.found.stacks.get(stack_of(self.plan.name, "network"))
        if network is not None and self._network_stays():
            yield from kept.kept_network(self.account, network, self.found.vpc)

    def _paid_on(self) -> Iterator[Found]:
        """Yield leftovers that go on to cost money: backups, reserved capacity, kept volumes."""
        yield from backups(self.account, self.plan.name, self.going)
        yield from reservations(Scope(account=self.account, plan=self.plan))
        if self.found.cluster is not None:
            yield from clusters.kept_volumes(self.found.cluster, self.account)

    def _targets_before_stacks(self, wave: Sequence[LayerId]) -> Iterator[tuple[Target, ...]]:
        yield from ((gate,) for layer, gate in self.found.gates.items() if layer in wave)
        if "system-node-pools" in wave and self.found.cluster is not None:
            yield clusters.node_pools(self.found.cluster, self.plan)[1]

    def _stacks(self, layers: Sequence[LayerId]) -> tuple[Target, ...]:
        wanted = (name for layer in layers for name in stacks_of(self.plan, layer))
        stacks = (self.found.stacks.get(name) for name in wanted)
        return tuple(StackTarget(account=self.account, stack=stack) for stack in stacks if stack)

    def _former_stacks(self) -> tuple[Target, ...]:
        """Return the stacks of pools that left the file or changed their provisioner."""
        moved = {pool.name for pool in self.plan.all_pools if not pool.is_node_group}
        wanted = stack_names(self.plan.name, self.plan.all_pools) - {
            names.stack(self.plan.name, name) for name in moved
        }
        return tuple(
            StackTarget(account=self.account, stack=stack)
            for name, stack in self.found.stacks.items()
            if name not in wanted
        )

    def _network_stays(self) -> bool:
        if not self.found.vpc:
            return False
        staying = (resource for resource in self.found.retained if resource.id not in self.going)
        return any(map(keeps_vpc, staying))

    def _vpc_gate(self) -> Iterator[tuple[Target, ...]]:
        if self.found.vpc:
            going = {*self.going, *(orphan.id for orphan in self.found.orphans)}
            yield (
                VpcGate(
                    account=self.account,
                    cluster=self.plan.name,
                    vpc=self.found.vpc,
                    own=self.found.own | going,
                ),
            )
