"""Hosts that files name, and that nothing in the VPC connects to: each with the reason."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ultrascale.hosts.reader import HostUse
from ultrascale.plan.model import ClusterPlan

# API groups, and domains before the slash of labels, annotations and extended resources.
_API_GROUPS = frozenset(
    (
        *("admissionregistration.k8s.io", "apiextensions.k8s.io", "app.kubernetes.io"),
        *("argocd.argoproj.io", "authentication.k8s.io", "authorization.k8s.io"),
        *("autoscaling.x-k8s.io", "aws.amazon.com", "batch.kubernetes.io"),
        *("batch.volcano.sh", "bus.volcano.sh", "certificates.k8s.io"),
        *("cluster-autoscaler.kubernetes.io", "config.volcano.sh", "coordination.k8s.io"),
        *("discovery.k8s.io", "ebs.csi.aws.com", "efs.csi.aws.com", "eks.amazonaws.com"),
        "elbv2.k8s.aws",
        *("gateway.envoyproxy.io", "gateway.networking.k8s.io"),
        *("flow.volcano.sh", "fsx.csi.aws.com", "helm.sh", "jobset.sigs.k8s.io"),
        *("jobset.x-k8s.io", "k8s.amazonaws.com", "k8s.io", "karpenter.k8s.aws"),
        *("karpenter.sh", "keda.sh", "kubeflow.org", "kubernetes.io", "kueue.x-k8s.io"),
        *("leaderworkerset.sigs.k8s.io", "leaderworkerset.x-k8s.io", "meta.k8s.io"),
        *("metrics.k8s.io", "networking.k8s.aws", "networking.k8s.io", "node.eks.aws"),
        *("node.kubernetes.io", "nodeinfo.volcano.sh", "nvidia.com"),
        *("pod-security.kubernetes.io", "prometheus.io", "rbac.authorization.k8s.io"),
        *("resource.k8s.io", "s3.csi.aws.com", "sagemaker.amazonaws.com"),
        *("scheduling.k8s.io", "scheduling.volcano.sh", "shard.volcano.sh"),
        *("snapshot.storage.k8s.io", "storage.k8s.io", "topology.k8s.aws"),
        *("topology.kubernetes.io", "topology.volcano.sh", "training.kubeflow.org"),
        *("ultrascale.dev", "volcano.sh", "vpc.amazonaws.com"),
    )
)
# No objects are named before these.
_NO_GROUPS = ("k8s.io", "kubernetes.io", "volcano.sh", "nvidia.com", "aws.amazon.com")
_PRINCIPAL = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.amazonaws\.com(?:\.cn)?")
_PRINCIPAL_PLACE = re.compile(
    r"\.(?:Principal\.Service|Condition\.\w+\.(?:iam:PassedToService|kms:ViaService"
    r"|ec2:AuthorizedService|sts:AWSServiceName|aws:CalledVia|aws:SourceService))(?:\.\d+)?$"
)
_PUBLIC_CHARTS = "oci://(?P<registry>public.ecr.aws)*"
_CDK_ISSUES = "https://github.com/aws/aws-cdk/issues/"
_KUSTOMIZED = re.compile(r"\.EnvironmentVariables\.\d+\.Value\.images\.\d+\.name$")
_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]+\.(?:fsx|efs)\.[a-z0-9-]+\.amazonaws\.com")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A kind of place where a host is named and not connected to, or not from the VPC.

    Attributes:
        reason: The reason, as a clause.
        holds: Whether a use of a host is of the kind.
    """

    reason: str
    holds: Callable[[HostUse, ClusterPlan], bool]


def _is_api(use: HostUse, plan: ClusterPlan) -> bool:
    if use.form != "name" or _is_principal(use, plan):
        return False
    group = use.host.partition(".")[2]
    return use.host in _API_GROUPS or (group in _API_GROUPS and group not in _NO_GROUPS)


