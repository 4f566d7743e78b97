"""AWS's Helm chart for SageMaker HyperPod on EKS: its location and its parts.

It is in no chart repository, so a Git commit is its version. AWS's own templates install the pinned
commit: the clusters that its console sets up run it.

The chart's objects were read at commits before and after the pinned one; these agree unless a
comment names a commit. Nobody has compared them with the pinned commit: the build does, see
`REMOTE_CHARTS`.

Sources:
    https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart
    https://github.com/aws/sagemaker-hyperpod-cluster-setup/blob/main/eks/cloudformation/helm-chart-template.yaml
    https://github.com/awslabs/awsome-distributed-ai/pull/1216
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog.versions import chart
from ultrascale.frozen import Frozen

REPOSITORY = "https://github.com/aws/sagemaker-hyperpod-cli.git"
COMMIT = chart("HyperPodHelmChart").version
FOLDER = "helm_chart/HyperPodHelmChart"
# Hash of the sums of all files in the folder, as the build prints it. A commit's id is a hash of
# its content already, though by Git's SHA-1, which detects collisions.
FOLDER_SHA256: str | None = None

RELEASE = "hyperpod-dependencies"
# Namespace that HyperPod demands.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-install-packages-using-helm-chart.html
NAMESPACE = "kube-system"

AGENT_NAMESPACE = "aws-hyperpod"
TRAINING_OPERATOR_NAMESPACE = "kubeflow"

# Source: https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart/HyperPodHelmChart,
# charts mpi-operator, cert-manager and inference-operator
NAMESPACES = frozenset(
    {
        AGENT_NAMESPACE,
        TRAINING_OPERATOR_NAMESPACE,
        "cert-manager",
        "hyperpod-inference-system",
        "keda",
        "mpi-operator",
    }
)
"""Namespaces that the chart makes, including those of parts that are off by default."""

# Regions where the chart knows the account of the health-monitoring agent's registry. Elsewhere it
# takes another Region's account, and the image cannot be pulled.
AGENT_REGIONS = frozenset(
    {
        "ap-northeast-1",
        "ap-south-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "eu-central-1",
        "eu-north-1",
        "eu-west-1",
        "eu-west-2",
        "sa-east-1",
        "us-east-1",
        "us-east-2",
        "us-west-1",
        "us-west-2",
    }
)

# The plugin's list of instance types is no value of the chart. It has types of EC2 as well, whose
# nodes have our own plugin. Source:
# https://github.com/aws/sagemaker-hyperpod-cli/blob/main/helm_chart/HyperPodHelmChart/charts/neuron-device-plugin/templates/k8s-neuron-device-plugin.yaml
# Source:
# https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart/HyperPodHelmChart/charts/health-monitoring-agent
AGENT_DAEMON_SET = "health-monitoring-agent"
NEURON_DAEMON_SET = "neuron-device-plugin-daemonset"


class RemoteChart(Frozen):
    """A chart that AWS's chart takes from a chart repository."""

    name: str  # Its name
    version: str  # Its version in AWS's chart
    sha256: str | None  # Hash of its archive; None where no source states it: the build prints it


REMOTE_CHARTS = (
    # Never rendered, but Helm demands every dependency.
    RemoteChart(name="cert-manager", version="v1.18.2", sha256=None),
    # Source: https://github.com/NVIDIA/k8s-device-plugin/blob/gh-pages/stable/index.yaml
    RemoteChart(
        name="nvidia-device-plugin",
        version="0.16.1",
        sha256="a77b4e81fd56a11e39536500a7a6538899b952c4b4370200280bce313dffda6a",
    ),
    RemoteChart(name="aws-efa-k8s-device-plugin", version="0.5.20", sha256=None),
)

# Name of AWS's chart in a registry, below a prefix of choice: its repository's name, then the name
# in its Chart.yaml.
ARTEFACT = "github.com/aws/sagemaker-hyperpod-cli/hyperpod-helm-chart"
# A version that Helm accepts and that names the commit. As a number, Helm would refuse leading
# zeros.
ARTEFACT_VERSION = f"0.0.0-g{COMMIT}"

# Images, read at 011ca927 of 2026-06-22, where the files had not changed since April 2025, and from
# the remote charts in the versions above. The health-monitoring agent's is in the Region's
# registry.
# Sources: the chart's trainingOperators and neuron-device-plugin;
#     https://github.com/NVIDIA/k8s-device-plugin/blob/v0.16.1/deployments/helm/nvidia-device-plugin/values.yaml
#     https://github.com/aws/eks-charts/blob/master/stable/aws-efa-k8s-device-plugin/values.yaml
TRAINING_OPERATOR_IMAGE = "kubeflow/training-operator:v1-855e096"
NEURON_IMAGE = "public.ecr.aws/neuron/neuron-device-plugin:2.19.16.0"
NVIDIA_IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.16.1"
# EKS's registry of each Region has the image under the same name.
EFA_REPOSITORY = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"
# Image of a Deployment that has no pods with our values.
IDLE_REPOSITORY = "nginx"

# Values that turn parts of the chart on, with their purpose. The namespace of the health-monitoring
# agent belongs to the part `deep-health-check`.
ALWAYS_ON: Mapping[str, str] = MappingProxyType(
    {
        "deep-health-check": "HyperPod's own checks of new nodes, and the agent's namespace",
        "health-monitoring-agent": "finds the faults for which HyperPod replaces nodes",
        "hyperpod-patching": "lets HyperPod drain nodes that it patches",
        "job-auto-restart": "lets HyperPod restart jobs of nodes that it replaced",
        "trainingOperators": "runs PyTorchJobs, which HyperPod restarts",
    }
)
# Every other part, with the reason why it is off. Several have no default: Helm turns these on.
ALWAYS_OFF: Mapping[str, str] = MappingProxyType(
    {
        "cert-manager": "nothing that is on asks for certificates",
        "cluster-role-and-bindings": "who may do what is for access entries to say",
        "gpu-operator": "for MIG; it would bring a device plugin of its own",
        "hyperpod-ray-endpoint-operator": "no Ray clusters are made",
        "inferenceOperators": "services are Deployments, see docs/decisions/0011",
        "kuberay": "no Ray clusters are made",
        "mlflow": "no MLflow is run in the cluster",
        "mpi-operator": "no MPIJobs are made",
        "namespaced-role-and-bindings": "who may do what is for access entries to say",
        "storage": "volumes are this project's own",
        "team-role-and-bindings": "who may do what is for access entries to say",
    }
)
