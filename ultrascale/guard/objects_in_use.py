"""Objects in the cluster that running nodes, pods and people use, and what they lose with them."""

import re
from collections.abc import Iterator

from ultrascale.documents import objects, text
from ultrascale.guard.access import BINDINGS, people_lose, people_of
from ultrascale.guard.judging import KEEP_NODES, KEEP_PODS, program_stops
from ultrascale.guard.model import Harm
from ultrascale.guard.objects import NODE_CLASSES, KubernetesObject, Objects
from ultrascale.guard.queues import KINDS, queue_in_use
from ultrascale.guard.replacement import Worlds
from ultrascale.guard.templates import World, text_of

_LINK_LOCAL = re.compile(r"169\.254\.\d{1,3}\.\d{1,3}")
# Where the kubelet meets device plugins and drivers of volumes.
_PLUGINS = ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins")
_PROGRAM_KINDS = ("DaemonSet", "Deployment", "StatefulSet")
_VOLUME_KINDS = ("PersistentVolume", "PersistentVolumeClaim")
TOLD_KINDS = frozenset({*_PROGRAM_KINDS, *_VOLUME_KINDS})
"""Kinds that are told of when they leave the charts and stay in the cluster."""

_JOBS_LOSE = Harm(
    verdict="outage",
    lost="what jobs that run name: their pods are refused once they restart",
    instead="let the jobs end first, and name it then",
)


def object_in_use(applied: KubernetesObject, worlds: Worlds, old: Objects) -> Harm | None:
    """Return what running nodes, pods and people lose by the deletion of an object.

    Args:
        applied: The object.
        worlds: Both sides.
        old: The objects in the cluster before.
    """
    if applied.kind == "DaemonSet":
        return _daemon_in_use(applied, worlds.old, old)
    if applied.kind in _PROGRAM_KINDS:
        return program_stops(f"the program {applied.name}")
    if applied.kind in _VOLUME_KINDS:
        return Harm(
            verdict="outage",
            lost="a volume that jobs mount: their next pods wait for it without end",
            instead=KEEP_PODS,
        )
    if applied.kind in KINDS:
        return queue_in_use(applied)
    if applied.kind in ("PriorityClass", "Queue"):
        return _JOBS_LOSE
    if applied.kind in BINDINGS and (people := sorted(people_of(applied, worlds.old))):
        return people_lose(people)
    return None


def _daemon_in_use(applied: KubernetesObject, world: World, old: Objects) -> Harm | None:
    addresses = set(_LINK_LOCAL.findall(text_of(applied.body)))
    asked = sorted(addresses & set(_name_servers(world, old)))
    if asked:
        return Harm(
            verdict="cuts running nodes off",
            lost=f"names: nodes that run give their pods {', '.join(asked)} to ask first, where "
            "nobody would answer",
            instead=KEEP_NODES,
        )
    volumes = objects(applied.pod, "volumes")
    if any(text(volume, "hostPath", "path").startswith(_PLUGINS) for volume in volumes):
        return Harm(
            verdict="cuts running nodes off",
            lost="devices or volumes of nodes that run: a pod that restarts there cannot start",
            instead=KEEP_NODES,
        )
    return None


def _name_servers(world: World, old: Objects) -> Iterator[str]:
    """Yield the link-local addresses that nodes were told to give their pods."""
    for node_class in old.of_kind(*NODE_CLASSES):
        yield from _LINK_LOCAL.findall(text_of(node_class.spec))
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] in ("AWS::EC2::LaunchTemplate", "AWS::SageMaker::Cluster"):
                yield from _LINK_LOCAL.findall(text_of(world.properties((stack, logical_id))))
