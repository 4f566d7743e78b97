"""What is sent to Kubernetes for one job."""

from dataclasses import dataclass
from typing import Literal

from ultrascale.documents import JsonObject

Manifest = JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class JobManifests:
    """The objects of one job, and what must be there before they are sent.

    Attributes:
        name: Name of the job, and value of the label `names.JOB_LABEL` on each of its objects and
            pods.
        namespace: Where they go.
        kind: What runs: until it is done (`training`, `batch`), or until it is taken away.
        objects: The objects, in the order in which they are sent.
        pods: Pods that it consists of.
        container: Name of the container that runs the program, in each of them.
        claims: PersistentVolumeClaims that it mounts.
        queue: Volcano queue that it waits in; None without Volcano.
        local_queue: Queue of task governance that it waits in; None where it is not governed.
        priority_class: PriorityClass of its pods; None for the cluster's default.
        service_account: Service account of its pods; None for the namespace's own.
        notes: What the user should know of it, each a sentence.
    """

    name: str
    namespace: str
    kind: Literal["training", "batch", "service"]
    objects: tuple[Manifest, ...]
    pods: int
    container: str
    claims: tuple[str, ...]
    queue: str | None
    local_queue: str | None
    priority_class: str | None
    service_account: str | None
    notes: tuple[str, ...]
