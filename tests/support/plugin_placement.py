"""Nodes on which the pods of a device plugin may run."""

from collections.abc import Mapping
from typing import Any

# Nodes of EKS Auto Mode and of HyperPod bring device plugins along.
KEEPS_OFF = [
    {"key": "eks.amazonaws.com/compute-type", "operator": "NotIn", "values": ["auto"]},
    {"key": "sagemaker.amazonaws.com/compute-type", "operator": "NotIn", "values": ["hyperpod"]},
]


def node_terms(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a pod's one term of required node affinity asks of a node."""
    affinity = pod["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return term["matchExpressions"]
