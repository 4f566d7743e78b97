"""Labels and taints of the nodes for training."""

from collections.abc import Mapping

from aws_cdk import aws_eks_v2 as eks

TAINTS = [eks.CfnNodegroup.TaintProperty(key="nvidia.com/gpu", value="true", effect="NO_SCHEDULE")]


def node_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels by which device plugins choose nodes, and those of this app."""
    return {**labels, "team.example.com/purpose": "training"}
