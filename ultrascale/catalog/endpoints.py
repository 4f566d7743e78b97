"""VPC endpoints of AWS services, and the services that each part of a cluster calls in its VPC.

Sources:
    https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html
    https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html (hosts)
    https://github.com/awsdocs/amazon-eks-user-guide/blob/101184ec/latest/ug/clusters/private-clusters.adoc
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

Kind = Literal["interface", "gateway"]
Feature = Literal[
    "nodes",
    "session-manager",
    "pod-identity",
    "functions",
    "karpenter",
    "cluster-autoscaler",
    "load-balancer-controller",
    "termination-handler",
    "vpc-cni",
    "ebs-csi",
    "fsx-csi",
    "mountpoint-s3",
    "s3-output",
    "cloudwatch",
    "node-pool-calendars",
    "hyperpod",
    "hyperpod-chart",
    "hyperpod-metrics",
    "backend",
]
"""Part of a cluster that calls AWS from within the VPC."""
FEATURES: tuple[Feature, ...] = get_args(Feature)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """An AWS service that VPC endpoints exist for.

    Attributes:
        hosts: DNS names that an endpoint with private DNS answers for; ``*`` stands for any first
            label, ``REGION`` for the Region.
        actions: Prefixes of the service's IAM actions.
        kind: Whether the endpoint has interfaces, or is an entry in route tables.
    """

    hosts: tuple[str, ...]
    actions: tuple[str, ...]
    kind: Kind = "interface"


def _plain(name: str, *actions: str) -> Service:
    return Service(hosts=(f"{name}.REGION.amazonaws.com",), actions=actions or (name,))


# The short name of an endpoint stands behind ``com.amazonaws.REGION.``.
SERVICES: Mapping[str, Service] = MappingProxyType(
    {
        **{
            name: _plain(name)
            for name in (
                *("autoscaling", "cloudformation", "ec2", "ec2messages", "eks"),
                *("elasticfilesystem", "elasticloadbalancing", "events", "fsx", "kms", "lambda"),
                *("logs", "rds", "rds-data", "scheduler", "secretsmanager", "sns", "sqs", "ssm"),
                *("ssmmessages", "states", "sts", "xray"),
            )
        },
        "aps-workspaces": _plain("aps-workspaces", "aps"),
        "codeartifact.api": Service(
            hosts=("codeartifact.REGION.amazonaws.com",), actions=("codeartifact",)
        ),
        "codeartifact.repositories": Service(
            hosts=("*.d.codeartifact.REGION.amazonaws.com",), actions=("codeartifact",)
        ),
        "codebuild": _plain("codebuild"),
        # Source: https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
        "ecr.api": Service(hosts=("api.ecr.REGION.amazonaws.com",), actions=("ecr",)),
        "ecr.dkr": Service(hosts=("*.dkr.ecr.REGION.amazonaws.com",), actions=("ecr",)),
        # Source: https://docs.aws.amazon.com/eks/latest/userguide/vpc-interface-endpoints.html
        "eks-auth": Service(hosts=("eks-auth.REGION.api.aws",), actions=("eks-auth",)),
        "monitoring": _plain("monitoring", "cloudwatch"),
        # Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/privatelink-interface-endpoints.html
        "s3": Service(
            hosts=("s3.REGION.amazonaws.com", "*.s3.REGION.amazonaws.com"),
            actions=("s3",),
            kind="gateway",
        ),
        # Source: https://docs.aws.amazon.com/sagemaker/latest/dg/interface-vpc-endpoint.html
        "sagemaker.api": Service(
            hosts=("api.sagemaker.REGION.amazonaws.com",), actions=("sagemaker",)
        ),
        "sagemaker.runtime": Service(
            hosts=("runtime.sagemaker.REGION.amazonaws.com",), actions=("sagemaker",)
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Calls of one service by a part of a cluster.

    Attributes:
        service: Short name of the service's endpoint.
        why: What the calls are for, as the rest of a sentence that begins with the part.
        required: Whether the part fails without them. Otherwise it does so in rare cases alone.
    """

    service: str
    why: str
    required: bool = True


