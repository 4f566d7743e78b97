"""The Amazon EKS add-ons we install: version per Kubernetes minor, IAM, and configuration keys.

EKS publishes add-on versions through `DescribeAddonVersions` alone, per Kubernetes minor and
Region, and moves its defaults every few weeks. The pins here are the defaults of autumn 2026 as
public configurations recorded them from that call: a pin's source is where its version was read.
An entry of the cluster file's `kubernetes.addons` takes the place of a pin.

EKS checks configuration values against a JSON schema of the add-on's own version, at deploy time:
one key too many fails the stack. `Addon.configuration` therefore lists every key we may write.

Source: https://docs.aws.amazon.com/eks/latest/userguide/workloads-add-ons-available-eks.html
"""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from ultrascale.catalog import training_operator, upgrades
from ultrascale.catalog._addon import (
    CAPACITY_ORCHESTRATOR,
    CLUSTER_136,
    READ,
    Addon,
    AddonVersion,
    Release,
    on_every_minor,
    parse_release,
    pin,
)
from ultrascale.errors import CatalogError

__all__ = [
    "ADDONS",
    "CERT_MANAGER",
    "CLOUDWATCH_OBSERVABILITY",
    "EBS_VOLUME_PROVISIONER",
    "GOVERNANCE_ADDON",
    "HYPERPOD_OBSERVABILITY",
    "TRAINING_OPERATOR",
    "Addon",
    "AddonVersion",
    "Release",
    "addon",
    "chosen_version",
    "parse_release",
    "version",
]

GOVERNANCE_ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
CLOUDWATCH_OBSERVABILITY = "amazon-cloudwatch-observability"
HYPERPOD_OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"
INFERENCE_OPERATOR = "amazon-sagemaker-hyperpod-inference"
TRAINING_OPERATOR = "amazon-sagemaker-hyperpod-training-operator"
CERT_MANAGER = "cert-manager"

# Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
EBS_VOLUME_PROVISIONER = "ebs.csi.aws.com"

# Every value is a string, numbers and booleans too: "true", "1". The schema refuses others.
# Source: https://docs.aws.amazon.com/cli/latest/reference/eks/describe-addon-configuration.html
_VPC_CNI = Addon(
    name="vpc-cni",
    service_account="aws-node",
    managed_policy="AmazonEKS_CNI_Policy",
    needs_schedulable_node=False,
    daemon_sets=("aws-node",),
    serves="addresses of new pods, and network policies",
    # The first release that passes over interfaces without addresses, as efa-only ones are.
    # Source: https://github.com/aws/amazon-vpc-cni-k8s/releases/tag/v1.18.5
    floor=(1, 18, 5),
    configuration=(
        "enableNetworkPolicy",
        # Source: https://github.com/aws/amazon-vpc-cni-k8s#disable_leaked_eni_cleanup-v1130
        "env.DISABLE_LEAKED_ENI_CLEANUP",
        "env.ENABLE_PREFIX_DELEGATION",
        "env.MINIMUM_IP_TARGET",
        "env.WARM_ENI_TARGET",
        "env.WARM_IP_TARGET",
        "env.WARM_PREFIX_TARGET",
    ),
    # Its network policy agent is 1.4.1, without which 1.23 does not work.
    # Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/CHANGELOG.md
    versions=on_every_minor(pin("v1.23.1-eksbuild.1", READ)),
)

_KUBE_PROXY = Addon(
    name="kube-proxy",
    needs_schedulable_node=False,
    is_kubernetes=True,
    daemon_sets=("kube-proxy",),
    serves="addresses of Services",
    # Source: https://github.com/bottlerocket-os/bottlerocket/issues/4548
    configuration=("mode",),
    versions=MappingProxyType(
        {
            "1.35": pin("v1.35.3-eksbuild.29", date(2026, 10, 2)),
            "1.36": pin("v1.36.0-eksbuild.25", date(2026, 10, 2), CLUSTER_136),
        }
    ),
)

