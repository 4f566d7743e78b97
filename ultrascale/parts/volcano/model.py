"""Plan of Volcano: its programs, how its scheduler looks for nodes, and its queues."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import field

from ultrascale.frozen import Frozen
from ultrascale.parts.volcano import facts
from ultrascale.plan.model import (
    ControllerVersion,
    PlacementPlan,
    PlannedPart,
    ResourcesPlan,
)


class VolcanoScale(Frozen):
    """Resources and settings of Volcano's programs."""

    scheduler: ResourcesPlan  # Resources of the scheduler
    # Share of the nodes that the scheduler looks for a pod's node among, in percent; None leaves it
    # to Volcano, which takes no less than 5.
    nodes_scored_percent: int | None
    # Fewest nodes that it looks among in a group of the network, where it places gangs by topology.
    topology_candidates: int
    # Longest that the scheduler waits at its start until it has taken up every node, in seconds.
    sync_seconds: int
    log_level: int  # Verbosity of the scheduler's log
    controllers: ResourcesPlan  # Resources of the controllers
    client_qps: int  # Calls of the Kubernetes API that the controllers make in a second
    client_burst: int  # How many of them at once
    workers: int  # Jobs, and as many PodGroups, that the controllers work on at a time
    webhooks: ResourcesPlan  # Resources of the webhooks' server
    webhook_replicas: int  # Pods of that server


class NodeScoringPlan(Frozen):
    """Search of Volcano's scheduler for a pod's node."""

    # Share of the nodes that are scored for a pod, in percent; None leaves it to Volcano, which
    # scores half of a small group and 5 percent of a large fleet.
    percent: int | None
    # Fewest nodes that are scored; None: 100, as Volcano has it. Without ``percent`` it counts in
    # groups alone that are no larger.
    least: int | None
    left_out: tuple[str, ...]  # Scores that count for nothing, by the key of their weight


class QueuePlan(Frozen):
    """A Volcano queue."""

    name: str  # Its name
    weight: int  # Share of the cluster relative to the other queues, 1 to 65535
    reclaimable: bool = True  # Whether other queues may take back what it uses beyond its share
    # Most that its jobs may use, by resource name; empty means no cap.
    capability: Mapping[str, str] = field(default_factory=dict[str, str])


class Plan(PlannedPart):
    """The Volcano gang scheduler."""

    renderer: ClassVar[str] = "volcano"

    version: str  # Its release, ``v1.15.1``
    scheduler_image: str  # Image of vc-scheduler, pinned
    controllers_image: str  # Image of vc-controller-manager, pinned
    webhook_image: str  # Image of vc-webhook-manager, pinned; it carries openssl and kubectl
    # Queues of the cluster file, beside `default` and `root` which Volcano makes itself.
    queues: tuple[QueuePlan, ...]
    # Whether the scheduler runs its `enqueue` action. It keeps a gang's pods from being created
    # until existing nodes could hold them, so a cluster that scales from zero must not run it:
    # nothing would ever scale.
    enqueue: bool
    topology_aware: bool  # Whether HyperNodes are discovered from AWS's network-topology labels
    topology_layers: int  # Number of `topology.k8s.aws/network-node-layer-N` labels the nodes carry
    # Extended resources of the pools, which bin-packing weighs.
    accelerator_resources: tuple[str, ...]
    scoring: NodeScoringPlan  # How it looks for a pod's node
    scale: VolcanoScale  # What its programs get
    # Placement by topology; None where gangs are not placed by it.
    gangs: PlacementPlan | None = None

    @property
    def placement(self) -> PlacementPlan | None:
        """Time that the placement of gangs by topology takes."""
        return self.gangs

    @property
    def images(self) -> Mapping[str, int]:
        """Images of scheduler, controllers and webhooks."""
        return {
            self.scheduler_image: 2,
            self.controllers_image: 2,
            self.webhook_image: self.scale.webhook_replicas,
        }

    @property
    def pods(self) -> Mapping[str, int]:
        """Pods of all three."""
        return {"volcano": sum(self.images.values())}

    @property
    def versions(self) -> Sequence[ControllerVersion]:
        """Its release."""
        latest = facts.LATEST_KUBERNETES_VERSION
        return (ControllerVersion(name="Volcano", version=self.version, latest=latest),)
