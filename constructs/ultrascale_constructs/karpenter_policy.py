"""IAM policies of the Karpenter controller.

The statements are those of Karpenter's own CloudFormation template, by their names.

Source: https://karpenter.sh/v1.14/reference/cloudformation/
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import field

from ultrascale.frozen import Frozen

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


class Statement(Frozen, kw_only=False):
    """A statement of an IAM policy that allows actions."""

    sid: str  # Its name
    actions: Sequence[str]  # Allowed actions
    resources: Sequence[str]  # ARNs of the resources
    # Conditions; empty: always allowed.
    condition: Condition = field(default_factory=dict[str, Mapping[str, object]])

    @property
    def document(self) -> Mapping[str, object]:
        """Return the statement in the form of a policy document."""
        required = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": self.actions,
            "Resource": self.resources,
        }
        return {**required, "Condition": self.condition} if self.condition else required


class PolicyScope(Frozen):
    """The cluster, account and Region that the statements name."""

    partition: str  # AWS partition of ARNs
    region: str  # AWS Region
    account: str  # AWS account, or CloudFormation's reference to it
    cluster: str  # Cluster name. It is part of condition keys, so it cannot be a reference.
    node_role_arns: tuple[str, ...]  # ARNs of the roles of the nodes
    queue_arn: str  # ARN of the interruption queue
    reboots_nodes: bool = False  # Whether the controller may reboot instances
    # Whether IAM and the Price List API are out of reach, so that it gets no rights there.
    is_isolated: bool = False

    def ec2(self, *kinds: str) -> list[str]:
        """Return the ARNs of all EC2 resources of ``kinds``, of any owner."""
        return [f"arn:{self.partition}:ec2:{self.region}:*:{kind}/*" for kind in kinds]

    @property
    def instance_profiles(self) -> str:
        """ARN pattern of all instance profiles of the account."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

    @property
    def cluster_tag(self) -> str:
        """Key of the tag that all resources of the cluster have, with the value ``owned``."""
        return f"kubernetes.io/cluster/{self.cluster}"


def controller_policies(target: PolicyScope) -> Mapping[str, Sequence[Statement]]:
    """Return the statements of each of the controller's policies, by the policy's name.

    A managed policy holds at most 6,144 characters, fewer than all statements together.

    Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    """
    return {
        "NodeLifecycle": _node_lifecycle(target),
        "IamIntegration": _iam_integration(target),
        "EksIntegration": [
            Statement(
                "AllowAPIServerEndpointDiscovery",
                ["eks:DescribeCluster"],
                [
                    f"arn:{target.partition}:eks:{target.region}:{target.account}:cluster/{target.cluster}"
                ],
            )
        ],
        "Interruption": [
            Statement(
                "AllowInterruptionQueueActions",
                ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                [target.queue_arn],
            )
        ],
        "ResourceDiscovery": _resource_discovery(target),
    }


def _node_lifecycle(target: PolicyScope) -> list[Statement]:
    public = f"arn:{target.partition}:ec2:{target.region}:"
    shared = target.ec2("security-group", "subnet", "capacity-reservation", "placement-group")
    requested = {
        f"aws:RequestTag/{target.cluster_tag}": "owned",
        f"aws:RequestTag/{_CLUSTER_NAME_TAG}": target.cluster,
    }
    of_a_pool = {"StringLike": {f"aws:RequestTag/{_NODE_POOL_TAG}": "*"}}
    owned = {
        "StringEquals": {f"aws:ResourceTag/{target.cluster_tag}": "owned"},
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
            target.ec2("launch-template"),
            owned,
        ),
        Statement(
            "AllowScopedEC2InstanceActionsWithTags",
            [*_LAUNCH, "ec2:CreateLaunchTemplate"],
            target.ec2(*_CREATED),
            {"StringEquals": requested, **of_a_pool},
        ),
        *_tagging(target, requested, of_a_pool, owned),
        Statement(
            "AllowScopedDeletion",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            target.ec2("instance", "launch-template"),
            owned,
        ),
        *_reboots(target, owned),
    ]


def _tagging(
    target: PolicyScope,
    requested: Mapping[str, str],
    of_a_pool: Condition,
    owned: Condition,
) -> Iterator[Statement]:
    """Yield the tagging of what is created, and of instances once they are there."""
    yield Statement(
        "AllowScopedResourceCreationTagging",
        ["ec2:CreateTags"],
        target.ec2(*_CREATED),
        {
            "StringEquals": {
                **requested,
                "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
            },
            **of_a_pool,
        },
    )
    yield Statement(
        "AllowScopedResourceTagging",
        ["ec2:CreateTags"],
        target.ec2("instance"),
        {
            **owned,
            "StringEqualsIfExists": {f"aws:RequestTag/{_CLUSTER_NAME_TAG}": target.cluster},
            "ForAllValues:StringEquals": {
                "aws:TagKeys": [_CLUSTER_NAME_TAG, "karpenter.sh/nodeclaim", "Name"]
            },
        },
    )


def _reboots(target: PolicyScope, owned: Condition) -> Iterator[Statement]:
    """Yield the statement that allows reboots, if node repair uses them.

    Source: https://karpenter.sh/v1.15/reference/cloudformation/#allowscopeddeletion
    """
    if target.reboots_nodes:
        yield Statement("AllowScopedReboot", ["ec2:RebootInstances"], target.ec2("instance"), owned)


def _iam_integration(target: PolicyScope) -> list[Statement]:
    profiles = [target.instance_profiles]
    here = {target.cluster_tag: "owned", _REGION_TAG: target.region}
    requested = {
        **_tag_conditions("aws:RequestTag", here),
        f"aws:RequestTag/{_CLUSTER_NAME_TAG}": target.cluster,
    }
    existing = _tag_conditions("aws:ResourceTag", here)
    passing = Statement(
        "AllowPassingInstanceRole",
        ["iam:PassRole"],
        [*target.node_role_arns],
        {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}},
    )
    if target.is_isolated:
        return [passing]
    of_a_class = {f"aws:RequestTag/{_NODE_CLASS_TAG}": "*"}
    already_of_a_class = {f"aws:ResourceTag/{_NODE_CLASS_TAG}": "*"}
    return [
        passing,
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


def _resource_discovery(target: PolicyScope) -> list[Statement]:
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
    parameters = f"arn:{target.partition}:ssm:{target.region}::parameter/aws/service/*"
    return [
        Statement(
            "AllowRegionalReadActions",
            [f"ec2:Describe{kind}" for kind in kinds],
            ["*"],
            {"StringEquals": {"aws:RequestedRegion": target.region}},
        ),
        Statement("AllowSSMReadActions", ["ssm:GetParameter"], [parameters]),
        *_prices_and_profiles(target),
    ]


def _prices_and_profiles(target: PolicyScope) -> Iterator[Statement]:
    """Yield the statements on prices and instance profiles, if their services can be reached."""
    if not target.is_isolated:
        yield from (
            Statement("AllowPricingReadActions", ["pricing:GetProducts"], ["*"]),
            Statement(
                "AllowUnscopedInstanceProfileListAction", ["iam:ListInstanceProfiles"], ["*"]
            ),
            Statement(
                "AllowInstanceProfileReadActions",
                ["iam:GetInstanceProfile"],
                [target.instance_profiles],
            ),
        )


def _tag_conditions(prefix: str, tags: Mapping[str, str]) -> dict[str, str]:
    return {f"{prefix}/{key}": value for key, value in tags.items()}
