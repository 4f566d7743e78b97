"""AWS Load Balancer Controller: its chart, and its calls to AWS to maintain a target group.

EKS Auto Mode has its own controller, whose kinds have another API group.

Sources:
    https://github.com/kubernetes-sigs/aws-load-balancer-controller/tree/v3.5.0/helm/aws-load-balancer-controller
    https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/v3.5.0/pkg/targetgroupbinding/targets_manager.go
    https://docs.aws.amazon.com/eks/latest/userguide/migrate-auto.html
"""

from ultrascale.catalog.versions import chart

VERSION = chart("aws-load-balancer-controller").version
"""Version of the chart, without a `v`."""

# The chart is in no registry: https://github.com/aws/eks-charts/issues/1070
CHART = "https://aws.github.io/eks-charts/aws-load-balancer-controller"
IMAGE = "public.ecr.aws/eks/aws-load-balancer-controller"
"""Image of the controller; its tag is the chart's version behind a `v`."""

API_VERSION = "elbv2.k8s.aws/v1beta1"
AUTO_MODE_API_VERSION = "eks.amazonaws.com/v1"
"""API group and version of `TargetGroupBinding`, for this controller and for EKS Auto Mode's."""

SERVICE_ACCOUNT = "aws-load-balancer-controller"

# Source: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
MOST_IDLE_SECONDS = 4000
"""Longest time in which an Application Load Balancer waits for a byte."""

DESCRIBING_ACTIONS = (
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
)
"""Actions that take no resource."""

TARGET_ACTIONS = ("elasticloadbalancing:DeregisterTargets", "elasticloadbalancing:RegisterTargets")
"""Actions on the target group."""


# Limits of Application Load Balancers. They belong to a stack: the controller makes none.
# Sources:
#     https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
#     https://docs.aws.amazon.com/acm/latest/userguide/import-certificate-prerequisites.html
SMALLEST_SUBNET_MASK = 27
"""Mask of the smallest subnet that a load balancer takes."""

FREE_ADDRESSES = 8
"""Free addresses that it needs in each of its subnets to scale out."""

KEY_ALGORITHMS = frozenset(
    {
        *("RSA_1024", "RSA_2048", "RSA_3072", "RSA_4096"),
        *("EC_prime256v1", "EC_secp384r1", "EC_secp521r1"),
    }
)
"""Key algorithms of certificates that it takes, by ACM's names."""
