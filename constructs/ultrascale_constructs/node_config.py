"""User data of nodes: the configuration of nodeadm."""

from collections.abc import Mapping

from ultrascale import yaml_writer
from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan
from ultrascale_constructs.cluster_context import ClusterContext

_BOUNDARY = "NODECONFIG"


def user_data(plan: PoolPlan, *, cluster: ClusterContext | None = None) -> str:
    """Return the MIME document that nodeadm reads.

    Args:
        plan: The pool.
        cluster: The cluster to join; None for managed nodes: EKS adds a document with the cluster,
            and with the labels and taints of the node group.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/
    """
    document = yaml_writer.dump(node_config(plan, cluster=cluster))
    return (
        "MIME-Version: 1.0\n"
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"\n'
        "\n"
        f"--{_BOUNDARY}\n"
        "Content-Type: application/node.eks.aws\n"
        "\n"
        f"---\n{document}"
        f"--{_BOUNDARY}--\n"
    )


def node_config(plan: PoolPlan, *, cluster: ClusterContext | None = None) -> Mapping[str, object]:
    """Return the nodeadm NodeConfig of a pool; it is complete only with ``cluster``.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
    """
    spec: dict[str, object] = {}
    kubelet: dict[str, object] = {"config": {"maxPods": plan.max_pods, **_name_servers(plan)}}
    if cluster is not None:
        # nodeadm reads none of these values from EKS: after EKS has rotated the authority, new
        # nodes get it by a deployment.
        # https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/api/validation.go
        spec["cluster"] = {
            "name": cluster.name,
            "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.certificate_authority,
            "cidr": cluster.service_cidr,
        }
        kubelet["flags"] = _registration(plan)
    spec["kubelet"] = kubelet
    if plan.raid0:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if plan.parallel_image_pull:
        spec["featureGates"] = {"FastImagePull": True}
    return {"apiVersion": names.NODE_CONFIG_API_VERSION, "kind": "NodeConfig", "spec": spec}


def _name_servers(plan: PoolPlan) -> Mapping[str, object]:
    return {"clusterDNS": list(plan.name_servers)} if plan.name_servers else {}


def _registration(plan: PoolPlan) -> list[str]:
    """Return the kubelet's flags by which a node registers with its labels and taints.

    Source: https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
    """
    labels = ",".join(f"{key}={value}" for key, value in plan.labels.items())
    flags = [f"--node-labels={labels}"]
    if plan.taints:
        taints = ",".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in plan.taints)
        flags.append(f"--register-with-taints={taints}")
    return flags
