"""Add-ons for volumes, nodes' health, metrics and HyperPod: `ultrascale.catalog.addons` has all."""

from datetime import date
from types import MappingProxyType

from ultrascale.catalog._addon import CAPACITY_ORCHESTRATOR, READ, Addon, on_every_minor, pin

GOVERNANCE_ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
CLOUDWATCH_OBSERVABILITY = "amazon-cloudwatch-observability"
HYPERPOD_OBSERVABILITY = "amazon-sagemaker-hyperpod-observability"

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
    needs_schedulable_node=True,
    configuration=(*_CSI_DRIVER_KEYS, "controller.resources"),
    versions=on_every_minor(pin("v1.66.0-eksbuild.1", date(2026, 9, 20))),
)

# A static volume needs no AWS permission, yet the add-on reports a fault while the Pod Identity
# agent is missing. EKS admits this driver to a new minor late (aws/containers-roadmap#2625), so a
# version seen on one minor says nothing of another.
# Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/charts/aws-fsx-csi-driver
_FSX_CSI = Addon(
    name="aws-fsx-csi-driver",
    service_account="fsx-csi-controller-sa",
    needs_schedulable_node=True,
    configuration=_CSI_DRIVER_KEYS,
    versions=MappingProxyType(
        {
            "1.35": pin("v1.9.0-eksbuild.1", READ),
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
            "1.34": pin("v2.5.0-eksbuild.1", READ),
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
    configuration=tuple(
        f"{agent}.{key}"
        for agent in ("dcgmAgent", "nodeAgent")
        for key in ("affinity", "resources", "tolerations")
    ),
    versions=MappingProxyType(
        {
            "1.35": pin("v1.7.0-eksbuild.1", READ),
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
    versions=MappingProxyType(
        dict.fromkeys(
            ("1.34", "1.35"),
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
    # The first with OpenTelemetry's pipeline, which has to be switched off.
    floor=(6, 0, 0),
    configuration=(
        "agents",
        "applicationSignals.enabled",
        "containerInsights.enabled",
        "containerLogs.enabled",
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

SERVICES = (
    _EBS_CSI,
    _FSX_CSI,
    _MOUNTPOINT_S3_CSI,
    _NODE_MONITORING_AGENT,
    _METRICS_SERVER,
    _TASK_GOVERNANCE,
    _CLOUDWATCH_OBSERVABILITY,
    _HYPERPOD_OBSERVABILITY,
)