# autoScaling's bounds are 2 to 1000. Tolerations given here take the place of the defaults, among
# them CriticalAddonsOnly.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/coredns-autoscaling.html
# Source: https://github.com/cloudbees/terraform-aws-cloudbees-ci-eks-addon (the printed schema)
_COREDNS = Addon(
    name="coredns",
    needs_schedulable_node=True,
    serves="names of Services and of everything outside",
    configuration=(
        "affinity",
        "autoScaling.enabled",
        "autoScaling.maxReplicas",
        "autoScaling.minReplicas",
        "corefile",
        "nodeSelector",
        "podDisruptionBudget",
        "replicaCount",
        "resources",
        "tolerations",
        "topologySpreadConstraints",
    ),
    versions=MappingProxyType(
        {
            "1.35": pin("v1.13.2-eksbuild.31", date(2026, 10, 2)),
            "1.36": pin("v1.14.3-eksbuild.23", date(2026, 9, 24)),
        }
    ),
)

_POD_IDENTITY_AGENT = Addon(
    name="eks-pod-identity-agent",
    needs_schedulable_node=False,
    daemon_sets=("eks-pod-identity-agent",),
    serves="credentials of AWS, which are renewed every few hours",
    versions=on_every_minor(pin("v1.3.10-eksbuild.3", date(2026, 10, 2))),
)

_CSI_DRIVER_KEYS = (
    "controller.affinity",
    "controller.nodeSelector",
    "controller.replicaCount",
    "controller.tolerations",
    "node.tolerateAllTaints",
)

# AmazonEBSCSIDriverPolicyV2 (April 2026) reaches only volumes tagged ebs.csi.aws.com/cluster=true,
# which the driver puts on every volume it creates. The older policy has the path service-role/.
# Source: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonEBSCSIDriverPolicyV2.html
# Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/tree/master/charts/aws-ebs-csi-driver
_EBS_CSI = Addon(
    name="aws-ebs-csi-driver",
    service_account="ebs-csi-controller-sa",
    managed_policy="AmazonEBSCSIDriverPolicyV2",
    makes_volumes=True,
    needs_schedulable_node=True,
    daemon_sets=("ebs-csi-node",),
    serves="mounted EBS volumes",
    # Source of the last: https://github.com/aws-ia/terraform-aws-eks-blueprints-addons/issues/390
    configuration=(*_CSI_DRIVER_KEYS, "controller.resources", "node.nodeSelector"),
    versions=on_every_minor(pin("v1.66.0-eksbuild.1", date(2026, 9, 20))),
)

# A static volume needs no AWS permission, yet the add-on reports a fault while the Pod Identity
# agent is missing. EKS admits this driver to a new minor late (aws/containers-roadmap#2625), so a
# version seen on one minor says nothing of a newer one.
# Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/charts/aws-fsx-csi-driver
_FSX_CSI = Addon(
    name="aws-fsx-csi-driver",
    service_account="fsx-csi-controller-sa",
    needs_schedulable_node=True,
    daemon_sets=("fsx-csi-node",),
    serves="mounted FSx file systems",
    configuration=_CSI_DRIVER_KEYS,
    versions=MappingProxyType(
        {
            "1.35": pin("v1.10.0-eksbuild.1", READ, CAPACITY_ORCHESTRATOR),
            "1.36": pin("v1.10.0-eksbuild.1", READ, CAPACITY_ORCHESTRATOR),
        }
    ),
)

# Its permissions are given with the buckets: an association of the service account, not one of the
# add-on's. Its second major release starts a pod beside each that mounts a bucket, in a namespace
# of its own.
# Source: https://github.com/awslabs/mountpoint-s3-csi-driver/tree/main/charts/aws-mountpoint-s3-csi-driver
_MOUNTPOINT_S3_CSI = Addon(
    name="aws-mountpoint-s3-csi-driver",
    needs_schedulable_node=True,
    daemon_sets=("s3-csi-node",),
    serves="mounted buckets",
    # The first that takes a place for its controller.
    # Source: https://github.com/aws/containers-roadmap/issues/2676
    floor=(2, 5, 0),
    configuration=(
        "controller.nodeSelector",
        "controller.tolerations",
        "node.tolerateAllTaints",
        "node.tolerations",
    ),
    versions=MappingProxyType(
        {
            "1.35": pin("v2.7.0-eksbuild.1", date(2026, 8, 11)),
            "1.36": pin("v2.7.0-eksbuild.1", READ),
        }
    ),
)

