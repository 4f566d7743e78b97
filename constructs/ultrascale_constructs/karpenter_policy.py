"""IAM policies of the Karpenter controller.

The statements are those of Karpenter's own CloudFormation template, by their names.

Source: https://karpenter.sh/v1.14/reference/cloudformation/
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_CREATED = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)
_LAUNCH = ["ec2:RunInstances", "ec2:CreateFleet"]
_NODE_POOL_TAG = "karpenter.sh/nodepool"
_NODE_CLASS_TAG = "karpenter.k8s.aws/ec2nodeclass"
_REGION_TAG = "topology.kubernetes.io/region"
_CLUSTER_NAME_TAG = "eks:eks-cluster-name"


Condition = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that allows something.

    Attributes:
        sid: Its name.
        actions: What is allowed.
        resources: ARNs of what it is allowed on.
        condition: When it is allowed; empty: always.
    """

    sid: str
    actions: Sequence[str]
    resources: Sequence[str]
    condition: Condition = field(default_factory=dict[str, Mapping[str, object]])

    @property
    def document(self) -> Mapping[str, object]:
        """The statement as a policy document takes it."""
        required = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": self.actions,
            "Resource": self.resources,
        }
        return {**required, "Condition": self.condition} if self.condition else required


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the statements are about.

    Attributes:
        partition: AWS partition, as it stands in ARNs.
        region: AWS Region.
        account: AWS account, or CloudFormation's reference to it.
        cluster: Cluster name. It is part of condition keys, and so no reference.
        node_role_arns: ARNs of the roles of the nodes.
        queue_arn: ARN of the interruption queue.
    """

    partition: str
    region: str
    account: str
    cluster: str
    node_role_arns: tuple[str, ...]
    queue_arn: str

    def ec2(self, *kinds: str) -> list[str]:
        """Return the ARNs of all EC2 resources of ``kinds``, whoever owns them."""
        return [f"arn:{self.partition}:ec2:{self.region}:*:{kind}/*" for kind in kinds]

    @property
    def instance_profiles(self) -> str:
        """ARN of all instance profiles of the account."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

    @property
    def cluster_tag(self) -> str:
        """Key of the tag, of value ``owned``, that everything of the cluster carries."""
        return f"kubernetes.io/cluster/{self.cluster}"


def controller_policies(around: Surroundings) -> Mapping[str, Sequence[Statement]]:
    """Return the statements of each of the controller's policies, by the policy's name.

    A managed policy holds 6,144 characters, less than all of them together.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    """
    return {
        "NodeLifecycle": _node_lifecycle(around),
        "IamIntegration": _iam_integration(around),
        "EksIntegration": [
            Statement(
                "AllowAPIServerEndpointDiscovery",
                ["eks:DescribeCluster"],
                [
                    f"arn:{around.partition}:eks:{around.region}:{around.account}:cluster/{around.cluster}"
                ],
            )
        ],
        "Interruption": [
            Statement(
                "AllowInterruptionQueueActions",
                ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                [around.queue_arn],
            )
        ],
        "ResourceDiscovery": _resource_discovery(around),
    }