# Source of the rows of EKS and its nodes: the page of EKS above, and
# https://github.com/eksctl-io/eksctl/blob/99984adb/pkg/vpc/endpoints.go of ``sts``.
CALLS: Mapping[Feature, tuple[Call, ...]] = MappingProxyType(
    {
        "nodes": (
            Call(service="ec2", why="ask for their private DNS names"),
            Call(service="ecr.api", why="get tokens for images"),
            Call(service="ecr.dkr", why="pull images"),
            Call(service="s3", why="pull layers of images, and packages of Amazon Linux"),
            Call(service="eks", why="ask for the cluster that they join"),
            Call(service="sts", why="get credentials of the Region"),
        ),
        # Agents from 3.3.40 on leave out ``ec2messages`` where ``ssmmessages`` answers.
        # Source: https://docs.aws.amazon.com/systems-manager/latest/userguide/setup-create-vpc.html
        "session-manager": (
            Call(service="ssm", why="registers nodes, which `ultrascale connect` leads through"),
            Call(service="ssmmessages", why="opens sessions"),
            Call(service="ec2messages", why="takes commands of older agents", required=False),
        ),
        # Source: https://docs.aws.amazon.com/eks/latest/userguide/pod-id-agent-setup.html
        "pod-identity": (Call(service="eks-auth", why="gets credentials of pods"),),
        # The framework calls the handler, which runs kubectl and Helm; both answer CloudFormation
        # through a bucket. Source: aws-cdk-lib 2.275.0, `aws-eks-v2/lib/kubectl-provider.js` and
        # `custom-resource-handlers/dist/aws-eks-v2/kubectl-handler`.
        "functions": (
            Call(service="lambda", why="call one another to apply manifests"),
            Call(service="eks", why="ask for the cluster's API server"),
            Call(service="sts", why="sign in to the API server"),
            Call(service="s3", why="answer CloudFormation, and read charts"),
            Call(service="ecr.api", why="get tokens for charts in the registry"),
            Call(service="ecr.dkr", why="pull charts from the registry"),
        ),
        # Neither IAM nor, in most Regions, the Price List API has an endpoint: see
        # `plan.pools.karpenter`.
        # Source: https://karpenter.sh/docs/getting-started/getting-started-with-karpenter/#private-clusters
        "karpenter": (
            Call(service="ec2", why="launches instances"),
            Call(service="eks", why="asks for the cluster's API server"),
            Call(service="sqs", why="hears of interruptions"),
            Call(service="ssm", why="looks AMIs up"),
            Call(service="sts", why="gets credentials of the Region"),
        ),
        # Source: https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/v3.5.0/pkg/targetgroupbinding/targets_manager.go
        "load-balancer-controller": (
            Call(service="ec2", why="looks the VPC of pods up"),
            Call(service="elasticloadbalancing", why="registers the proxies of the front"),
        ),
        # Source: https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.1/cluster-autoscaler/cloudprovider/aws/README.md
        "cluster-autoscaler": (
            Call(service="autoscaling", why="sets the sizes of groups"),
            Call(service="ec2", why="reads instance types and launch templates"),
            Call(service="eks", why="reads labels and taints of node groups"),
        ),
        # Source: https://github.com/aws/aws-node-termination-handler/tree/v1.25.6
        "termination-handler": (
            Call(service="autoscaling", why="completes lifecycle hooks"),
            Call(service="ec2", why="finds the node of an instance"),
            Call(service="sqs", why="hears of interruptions"),
        ),
        "vpc-cni": (Call(service="ec2", why="gets addresses of pods"),),
        "ebs-csi": (Call(service="ec2", why="makes and attaches volumes"),),
        # Volumes that are there already, as all of ours, are mounted without a call.
        # Source: https://github.com/kubernetes-sigs/aws-fsx-csi-driver/tree/master/docs
        "fsx-csi": (
            Call(
                service="fsx", why="makes volumes on demand, none of this cluster", required=False
            ),
        ),
        "mountpoint-s3": (Call(service="s3", why="mounts buckets"),),
        "s3-output": (Call(service="s3", why="takes checkpoints"),),
        # Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-logs-and-interface-VPC.html
        "cloudwatch": (
            Call(service="logs", why="takes logs and performance events"),
            Call(service="monitoring", why="takes metrics"),
            Call(service="ec2", why="reads tags and volumes of nodes"),
        ),
        "node-pool-calendars": (
            Call(service="ec2", why="read reservations"),
            Call(service="eks", why="ask for the cluster's API server"),
        ),
        # Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
        "hyperpod": (
            Call(service="sagemaker.api", why="registers nodes and their health"),
            Call(service="logs", why="writes logs of lifecycle scripts and of health checks"),
            Call(service="s3", why="reads lifecycle scripts"),
            Call(service="ssmmessages", why="opens sessions"),
            Call(service="ec2", why="gets addresses of pods"),
            Call(service="monitoring", why="takes metrics of nodes", required=False),
        ),
        # Source: https://docs.aws.amazon.com/codebuild/latest/userguide/vpc-support.html
        "hyperpod-chart": (
            Call(service="logs", why="is installed by a build, which writes a log"),
            Call(service="s3", why="is installed by a build, which reads its sources"),
            Call(service="eks", why="is installed by a build, which asks for the API server"),
            Call(service="sts", why="is installed by a build, which signs in to the API server"),
        ),
        # Source: https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-and-interface-VPC.html
        "hyperpod-metrics": (Call(service="aps-workspaces", why="write to the workspace"),),
        # Source: https://docs.aws.amazon.com/secretsmanager/latest/userguide/vpc-endpoint-overview.html
        "backend": (Call(service="secretsmanager", why="reads the password of its database"),),
    }
)

