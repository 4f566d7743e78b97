"""Peers of network policies, and their enforcement by EKS Auto Mode."""

from collections.abc import Sequence

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.names import SYSTEM_NAMESPACE
from ultrascale_k8s._pods import metadata


class NetworkPolicyControllerChart(cdk8s.Chart):
    """Turns the network policy controller on or off where no VPC CNI add-on does.

    Unless it is on, the API server takes network policies and nobody enforces them.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-net-pol.html
    """

    def __init__(self, scope: Construct, id: str, *, enforced: bool) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        kube.KubeConfigMap(
            self,
            "ConfigMap",
            # EKS reads it under this name.
            metadata=metadata("amazon-vpc-cni", namespace=SYSTEM_NAMESPACE),
            data={"enable-network-policy-controller": "true" if enforced else "false"},
        )


def address_peers(ranges: Sequence[str]) -> list[kube.NetworkPolicyPeer]:
    """Return ``ranges`` as peers, which no list of pods follows."""
    return [kube.NetworkPolicyPeer(ip_block=kube.IpBlock(cidr=each)) for each in ranges]