def _node_lifecycle(around: Surroundings) -> list[Statement]:
    public = f"arn:{around.partition}:ec2:{around.region}:"
    shared = around.ec2("security-group", "subnet", "capacity-reservation", "placement-group")
    requested = {
        f"aws:RequestTag/{around.cluster_tag}": "owned",
        f"aws:RequestTag/{_CLUSTER_NAME_TAG}": around.cluster,
    }
    of_a_pool = {"StringLike": {f"aws:RequestTag/{_NODE_POOL_TAG}": "*"}}
    owned = {
        "StringEquals": {f"aws:ResourceTag/{around.cluster_tag}": "owned"},
        "StringLike": {f"aws:ResourceTag/{_NODE_POOL_TAG}": "*"},
    }
    return [
        Statement(
            "AllowScopedEC2InstanceAccessActions",
            _LAUNCH,
            [f"{public}:image/*", f"{public}:snapshot/*", *shared],
        ),
        Statement(
            "AllowScopedEC2LaunchTemplateAccessActions",
            _LAUNCH,
            around.ec2("launch-template"),
            owned,
        ),
        Statement(
            "AllowScopedEC2InstanceActionsWithTags",
            [*_LAUNCH, "ec2:CreateLaunchTemplate"],
            around.ec2(*_CREATED),
            {"StringEquals": requested, **of_a_pool},
        ),
        Statement(
            "AllowScopedResourceCreationTagging",
            ["ec2:CreateTags"],
            around.ec2(*_CREATED),
            {
                "StringEquals": {
                    **requested,
                    "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                },
                **of_a_pool,
            },
        ),
        Statement(
            "AllowScopedResourceTagging",
            ["ec2:CreateTags"],
            around.ec2("instance"),
            {
                **owned,
                "StringEqualsIfExists": {f"aws:RequestTag/{_CLUSTER_NAME_TAG}": around.cluster},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": [_CLUSTER_NAME_TAG, "karpenter.sh/nodeclaim", "Name"]
                },
            },
        ),
        Statement(
            "AllowScopedDeletion",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            around.ec2("instance", "launch-template"),
            owned,
        ),
    ]


def _iam_integration(around: Surroundings) -> list[Statement]:
    profiles = [around.instance_profiles]
    here = {around.cluster_tag: "owned", _REGION_TAG: around.region}
    requested = {
        **_each("aws:RequestTag", here),
        f"aws:RequestTag/{_CLUSTER_NAME_TAG}": around.cluster,
    }
    existing = _each("aws:ResourceTag", here)
    of_a_class = {f"aws:RequestTag/{_NODE_CLASS_TAG}": "*"}
    already_of_a_class = {f"aws:ResourceTag/{_NODE_CLASS_TAG}": "*"}
    return [
        Statement(
            "AllowPassingInstanceRole",
            ["iam:PassRole"],
            [*around.node_role_arns],
            {
                "StringEquals": {
                    "iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]
                }
            },
        ),
        Statement(
            "AllowScopedInstanceProfileCreationActions",
            ["iam:CreateInstanceProfile"],
            profiles,
            {"StringEquals": requested, "StringLike": of_a_class},
        ),
        Statement(
            "AllowScopedInstanceProfileTagActions",
            ["iam:TagInstanceProfile"],
            profiles,
            {
                "StringEquals": {**existing, **requested},
                "StringLike": {**already_of_a_class, **of_a_class},
            },
        ),
        Statement(
            "AllowScopedInstanceProfileActions",
            [
                "iam:AddRoleToInstanceProfile",
                "iam:RemoveRoleFromInstanceProfile",
                "iam:DeleteInstanceProfile",
            ],
            profiles,
            {"StringEquals": existing, "StringLike": already_of_a_class},
        ),
    ]


def _resource_discovery(around: Surroundings) -> list[Statement]:
    kinds = (
        "CapacityReservations",
        "Images",
        "Instances",
        "InstanceStatus",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "LaunchTemplates",
        "PlacementGroups",
        "SecurityGroups",
        "SpotPriceHistory",
        "Subnets",
    )
    parameters = f"arn:{around.partition}:ssm:{around.region}::parameter/aws/service/*"
    return [
        Statement(
            "AllowRegionalReadActions",
            [f"ec2:Describe{kind}" for kind in kinds],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": around.region}},
        ),
        Statement("AllowSSMReadActions", ["ssm:GetParameter"], [parameters]),
        Statement("AllowPricingReadActions", ["pricing:GetProducts"], ["*"]),
        Statement("AllowUnscopedInstanceProfileListAction", ["iam:ListInstanceProfiles"], ["*"]),
        Statement(
            "AllowInstanceProfileReadActions",
            ["iam:GetInstanceProfile"],
            [around.instance_profiles],
        ),
    ]


def _each(prefix: str, tags: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}/{key}": value for key, value in tags.items()}
