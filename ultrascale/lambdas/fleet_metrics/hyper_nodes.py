"""HyperNodes that Volcano lacks: those that it could not make are made once it looks again.

Volcano's controllers look at all nodes when a node with a label of the network comes, changes or
goes, and when a HyperNode goes; and then alone. What the API server refused once stays missing
until then, and gangs spread over groups that look like none. So a HyperNode without nodes is made
and deleted again.

Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/discovery/label/label.go
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING

from ..kubernetes import KubernetesApi, KubernetesError
from .measures import Measures
from .nodes import Nodes
from .settings import Topology

if TYPE_CHECKING:
    from ..kubernetes_objects import Object

_API_VERSION = "topology.volcano.sh/v1alpha1"


def measure_hyper_nodes(
    found: "Iterable[Object]", nodes: Nodes, topology: Topology, measures: Measures
) -> int:
    """Return how many groups of the network have no HyperNode, or one that lacks nodes."""
    members: dict[tuple[str, str], int] = {}
    for each in found:
        labels = each["metadata"].get("labels", {})
        for label in topology.labels:
            if label in labels:
                members[label, labels[label]] = len(each["spec"].get("members", ()))
    missing = sum(
        group not in members or (group[0] == topology.labels[0] and members[group] < count)
        for group, count in nodes.groups.items()
    )
    measures.add("hyper_nodes_missing", missing, None)
    return missing


def look_again(api: KubernetesApi, topology: Topology) -> None:
    """Have Volcano's controllers look at all nodes again."""
    name = topology.touched
    try:
        api.create(topology.hyper_nodes, _without_nodes(name))
    except KubernetesError as error:
        # The last call left it behind.
        if error.status != HTTPStatus.CONFLICT:
            raise
    api.delete(f"{topology.hyper_nodes}/{name}")


def _without_nodes(name: str) -> object:
    member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
    return {
        "apiVersion": _API_VERSION,
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 1, "members": [member]},
    }
