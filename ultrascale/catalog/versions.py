"""Every version and image that a template or a manifest may name, with its source and date.

A test fails when a generated template or manifest names an image or a version that is not in this
module or in `ultrascale.catalog.addons`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from ultrascale.catalog.instance_types import AmiType
from ultrascale.errors import CatalogError


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A pinned container image.

    Attributes:
        repository: Registry and repository, without a tag.
        tag: The tag, never ``latest``.
        digest: ``sha256:…`` of the multi-architecture index, where a source states it.
        source: Where the pin was read.
        seen: When the source said so.
    """

    repository: str
    tag: str
    digest: str | None = None
    source: str
    seen: date

    @property
    def reference(self) -> str:
        """Reference for a container's ``image`` field."""
        pinned = f"{self.repository}:{self.tag}"
        return pinned if self.digest is None else f"{pinned}@{self.digest}"


VOLCANO_VERSION = "v1.15.1"
_VOLCANO_SOURCE = "https://github.com/volcano-sh/volcano/releases/tag/v1.15.1"
_VOLCANO_SEEN = date(2026, 8, 20)


def _volcano(component: str) -> Image:
    return Image(
        repository=f"docker.io/volcanosh/{component}",
        tag=VOLCANO_VERSION,
        source=_VOLCANO_SOURCE,
        seen=_VOLCANO_SEEN,
    )


def _cluster_autoscaler(tag: str) -> Image:
    release = f"cluster-autoscaler-{tag.removeprefix('v')}"
    return Image(
        # Tags of this registry never move, so a digest would say no more.
        # Source: https://github.com/kubernetes/k8s.io/tree/main/registry.k8s.io
        repository="registry.k8s.io/autoscaling/cluster-autoscaler",
        tag=tag,
        source=f"https://github.com/kubernetes/autoscaler/releases/tag/{release}",
        seen=date(2026, 7, 23),
    )


_NEURON_SOURCE = "https://github.com/aws-neuron/neuron-helm-charts/releases/tag/1.10.0"
_NEURON_SEEN = date(2026, 8, 19)