# Without configuration it tolerates every taint and runs a DCGM host engine on NVIDIA nodes. Early
# releases called the key nodeAgent monitoringAgent.
# Source: https://github.com/aws/eks-node-monitoring-agent/blob/main/charts/configuration.schema.json
_NODE_MONITORING_AGENT = Addon(
    name="eks-node-monitoring-agent",
    needs_schedulable_node=False,
    daemon_sets=(
        "eks-node-monitoring-agent",
        "dcgm-server",
    ),
    configuration=tuple(
        f"{agent}.{key}"
        for agent in ("dcgmAgent", "nodeAgent")
        for key in ("affinity", "resources", "tolerations")
    ),
    versions=MappingProxyType(
        {
            "1.35": pin("v1.7.2-eksbuild.1", READ),
            "1.36": pin("v1.7.2-eksbuild.1", READ),
        }
    ),
)

# A community add-on: EKS builds it, and rolls builds out Region by Region.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/community-addons.html
_METRICS_SERVER = Addon(
    name="metrics-server",
    needs_schedulable_node=True,
    configuration=("nodeSelector", "tolerations"),
    versions=on_every_minor(pin("v0.9.0-eksbuild.11", date(2026, 9, 20))),
)

# Kueue comes with it, and none of one's own may be there before. It has its own affinities, and the
# page names no configuration values.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html
_TASK_GOVERNANCE = Addon(
    name=GOVERNANCE_ADDON,
    namespace="kueue-system",
    needs_schedulable_node=True,
    serves="queues and quotas of teams, by which their jobs are admitted",
    versions=MappingProxyType(
        dict.fromkeys(
            ("1.35",),
            pin(
                "v1.6.0-eksbuild.1",
                READ,
                "https://docs.aws.amazon.com/sagemaker/latest/dg/"
                "sagemaker-hyperpod-eks-operate-console-ui-governance-upgrade.html",
            ),
        )
    ),
)

# CloudWatch agent, Fluent Bit and exporters. Its operator is the only Deployment that we keep.
# Sources:
#     https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/install-CloudWatch-Observability-EKS-addon.html
#     https://github.com/aws-observability/helm-charts/tree/main/charts/amazon-cloudwatch-observability
_CLOUDWATCH_OBSERVABILITY = Addon(
    name=CLOUDWATCH_OBSERVABILITY,
    namespace="amazon-cloudwatch",
    service_account="cloudwatch-agent",
    managed_policy="CloudWatchAgentServerPolicy",
    needs_schedulable_node=True,
    daemon_sets=(
        "cloudwatch-agent",
        "fluent-bit",
        "cloudwatch-dcgm-exporter",
        "cloudwatch-neuron-monitor",
    ),
    # The first with OpenTelemetry's pipeline, which has to be switched off.
    floor=(6, 0, 0),
    configuration=(
        "agents",
        "applicationSignals.enabled",
        "containerInsights.enabled",
        "containerLogs.enabled",
        # Source: https://github.com/aws-observability/helm-charts/blob/main/charts/amazon-cloudwatch-observability/values.yaml
        "containerLogs.fluentBit.affinity",
        "dcgmExporter.affinity",
        "dcgmExporter.enabled",
        "manager.affinity",
        "neuronMonitor.affinity",
        "neuronMonitor.enabled",
        "otelContainerInsights.enabled",
        "tolerations",
    ),
    versions=on_every_minor(pin("v6.6.0-eksbuild.1", READ)),
)

# No public source states a version of it, so the cluster file has to.
# Sources:
#     https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-observability-addon-setup.html
#     https://github.com/awslabs/awsome-distributed-ai/tree/main/1.architectures/7.sagemaker-hyperpod-eks/terraform-modules
_HYPERPOD_OBSERVABILITY = Addon(
    name=HYPERPOD_OBSERVABILITY,
    namespace="hyperpod-observability",
    service_account="hyperpod-observability-operator-otel-collector",
    needs_schedulable_node=True,
    configuration=("ampWorkspace", "logging.enabled", "metricsProvider"),
    versions=MappingProxyType({}),
)

# A community add-on, which the training operator needs for the certificates of its webhooks.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/community-addons.html
_CERT_MANAGER = Addon(
    name=CERT_MANAGER,
    namespace="cert-manager",
    needs_schedulable_node=True,
    serves="certificates of webhooks, without which the API server refuses jobs",
    versions=MappingProxyType({"1.35": pin("v1.19.3-eksbuild.2", READ)}),
)

