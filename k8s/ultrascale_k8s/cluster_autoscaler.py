"""The Cluster Autoscaler."""

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.plan.model import ClusterAutoscalerPlan
from ultrascale.plan.names import CLUSTER_AUTOSCALER_ACCOUNT, SYSTEM_NAMESPACE
from ultrascale_k8s._pods import (
    REVISIONS,
    SYSTEM_CLUSTER_CRITICAL,
    labels,
    metadata,
    resources,
    restricted_container,
    restricted_pod,
    selector,
    system_affinity,
    tolerations,
)
from ultrascale_k8s._rbac import bind_cluster_role, bind_role, rule

_NAME = CLUSTER_AUTOSCALER_ACCOUNT
_PORT = 8085
_STATUS = "cluster-autoscaler-status"
# `nobody`, as upstream's manifest has it.
_USER = 65534
_READ = ("get", "list", "watch")
# What upstream's manifest of 1.36 allows, without the API groups and the lock of long ago. Since
# 1.35 it reads the objects of dynamic resource allocation whether any exist or not.
# Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/examples/cluster-autoscaler-autodiscover.yaml
# Source: https://github.com/kubernetes/autoscaler/issues/8678
# Source: https://github.com/kubernetes/autoscaler/pull/10278
_RULES = (
    rule("events", verbs=("create", "patch")),
    rule("pods/eviction", verbs=("create",)),
    rule("pods/status", verbs=("update",)),
    rule("nodes", verbs=(*_READ, "update")),
    rule(
        "namespaces",
        "pods",
        "services",
        "replicationcontrollers",
        "persistentvolumeclaims",
        "persistentvolumes",
        verbs=_READ,
    ),
    rule("statefulsets", "replicasets", "daemonsets", verbs=_READ, group="apps"),
    rule("jobs", verbs=(*_READ, "patch"), group="batch"),
    rule("poddisruptionbudgets", verbs=_READ, group="policy"),
    rule(
        "storageclasses",
        "csinodes",
        "csidrivers",
        "csistoragecapacities",
        "volumeattachments",
        verbs=_READ,
        group="storage.k8s.io",
    ),
    rule("deviceclasses", "resourceclaims", "resourceslices", verbs=_READ, group="resource.k8s.io"),
)
_OWN_RULES = (
    rule("configmaps", verbs=("create", "list", "watch")),
    rule("configmaps", verbs=("get", "update", "delete"), names=(_STATUS,)),
    rule("leases", verbs=("create",), group="coordination.k8s.io"),
    rule("leases", verbs=("get", "update"), group="coordination.k8s.io", names=(_NAME,)),
)


class ClusterAutoscalerChart(cdk8s.Chart):
    """Defines the controller that sizes node groups by the pods that wait for them.

    It sees pods that their scheduler calls unschedulable. Volcano says so of the pods of a waiting
    gang that fit nowhere, and `Schedulable` of those that would fit: the autoscaler then takes
    their nodes for free, and a gang that would fit in part may wait until those nodes are gone.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md
    Source: https://github.com/volcano-sh/volcano/issues/3976
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterAutoscalerPlan) -> None:
        super().__init__(scope, id, disable_resource_name_hashes=True)
        _account(self)
        kube.KubeDeployment(
            self,
            "Deployment",
            metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
            spec=kube.DeploymentSpec(
                revision_history_limit=REVISIONS,
                # Another one would only wait for the lease: what it does can wait that long, too.
                replicas=1,
                selector=selector(_NAME),
                template=kube.PodTemplateSpec(metadata=_pod_metadata(), spec=_pod(plan)),
            ),
        )


def autoscaler_arguments(plan: ClusterAutoscalerPlan) -> list[str]:
    """Return the arguments: what differs from the defaults, and what no job must lose.

    Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca
    """
    tags = ",".join(f"{key}={value}" for key, value in plan.discovery_tags.items())
    # Never the static list of instance types, which lacks those that are newer than the release:
    # the live one comes from EC2, which has a VPC endpoint.
    # Source: https://github.com/kubernetes/autoscaler/pull/4468
    return [
        "--cloud-provider=aws",
        f"--node-group-auto-discovery=asg:tag={tags}",
        f"--namespace={SYSTEM_NAMESPACE}",
        "--expander=least-waste",
        # An instance that still boots would be terminated, and its capacity gone to somebody else.
        "--max-node-provision-time=30m",
        # Groups of one zone are not alike: data and reservations are there or are not.
        "--balance-similar-node-groups=false",
        # A pool that grows must not keep the idle nodes of every other pool.
        "--scale-down-delay-type-local=true",
        # The device plugins of an empty node request CPU.
        "--ignore-daemonsets-utilization=true",
        # A Volcano job's pods belong to a controller that it does not know.
        "--skip-nodes-with-custom-controller-pods=true",
        "--skip-nodes-with-local-storage=true",
        "--skip-nodes-with-system-pods=true",
        # Pods of a negative priority are pods as well: it would kill them and launch no node.
        "--expendable-pods-priority-cutoff=-2147483648",
        # The groups' own sizes bound the fleet; the defaults end below 1,700 nodes of P5.
        "--cores-total=0:2147483647",
        "--memory-total=0:2147483647",
    ]


def _account(chart: cdk8s.Chart) -> None:
    kube.KubeServiceAccount(chart, "Account", metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE))
    kube.KubeClusterRole(chart, "ClusterRole", metadata=metadata(_NAME), rules=list(_RULES))
    bind_cluster_role(chart, "ClusterBinding", name=_NAME, role=_NAME, account=_NAME)
    kube.KubeRole(
        chart,
        "Role",
        metadata=metadata(_NAME, namespace=SYSTEM_NAMESPACE),
        rules=list(_OWN_RULES),
    )
    bind_role(chart, "Binding", name=_NAME, role=_NAME, account=_NAME)


def _pod_metadata() -> kube.ObjectMeta:
    return kube.ObjectMeta(
        labels=labels(_NAME),
        annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    )


def _pod(plan: ClusterAutoscalerPlan) -> kube.PodSpec:
    alive = kube.HttpGetAction(path="/health-check", port=kube.IntOrString.from_number(_PORT))
    container = kube.Container(
        name=_NAME,
        image=plan.image,
        command=["./cluster-autoscaler"],
        args=autoscaler_arguments(plan),
        # Instance metadata, where it would look otherwise, is out of a pod's reach.
        env=[kube.EnvVar(name="AWS_REGION", value=plan.region)],
        ports=[kube.ContainerPort(name="http", container_port=_PORT)],
        liveness_probe=kube.Probe(http_get=alive, period_seconds=10, failure_threshold=3),
        security_context=restricted_container(),
        resources=resources(cpu="100m", memory=plan.memory, memory_limit=plan.memory),
    )
    return kube.PodSpec(
        service_account_name=_NAME,
        automount_service_account_token=True,
        priority_class_name=SYSTEM_CLUSTER_CRITICAL,
        affinity=system_affinity(),
        tolerations=tolerations(),
        security_context=restricted_pod(_USER),
        containers=[container],
    )