def _is_principal(use: HostUse, _: ClusterPlan) -> bool:
    named = _PRINCIPAL.fullmatch(use.host) is not None and use.text == use.host
    return use.form == "name" and named and _PRINCIPAL_PLACE.search(use.place) is not None


def _is_event_source(use: HostUse, _: ClusterPlan) -> bool:
    return use.host == use.text == "aws.health" and ".EventPattern.source" in use.place


def _is_of_the_cluster(use: HostUse, _: ClusterPlan) -> bool:
    return use.host.endswith((".svc", ".cluster.local", ".in-addr.arpa", ".ip6.arpa"))


def _is_file_system(use: HostUse, plan: ClusterPlan) -> bool:
    here = use.host.endswith(f".{plan.region}.amazonaws.com")
    return here and _FILE_SYSTEM.fullmatch(use.host) is not None


def _is_build_image(use: HostUse, _: ClusterPlan) -> bool:
    return (
        use.form == "image"
        and use.text.startswith("aws/codebuild/")
        and use.place.endswith(".Environment.Image")
    )


def _is_public_index(use: HostUse, plan: ClusterPlan) -> bool:
    builder = plan.image_builder
    return use.form == "index" and builder is not None and builder.pip is None


def _is_own_index(use: HostUse, plan: ClusterPlan) -> bool:
    builder = plan.image_builder
    if builder is None or builder.pip is None:
        return False
    host = builder.pip.url.removeprefix("https://").partition("/")[0].partition(":")[0]
    return use.form == "index" or use.host == host


def _is_build_backend(use: HostUse, _: ClusterPlan) -> bool:
    return use.host == "hatchling.build" and use.file.endswith("pyproject.toml")


def _is_pattern_of_the_cdk(use: HostUse, _: ClusterPlan) -> bool:
    return use.text == _PUBLIC_CHARTS and use.file.endswith("/helm/__init__.py")


def _is_replaced(use: HostUse, plan: ClusterPlan) -> bool:
    return plan.mirror is not None and _KUSTOMIZED.search(use.place) is not None


def _is_link(use: HostUse, _: ClusterPlan) -> bool:
    in_dashboard = ".DashboardBody." in use.place and use.place.endswith(".properties.markdown")
    return use.form == "URL" and (in_dashboard or _CDK_ISSUES in use.text)


def _is_mail_address(use: HostUse, _: ClusterPlan) -> bool:
    at, host = use.text.partition("@")[1:]
    return bool(at) and host == use.host and use.place.endswith(".Properties.Endpoint")


KNOWN: tuple[Known, ...] = (
    Known(
        reason="a name of an API, a label or a resource of Kubernetes, which nothing resolves",
        holds=_is_api,
    ),
    Known(reason="the name of an AWS service in a policy", holds=_is_principal),
    Known(reason="the source of an event of AWS", holds=_is_event_source),
    Known(reason="answered by the cluster's own DNS", holds=_is_of_the_cluster),
    Known(reason="a file system's address in the VPC", holds=_is_file_system),
    Known(
        reason="an image that AWS CodeBuild itself brings, outside the VPC", holds=_is_build_image
    ),
    Known(reason="images.packages, asked by builds outside the VPC", holds=_is_own_index),
    Known(
        reason="asked by builds outside the VPC, until images.packages names another index",
        holds=_is_public_index,
    ),
    Known(reason="a Python module", holds=_is_build_backend),
    Known(reason="a name that kustomize replaces by the copy in the mirror", holds=_is_replaced),
    Known(reason="a link for people, in a dashboard or a message", holds=_is_link),
    Known(reason="an address of mail, which SNS sends", holds=_is_mail_address),
    Known(
        reason="a pattern by which the CDK's handler knows charts of Amazon ECR Public",
        holds=_is_pattern_of_the_cdk,
    ),
)


def reasons_of(use: HostUse, plan: ClusterPlan) -> Iterator[str]:
    """Yield the reasons for which a use of a host needs no way out of the VPC."""
    for known in KNOWN:
        if known.holds(use, plan):
            yield known.reason