# EKS refuses an association of the add-on's own for 1.2.1, whose metadata say that it needs no
# rights. Its controller chooses HyperPod's nodes, and AWS names no value for tolerations.
# Sources:
#     https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-operator-install.html
#     https://github.com/awslabs/awsome-distributed-ai/pull/1076
_TRAINING_OPERATOR = Addon(
    name=TRAINING_OPERATOR,
    namespace=training_operator.NAMESPACE,
    service_account=training_operator.SERVICE_ACCOUNT,
    managed_policy="AmazonSageMakerHyperPodTrainingOperatorAccess",
    own_association=False,
    needs_schedulable_node=True,
    serves="HyperPodPyTorchJobs, which run no further without it",
    # The first with elastic training.
    # Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-eks-elastic-training.html
    floor=(1, 2, 0),
    versions=MappingProxyType(
        {
            "1.35": pin(
                "v1.2.1-eksbuild.1",
                date(2026, 5, 1),
                "https://github.com/awslabs/awsome-distributed-ai/pull/1076",
            )
        }
    ),
)

ADDONS: Mapping[str, Addon] = MappingProxyType(
    {
        addon.name: addon
        for addon in (
            _VPC_CNI,
            _KUBE_PROXY,
            _COREDNS,
            _POD_IDENTITY_AGENT,
            _EBS_CSI,
            _FSX_CSI,
            _MOUNTPOINT_S3_CSI,
            _NODE_MONITORING_AGENT,
            _METRICS_SERVER,
            _TASK_GOVERNANCE,
            _CLOUDWATCH_OBSERVABILITY,
            _HYPERPOD_OBSERVABILITY,
            _CERT_MANAGER,
            _TRAINING_OPERATOR,
        )
    }
)


REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        INFERENCE_OPERATOR: (
            "HyperPod's inference operator, which cannot run services of this file",
            "write jobs of kind: service, and see "
            "docs/decisions/0011-hyperpod-inference-operator.md",
        )
    }
)
"""Add-ons of EKS that no cluster has: the reason, and the way out."""


def addon(name: str) -> Addon:
    """Return the add-on that EKS calls ``name``.

    Raises:
        CatalogError: We install no such add-on.
    """
    try:
        return ADDONS[name]
    except KeyError:
        message = f"unknown EKS add-on, got {name!r}; choose one of {', '.join(ADDONS)}"
        raise CatalogError(message) from None


def version(name: str, kubernetes_version: str) -> AddonVersion:
    """Return the pinned version of an add-on for a Kubernetes minor such as ``1.35``.

    Raises:
        CatalogError: We install no such add-on, or no source states a version of it for that minor.
    """
    pins = addon(name).versions
    if kubernetes_version not in pins:
        message = (
            f"no pinned version of the EKS add-on {name} for this Kubernetes version, "
            f"got {kubernetes_version!r} (pinned: {', '.join(pins) or 'none'}); "
            f"set kubernetes.addons.{name} to a version that "
            f"`aws eks describe-addon-versions --addon-name {name} "
            f"--kubernetes-version {kubernetes_version}` lists"
        )
        raise CatalogError(message)
    return pins[kubernetes_version]


def chosen_version(name: str, version: str, kubernetes_version: str) -> str:
    """Return a user's own version of an add-on after checking its form, our floor and the cluster.

    Raises:
        CatalogError: The add-on is unknown, ``version`` is malformed, below the floor, or of a
            Kubernetes release that the cluster's does not go with.
    """
    known, release = addon(name), parse_release(version)
    if release < (floor := known.floor or (0, 0, 0)):
        lowest = ".".join(map(str, floor))
        message = f"the EKS add-on {name} must be v{lowest} or later, got {version!r}"
        raise CatalogError(message)
    newest = upgrades.minor(kubernetes_version)
    oldest = newest - upgrades.KUBELET_MINORS_BEHIND
    if known.is_kubernetes and not (1, oldest) <= release[:2] <= (1, newest):
        message = (
            f"the EKS add-on {name} of Kubernetes {kubernetes_version} must be v1.{oldest} to "
            f"v1.{newest}, got {version!r}"
        )
        raise CatalogError(message)
    return version
