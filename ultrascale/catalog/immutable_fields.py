"""Fields of Kubernetes objects that nothing can change while the object stands.

The API server refuses the whole `kubectl apply`, and CloudFormation rolls the deployment back.

Sources:
    https://github.com/kubernetes/kubernetes/tree/v1.36.0/pkg/apis (validation of updates, by group)
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
    https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable
    https://github.com/aws/karpenter-provider-aws/tree/v1.15.1/pkg/apis/crds (rules on ``oldSelf``)
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/config/components/crd/bases
    https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Immutable:
    """A field that stays as it is.

    Attributes:
        path: Its path, with `/` between the parts.
        but: Fields directly below it that may change all the same.
        only_if: Path of the field that makes it immutable by `true`; empty: it always is.
        if_set: Path of the field that makes it immutable where the object has it.
        presence: Whether a value may change, and only its presence may not.
        grows: Whether a larger quantity is taken.
    """

    path: str
    but: tuple[str, ...] = ()
    only_if: str = ""
    if_set: str = ""
    presence: bool = False
    grows: bool = False


_SELECTOR = (Immutable("spec/selector"),)
_ROLE = (Immutable("roleRef"),)
# What holds a volume, of the sources that drivers of AWS have.
_VOLUME_SOURCES = ("awsElasticBlockStore", "csi", "hostPath", "local", "nfs")

IMMUTABLE_FIELDS: Mapping[str, tuple[Immutable, ...]] = MappingProxyType(
    {
        "ConfigMap": (
            Immutable("data", only_if="immutable"),
            Immutable("binaryData", only_if="immutable"),
        ),
        "PersistentVolume": (
            *(Immutable(f"spec/{source}") for source in _VOLUME_SOURCES),
            Immutable("spec/nodeAffinity"),
            Immutable("spec/volumeMode"),
        ),
        "PersistentVolumeClaim": (
            Immutable("spec", but=("resources", "volumeAttributesClassName")),
            Immutable("spec/resources/requests/storage", grows=True),
        ),
        "ResourceQuota": (Immutable("spec/scopes"), Immutable("spec/scopeSelector")),
        "Secret": (
            Immutable("type"),
            Immutable("data", only_if="immutable"),
            Immutable("stringData", only_if="immutable"),
        ),
        "Service": (Immutable("spec/clusterIP"), Immutable("spec/clusterIPs")),
        "DaemonSet.apps": _SELECTOR,
        "Deployment.apps": _SELECTOR,
        "ReplicaSet.apps": _SELECTOR,
        "StatefulSet.apps": (
            Immutable(
                "spec",
                but=(
                    "minReadySeconds",
                    "ordinals",
                    "persistentVolumeClaimRetentionPolicy",
                    "replicas",
                    "revisionHistoryLimit",
                    "template",
                    "updateStrategy",
                ),
            ),
        ),
        # The template of a Job that is suspended may change in part; ours never is.
        "Job.batch": (
            Immutable("spec/backoffLimitPerIndex"),
            Immutable("spec/completionMode"),
            Immutable("spec/completions"),
            Immutable("spec/managedBy"),
            Immutable("spec/podFailurePolicy"),
            Immutable("spec/selector"),
            Immutable("spec/successPolicy"),
            Immutable("spec/template"),
        ),
        "EndpointSlice.discovery.k8s.io": (Immutable("addressType"),),
        "CustomResourceDefinition.apiextensions.k8s.io": (
            Immutable("spec/group"),
            Immutable("spec/names/kind"),
            Immutable("spec/names/plural"),
            Immutable("spec/scope"),
        ),
        "ClusterRoleBinding.rbac.authorization.k8s.io": _ROLE,
        "RoleBinding.rbac.authorization.k8s.io": _ROLE,
        "PriorityClass.scheduling.k8s.io": (Immutable("value"), Immutable("preemptionPolicy")),
        "RuntimeClass.node.k8s.io": (Immutable("handler"),),
        "IngressClass.networking.k8s.io": (Immutable("spec/controller"),),
        "CSIDriver.storage.k8s.io": (
            Immutable("spec/attachRequired"),
            Immutable("spec/volumeLifecycleModes"),
        ),
        "StorageClass.storage.k8s.io": (
            Immutable("parameters"),
            Immutable("provisioner"),
            Immutable("reclaimPolicy"),
            Immutable("volumeBindingMode"),
        ),
        "VolumeAttributesClass.storage.k8s.io": (
            Immutable("driverName"),
            Immutable("parameters"),
        ),
        "ResourceClaim.resource.k8s.io": (Immutable("spec"),),
        "ResourceClaimTemplate.resource.k8s.io": (Immutable("spec"),),
        "NodePool.karpenter.sh": (
            Immutable("spec/replicas", presence=True),
            Immutable("spec/template/spec/nodeClassRef/group"),
            Immutable("spec/template/spec/nodeClassRef/kind"),
        ),
        "AdmissionCheck.kueue.x-k8s.io": (Immutable("spec/controllerName"),),
        "LocalQueue.kueue.x-k8s.io": (Immutable("spec/clusterQueue"),),
        # A flavor whose pods are placed by topology keeps all but its taints.
        "ResourceFlavor.kueue.x-k8s.io": (
            Immutable("spec/nodeLabels", if_set="spec/topologyName"),
            Immutable("spec/tolerations", if_set="spec/topologyName"),
            Immutable("spec/topologyName", if_set="spec/topologyName"),
        ),
        "Topology.kueue.x-k8s.io": (Immutable("spec/levels"),),
        "ComputeDomain.resource.nvidia.com": (Immutable("spec"),),
    }
)
"""By kind, and after a dot the API group where it has one."""


def lookup_immutable_fields(kind: str, api_version: str) -> tuple[Immutable, ...]:
    """Return the fields of a kind that nothing can change; none where no source names one.

    Args:
        kind: Kind of the object.
        api_version: Its ``apiVersion``: group and version, or the version alone.
    """
    group, slash, _ = api_version.partition("/")
    return IMMUTABLE_FIELDS.get(f"{kind}.{group}" if slash else kind, ())