NAMES: Mapping[Feature, str] = MappingProxyType(
    {
        "nodes": "nodes",
        "session-manager": "Session Manager",
        "pod-identity": "EKS Pod Identity",
        "functions": "functions in the VPC",
        "karpenter": "Karpenter",
        "cluster-autoscaler": "the Cluster Autoscaler",
        "load-balancer-controller": "the AWS Load Balancer Controller",
        "termination-handler": "the Node Termination Handler",
        "vpc-cni": "the VPC CNI",
        "ebs-csi": "the EBS CSI driver",
        "fsx-csi": "the FSx CSI driver",
        "mountpoint-s3": "Mountpoint for S3",
        "s3-output": "the bucket of checkpoints",
        "cloudwatch": "CloudWatch's add-on",
        "node-pool-calendars": "calendars of NodePools",
        "hyperpod": "SageMaker HyperPod",
        "hyperpod-chart": "HyperPod's chart",
        "hyperpod-metrics": "HyperPod's metrics",
        "backend": "the backend",
    }
)
"""Names of the features in a sentence."""

CALLED_BY_INTERFACE = frozenset(
    call.service
    for calls in CALLS.values()
    for call in calls
    if SERVICES[call.service].kind == "interface"
)
"""Services that some cluster calls through an interface endpoint."""

OF_OUR_VPC = (
    *("ec2", "ecr.api", "ecr.dkr", "sts", "logs", "monitoring", "ssm", "ssmmessages"),
    *("ec2messages", "eks", "eks-auth", "elasticloadbalancing", "autoscaling", "kms"),
)
"""Interface endpoints that each VPC of ours has, whatever is deployed: nodes join, pull, log and
are reached when its NAT gateways fail, and so do jobs and load balancers that come later."""

LAYER_BUCKET = "prod-REGION-starport-layer-bucket"
"""Bucket with the layers of images in ECR; the S3 endpoint of its Region alone leads there."""

S3_GATEWAY_BUCKETS = (
    (LAYER_BUCKET, "layers of images in ECR"),
    ("al2023-repos-REGION-de612dc2", "packages of Amazon Linux 2023"),
    ("cdk-*-assets-*-REGION", "assets of the CDK: functions, charts, sources of builds"),
    ("cloudformation-custom-resource-response-*", "answers of custom resources"),
)
"""Buckets that a policy of the S3 endpoint must let through, beside the cluster's own.

Sources:
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html#ecr-minimum-s3-perms
    https://docs.aws.amazon.com/linux/al2023/ug/deterministic-upgrades-usage.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-vpce-bucketnames.html
"""

SOURCE = "https://docs.aws.amazon.com/vpc/latest/privatelink/aws-services-privatelink-support.html"
S3_POLICY_SOURCE = "https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-endpoints-s3.html"

_LONG_NAME = re.compile(r"(?:com\.amazonaws|aws\.api|aws\.sagemaker)\.[a-z0-9-]+\.(.+)")


def short_name(service: str) -> str:
    """Return the short name of an endpoint: ``ec2`` of ``com.amazonaws.us-east-1.ec2``."""
    long = _LONG_NAME.fullmatch(service)
    return long[1] if long is not None else service


def kind_of(service: str) -> Kind:
    """Return the kind of the endpoint of ``service``; an unknown one has interfaces."""
    known = SERVICES.get(service)
    return "interface" if known is None else known.kind


def services_of_action(action: str) -> tuple[str, ...]:
    """Return the endpoints that an IAM action takes, as ``ecr.api`` of ``ecr:BatchGetImage``.

    Empty for a service that has none here, as IAM.
    """
    prefix = action.partition(":")[0]
    return tuple(name for name, service in SERVICES.items() if prefix in service.actions)


def service_of_host(host: str, region: str) -> str | None:
    """Return the endpoint that answers for ``host`` in ``region``; None where none does."""
    for name, service in SERVICES.items():
        for pattern in service.hosts:
            known = pattern.replace("REGION", region)
            if host == known or (known.startswith("*.") and host.endswith(known[1:])):
                return name
    return None
