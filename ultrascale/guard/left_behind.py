"""Stacks that left the file and stay deployed, and what of other stacks they need and lose."""

from collections.abc import Iterator

from ultrascale.documents import objects, sequence, text
from ultrascale.frozen import Frozen
from ultrascale.guard.access import BINDINGS, ENTRY, is_of_a_program
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.network_policies import KIND as NETWORK_POLICY
from ultrascale.guard.network_policies import lets_in
from ultrascale.guard.objects import KubernetesObject, Objects
from ultrascale.guard.protection import leaves_cluster
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import World, text_of
from ultrascale.plan import names

_ASSOCIATION = "AWS::EKS::PodIdentityAssociation"
_CHART = "Custom::AWSCDK-EKS-HelmChart"


class _Runs(Frozen, kw_only=False):
    """Pods and functions of a stack that act in the cluster."""

    namespaces: frozenset[str]  # Namespaces of its pods that are not everybody's
    accounts: frozenset[tuple[str, str]]  # Service accounts of its pods, by namespace and name
    groups: frozenset[str]  # Kubernetes groups of its functions


def left_in_need(applied: tuple[Objects, Objects], worlds: Worlds) -> Iterator[Change]:
    """Yield the stacks that are left behind and lose what they need of other stacks.

    Args:
        applied: The objects in the cluster, of both sides.
        worlds: Both sides.
    """
    old, new = applied
    gone = [each for each in old.by_id.values() if leaves_cluster(each, new, worlds)]
    for stack in worlds.old.templates:
        if stack in worlds.new.templates or not gone:
            continue
        runs = _runs(stack, worlds.old, old)
        lost = [
            f"{each.kind} {'/'.join(filter(None, (each.namespace, each.name)))}"
            for each in gone
            if _needs(runs, each)
        ]
        if lost:
            yield Change(
                stack=stack,
                logical_id="LeftBehind",
                type="CloudFormation stack",
                name=stack,
                action="kept",
            ).harmed(_harm(stack, lost))


def _harm(stack: str, lost: list[str]) -> Harm:
    return Harm(
        verdict="outage",
        lost=f"what {stack} needs, which is left behind and runs on: {', '.join(lost)}; without "
        "them its pods get no request, or its programs are refused",
        instead="keep in the file what makes it until nobody uses it, then destroy it first, by "
        f"that file: `cdk destroy --exclusively {stack} -c cluster=FILE`",
    )


def _runs(stack: str, world: World, side: Objects) -> _Runs:
    namespaces = {each.namespace for each in side.by_id.values() if each.holder[0] == stack}
    accounts: set[tuple[str, str]] = set()
    groups: set[str] = set()
    for logical_id, body in world.resources(stack).items():
        values = world.properties((stack, logical_id))
        if body["Type"] == _CHART:
            namespaces.add(text(values, "Namespace"))
        elif body["Type"] == _ASSOCIATION:
            namespaces.add(text(values, "Namespace"))
            accounts.add((text(values, "Namespace"), text(values, "ServiceAccount")))
        elif body["Type"] == ENTRY and is_of_a_program(values):
            groups.update(map(text_of, sequence(values, "KubernetesGroups")))
    own = frozenset(namespaces - {"", names.SYSTEM_NAMESPACE})
    return _Runs(own, frozenset(accounts), frozenset(groups))


def _needs(runs: _Runs, applied: KubernetesObject) -> bool:
    if applied.kind == NETWORK_POLICY:
        return applied.namespace in runs.namespaces and lets_in(applied)
    if applied.kind == "ServiceAccount":
        return (applied.namespace, applied.name) in runs.accounts
    if applied.kind in BINDINGS:
        return any(
            text(each, "name") in runs.groups
            if text(each, "kind") == "Group"
            else (text(each, "namespace"), text(each, "name")) in runs.accounts
            for each in objects(applied.body, "subjects")
        )
    return False
