"""Every version and image that templates and manifests may name, with source and date.

The tables are `images.csv`, `charts.csv` and `ami_releases.csv`. A test fails when a generated
template or manifest names an image or a version that is neither in them nor in
`ultrascale.catalog.addons`.
"""

from collections.abc import Mapping
from datetime import date
from functools import cache
from types import MappingProxyType

from ultrascale.catalog.instance_types import AmiType
from ultrascale.catalog.tables import Row, read_rows
from ultrascale.errors import CatalogError


class Image(Row, frozen=True, kw_only=True):
    """A pinned container image."""

    name: str
    """Name in the catalog."""
    repository: str
    """Registry and repository, without a tag."""
    tag: str
    """The tag, never ``latest``."""
    digest: str | None = None
    """``sha256:…`` of the multi-architecture index, where a source states it."""
    source: str
    """Page that states the pin."""
    seen: date
    """Day of the source."""

    @property
    def reference(self) -> str:
        """Reference for a container's ``image`` field."""
        pinned = f"{self.repository}:{self.tag}"
        return pinned if self.digest is None else f"{pinned}@{self.digest}"


@cache
def images() -> Mapping[str, Image]:
    """Return each pinned image by its name in the catalog."""
    return {row.name: row for row in read_rows("images.csv", Image)}


class Chart(Row, frozen=True, kw_only=True):
    """A pinned Helm chart; a part names its publisher's place and the images of its pods."""

    name: str
    """Name in the catalog: the chart's controller."""
    version: str
    """Its version as its publisher writes it; a commit where it is in no repository."""
    source: str
    """Page that states the pin."""
    seen: date
    """Day of the source, or the day on which an undated source was read."""


@cache
def charts() -> Mapping[str, Chart]:
    """Return each pinned chart by its name in the catalog."""
    return {row.name: row for row in read_rows("charts.csv", Chart)}


def chart(name: str) -> Chart:
    """Return the pinned chart called ``name``."""
    return charts()[name]


class AmiRelease(Row, frozen=True, kw_only=True):
    """A pinned release of the EKS-optimized Amazon Linux 2023 AMIs.

    One release version covers the standard, Neuron and NVIDIA images of a Kubernetes minor.
    """

    minor: str
    """The Kubernetes minor, such as ``1.35``."""
    version: str
    """Value of a managed node group's `ReleaseVersion`, such as ``1.35.8-20260930``."""
    kernel: str
    """Kernel line of the release.

    Source: https://github.com/awslabs/amazon-eks-ami/blob/main/CHANGELOG.md
    """
    source: str
    """Page of AWS that states the release."""
    seen: date
    """Day on which nodes were seen to run it."""

    @property
    def alias(self) -> str:
        """Karpenter's name of the release, such as ``al2023@v20260930``."""
        return f"al2023@v{self.version.rpartition('-')[2]}"

    def image_parameter(self, ami_type: AmiType) -> str:
        """Return the public Systems Manager parameter with the id of this release's image.

        Source: https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html; Karpenter
        resolves a pinned alias by the parameter name with a release in place of ``recommended``:
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


@cache
def ami_releases() -> Mapping[str, AmiRelease]:
    """Return the pinned Amazon Linux 2023 releases by Kubernetes minor."""
    return {row.minor: row for row in read_rows("ami_releases.csv", AmiRelease)}


def ami_release(kubernetes_version: str) -> AmiRelease:
    """Return the pinned Amazon Linux 2023 release for a Kubernetes minor such as ``1.35``.

    Raises:
        CatalogError: No release is pinned for that minor.
    """
    try:
        return ami_releases()[kubernetes_version]
    except KeyError:
        message = (
            f"no pinned AMI release for Kubernetes, got {kubernetes_version!r}; "
            f"choose one of {', '.join(ami_releases())}"
        )
        raise CatalogError(message) from None


def kube_scheduler(kubernetes_version: str) -> Image:
    """Return the image of kube-scheduler in the Kubernetes patch release of the pinned nodes.

    Raises:
        CatalogError: No release is pinned for that minor.
    """
    release = ami_release(kubernetes_version)
    return Image(
        name="kube-scheduler",
        repository="registry.k8s.io/kube-scheduler",
        tag=f"v{release.version.partition('-')[0]}",
        source=release.source,
        seen=release.seen,
    )


def cluster_autoscaler(kubernetes_version: str) -> Image:
    """Return the Cluster Autoscaler's image for a minor: it simulates the scheduler of that minor.

    Source: https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler#releases

    Raises:
        CatalogError: No release is pinned for that minor.
    """
    prefix = "cluster-autoscaler-"
    try:
        return images()[f"{prefix}{kubernetes_version}"]
    except KeyError:
        pinned = [name.removeprefix(prefix) for name in images() if name.startswith(prefix)]
        message = (
            f"no pinned Cluster Autoscaler for Kubernetes, got {kubernetes_version!r}; "
            f"choose one of {', '.join(pinned)}"
        )
        raise CatalogError(message) from None


def image(name: str) -> Image:
    """Return the pinned image called ``name``.

    Raises:
        CatalogError: The catalog has no image of that name.
    """
    try:
        return images()[name]
    except KeyError:
        message = f"no pinned image {name!r}; add it to ultrascale/catalog/images.csv"
        raise CatalogError(message) from None