IMAGES: Mapping[str, Image] = MappingProxyType(
    {
        "volcano-controller-manager": _volcano("vc-controller-manager"),
        "volcano-scheduler": _volcano("vc-scheduler"),
        "volcano-webhook-manager": _volcano("vc-webhook-manager"),
        # Neuron Helm chart 1.10.0 (SDK 2.32.0) carries these two tags. No chart for SDK 2.33.0 was
        # seen. The plugin serves trn1 as well, whose training images end with an older SDK.
        "neuron-device-plugin": Image(
            repository="public.ecr.aws/neuron/neuron-device-plugin",
            tag="2.32.0.0",
            source=_NEURON_SOURCE,
            seen=_NEURON_SEEN,
        ),
        "neuron-scheduler": Image(
            repository="public.ecr.aws/neuron/neuron-scheduler",
            tag="2.32.0.0",
            source=_NEURON_SOURCE,
            seen=_NEURON_SEEN,
        ),
        "neuron-monitor": Image(
            repository="public.ecr.aws/neuron/neuron-monitor",
            tag="1.3.0",
            source=_NEURON_SOURCE,
            seen=_NEURON_SEEN,
        ),
        # The registry's account differs by Region: `ultrascale.catalog.registries` completes it.
        "aws-efa-k8s-device-plugin": Image(
            repository="eks/aws-efa-k8s-device-plugin",
            tag="v0.5.20",
            source="https://github.com/aws/eks-charts/tree/master/stable/aws-efa-k8s-device-plugin",
            seen=date(2026, 7, 21),
        ),
        # 0.19.0 to 0.19.2 hand every verbs device to every container with a GPU, EFA's among them:
        # https://github.com/NVIDIA/k8s-device-plugin/issues/1692
        "nvidia-device-plugin": Image(
            repository="nvcr.io/nvidia/k8s-device-plugin",
            tag="v0.20.0",
            digest="sha256:a61ba9fd8efb82f3a79f877f7580e02c1e8e7593f62473644bc9c79e315c3312",
            source="https://github.com/NVIDIA/k8s-device-plugin/releases/tag/v0.20.0",
            seen=date(2026, 8, 19),
        ),
        # The tag begins with the DCGM release that it is built for. The host engine that it asks,
        # the EKS node monitoring agent's, is 4.6.1 since v1.7.0:
        # https://github.com/aws/eks-node-monitoring-agent/pull/210
        "dcgm-exporter": Image(
            repository="nvcr.io/nvidia/k8s/dcgm-exporter",
            tag="4.6.0-4.8.3-distroless",
            digest="sha256:613ab03c11d442fd960ff515f547e9921537454a712d08160bc8f677f89f1c35",
            source="https://github.com/NVIDIA/gpu-operator/releases/tag/v26.7.0",
            seen=date(2026, 8, 20),
        ),
        # Programs of the fabric check: nccl-tests with Open MPI and EFA, and DCGM's diagnosis.
        "nccl-tests": Image(
            repository="public.ecr.aws/hpc-cloud/nccl-tests",
            tag="cuda13.0.2-efa1.48.0-ofiv1.19.0-ncclv2.30.4-1-testsv2.18.3",
            source="https://github.com/awslabs/awsome-distributed-ai/tree/main/micro-benchmarks/nccl-tests",
            seen=date(2026, 9, 7),
        ),
        "dcgm": Image(
            repository="nvcr.io/nvidia/cloud-native/dcgm",
            tag="4.6.0-1-ubi10",
            digest="sha256:92080d86d04c265f7fc0b8e1cd95dff94d3ab57de6a6474c3c483e4c2ada5dea",
            source="https://github.com/NVIDIA/gpu-operator/releases/tag/v26.7.0",
            seen=date(2026, 8, 20),
        ),
        # Bases of images/*/Dockerfile. AWS and Docker push patched images under the same tags.
        "pytorch-neuronx": Image(
            repository="public.ecr.aws/neuron/pytorch-training-neuronx",
            tag="2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04",
            source="https://github.com/aws-neuron/deep-learning-containers",
            seen=date(2026, 8, 17),
        ),
        "pytorch-cuda": Image(
            repository="public.ecr.aws/deep-learning-containers/pytorch",
            tag="2.13.0-cu133-amzn2023",
            source="https://aws.github.io/deep-learning-containers/pytorch/",
            seen=date(2026, 8, 21),
        ),
        "pytorch-cpu": Image(
            repository="public.ecr.aws/deep-learning-containers/pytorch",
            tag="2.13.0-cpu-amzn2023",
            source="https://aws.github.io/deep-learning-containers/pytorch/",
            seen=date(2026, 8, 21),
        ),
        "python": Image(
            repository="public.ecr.aws/docker/library/python",
            tag="3.12.13-slim-trixie",
            source="https://www.python.org/downloads/release/python-31213/",
            seen=date(2026, 3, 3),
        ),
        "cluster-autoscaler-1.35": _cluster_autoscaler("v1.35.2"),
        "cluster-autoscaler-1.36": _cluster_autoscaler("v1.36.1"),
        "aws-node-termination-handler": Image(
            repository="public.ecr.aws/aws-ec2/aws-node-termination-handler",
            tag="v1.25.6",
            source="https://github.com/aws/aws-node-termination-handler/releases/tag/v1.25.6",
            seen=date(2026, 7, 23),
        ),
        # Tags of this registry never move.
        "node-local-dns": Image(
            repository="registry.k8s.io/dns/k8s-dns-node-cache",
            tag="1.26.8",
            source="https://github.com/kubernetes/kubernetes/blob/master/cluster/addons/dns/nodelocaldns/nodelocaldns.yaml",
            seen=date(2026, 11, 21),
        ),
        # A rolling upgrade goes one minor at a time, and 3.5 is what ran before.
        # Source: https://etcd.io/docs/v3.6/upgrades/upgrade_3_6/
        "etcd": Image(
            repository="quay.io/coreos/etcd",
            tag="v3.6.14",
            source="https://github.com/etcd-io/etcd/releases/tag/v3.6.14",
            seen=date(2026, 8, 19),
        ),
        # 3.5 is the last line with the v2 API that TorchElastic's etcd backends speak.
        "etcd-v2": Image(
            repository="quay.io/coreos/etcd",
            tag="v3.5.33",
            source="https://github.com/etcd-io/etcd/releases/tag/v3.5.33",
            seen=date(2026, 7, 23),
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmiRelease:
    """A pinned release of the EKS-optimized Amazon Linux 2023 AMIs.

    One release version covers the standard, Neuron and NVIDIA images of a Kubernetes minor.

    Attributes:
        version: What a managed node group's `ReleaseVersion` takes, ``1.35.8-20260930``.
        source: Where AWS states the release.
        seen: When nodes were seen to run it.
    """

    version: str
    source: str
    seen: date

    @property
    def alias(self) -> str:
        """The same release as Karpenter names it, ``al2023@v20260930``."""
        return f"al2023@v{self.version.rpartition('-')[2]}"

    def image_parameter(self, ami_type: AmiType) -> str:
        """Return the public Systems Manager parameter that holds the id of this very image.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html; the names
        with a release in place of ``recommended`` are what Karpenter resolves a pinned alias by:
        https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/providers/amifamily/al2023.go
        """
        architecture, variant = _AMI_NAMES[ami_type]
        release, _, tag = self.version.rpartition("-")
        minor = release.rpartition(".")[0]
        folder = (
            f"/aws/service/eks/optimized-ami/{minor}/amazon-linux-2023/{architecture}/{variant}"
        )
        name = f"amazon-eks-node-al2023-{architecture}-{variant}-{minor}-v{tag}"
        return f"{folder}/{name}/image_id"


_AMI_NAMES: Mapping[AmiType, tuple[str, str]] = MappingProxyType(
    {
        "AL2023_x86_64_STANDARD": ("x86_64", "standard"),
        "AL2023_ARM_64_STANDARD": ("arm64", "standard"),
        "AL2023_x86_64_NVIDIA": ("x86_64", "nvidia"),
        "AL2023_ARM_64_NVIDIA": ("arm64", "nvidia"),
        "AL2023_x86_64_NEURON": ("x86_64", "neuron"),
    }
)


def _ami_release(version: str, seen: date) -> AmiRelease:
    tag = version.rpartition("-")[2]
    return AmiRelease(
        version=version,
        source=f"https://github.com/awslabs/amazon-eks-ami/releases/tag/v{tag}",
        seen=seen,
    )


# v20260505 must never return: its SOCI snapshotter is broken (awslabs/amazon-eks-ami#2712).
AMI_RELEASES: Mapping[str, AmiRelease] = MappingProxyType(
    {
        "1.35": _ami_release("1.35.8-20260930", date(2026, 10, 6)),
        "1.36": _ami_release("1.36.4-20260930", date(2026, 10, 2)),
    }
)


# Source: https://github.com/awslabs/amazon-eks-ami/blob/main/CHANGELOG.md
AMI_KERNELS: Mapping[str, str] = MappingProxyType({"1.35": "6.12", "1.36": "6.18"})
"""Line of Linux that the Amazon Linux 2023 AMIs of each Kubernetes minor run."""


def ami_release(kubernetes_version: str) -> AmiRelease:
    """Return the pinned Amazon Linux 2023 release for a Kubernetes minor such as ``1.35``.

    Raises:
        CatalogError: No release is pinned for that minor.
    """
    try:
        return AMI_RELEASES[kubernetes_version]
    except KeyError:
        message = (
            f"no pinned AMI release for Kubernetes, got {kubernetes_version!r}; "
            f"choose one of {', '.join(AMI_RELEASES)}"
        )
        raise CatalogError(message) from None


def kube_scheduler(kubernetes_version: str) -> Image:
    """Return kube-scheduler in the patch release that the pinned nodes run.

    Raises:
        CatalogError: No release is pinned for that minor.
    """
    release = ami_release(kubernetes_version)
    return Image(
        repository="registry.k8s.io/kube-scheduler",
        tag=f"v{release.version.partition('-')[0]}",
        source=release.source,
        seen=release.seen,
    )


def cluster_autoscaler(kubernetes_version: str) -> Image:
    """Return the Cluster Autoscaler of a Kubernetes minor: it simulates that minor's scheduler.

    Source: https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler#releases

    Raises:
        CatalogError: No release is pinned for that minor.
    """
    prefix = "cluster-autoscaler-"
    try:
        return IMAGES[f"{prefix}{kubernetes_version}"]
    except KeyError:
        pinned = [name.removeprefix(prefix) for name in IMAGES if name.startswith(prefix)]
        message = (
            f"no pinned Cluster Autoscaler for Kubernetes, got {kubernetes_version!r}; "
            f"choose one of {', '.join(pinned)}"
        )
        raise CatalogError(message) from None


def image(name: str) -> Image:
    """Return the pinned image called ``name``.

    Raises:
        CatalogError: No image of that name is pinned.
    """
    try:
        return IMAGES[name]
    except KeyError:
        message = f"no pinned image {name!r}; add it to ultrascale/catalog/versions.py"
        raise CatalogError(message) from None
