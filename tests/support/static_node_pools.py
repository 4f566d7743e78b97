"""Static NodePools, and what becomes of them."""

import copy
from collections.abc import Mapping
from typing import Any

import jsonpatch

from ultrascale_constructs.static_node_pool import patch

Document = dict[str, Any]


def make_node_pool(name: str = "gpu", **changes: Any) -> Document:
    """Return a static NodePool as a chart writes it, in which ``changes`` replace keys of spec."""
    spec: Document = {
        "replicas": 0,
        "limits": {"nodes": "32"},
        "disruption": {"consolidateAfter": "Never", "budgets": [{"nodes": "0"}]},
        "template": {
            "metadata": {"labels": {"ultrascale.dev/pool": name}},
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": name,
                },
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]}
                ],
                "expireAfter": "Never",
            },
        },
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "labels": {"ultrascale.dev/pool": name}},
        "spec": spec | changes,
    }


def patched(live: Mapping[str, Any], operations: Any) -> Document:
    """Return ``live`` as the API server leaves it after a JSON patch."""
    return jsonpatch.apply_patch(copy.deepcopy(dict(live)), list(operations))


def calendar_patch(node_pool: Document) -> list[Document]:
    return [dict(operation) for operation in patch(node_pool, sized_by_calendar=True)]
