"""Reasons of failed CloudFormation events, with their meaning and remedy.

A reason holds the message of the service that refused. The first matching pattern counts, so
narrow patterns stand before wide ones. Without an event only the CDK's own error is known.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ultrascale.frozen import Frozen

_EC2_ERRORS = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html"
_EKS_GROUP_ERRORS = "https://docs.aws.amazon.com/eks/latest/APIReference/API_Issue.html"
_EKS_GROUP_UPDATES = (
    "https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html"
)
_CFN = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html"
_CDK = "https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-troubleshoot.html"
_CUSTOM = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html"


class DeployFailure(Frozen):
    """A known reason of failed deployments."""

    pattern: re.Pattern[str]  # Pattern of the reason's text
    todo: str  # Remedy, with ``{file}``, ``{stack}``, ``{cluster}`` and ``{region}``
    source: str  # Page that explains it


def _failure(pattern: str, todo: str, source: str) -> DeployFailure:
    return DeployFailure(pattern=re.compile(pattern, re.IGNORECASE), todo=todo, source=source)


_EXISTS = _failure(
    r"already exists|AlreadyExists|EntityAlreadyExists",
    "something else has the name: `ultrascale preflight {file}` says what, and `ultrascale deploy "
    "{file} --import-existing-resources` takes over what an earlier deployment left",
    _CFN,
)

FAILURES: tuple[DeployFailure, ...] = (
    _failure(
        r"too many requests|Rate exceeded|Throttling|TooManyRequests|RequestLimitExceeded",
        "AWS throttled it: deploy again, with a smaller --concurrency",
        _EC2_ERRORS,
    ),
    _failure(
        r"failed calling webhook|no endpoints available for service",
        "an admission webhook in the cluster has no pod that answers: `kubectl get pods -A` says "
        "which does not run; then deploy again",
        "https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/",
    ),
    _failure(
        r"ReservationCapacityExceeded|CapacityReservation\S*(Incompatible|NotFound)",
        "the reservation has no free instance for the pool, or is not active: `ultrascale "
        "preflight {file}` holds it against the pool",
        _EC2_ERRORS,
    ),
    _failure(
        r"InsufficientInstanceCapacity|InsufficientCapacity|UnfulfillableCapacity|"
        r"do not have sufficient (\S+ )?capacity|unable to provision requested ML compute capacity|"
        r"no Spot capacity|capacity-not-available",
        "AWS has no such instances in that zone now. Deploy again later, name another zone or "
        "type, or buy a reservation: `ultrascale capacity {file}`",
        _EC2_ERRORS,
    ),
    _failure(
        r"not supported in your requested Availability Zone|UnsupportedAvailabilityZone",
        "the zone has none of it: `ultrascale preflight {file}` says which zones offer each type, "
        "and which EKS takes",
        _EC2_ERRORS,
    ),
    _failure(
        r"service-linked role|ServiceLinkedRole",
        "`ultrascale preflight {file}` says which service-linked role is missing, and how to make "
        "it",
        _EC2_ERRORS,
    ),
    _failure(
        r"InvalidAMIID|image id .* does not exist|release version .* is not valid",
        "`ultrascale preflight {file}` says whether the pinned machine images are in the Region",
        _EC2_ERRORS,
    ),
    _failure(
        r"VcpuLimitExceeded|MaxSpotInstanceCountExceeded|LimitExceeded|QuotaExceeded|"
        r"exceeded .*(quota|limit)|maximum number of",
        "a service quota is reached: `ultrascale preflight {file} --request-quotas` shows which, "
        "and files the increase",
        _EC2_ERRORS,
    ),
    _failure(
        r"InsufficientFreeAddresses|InsufficientCidrBlocks|not enough free addresses",
        "a subnet has no addresses left: `ultrascale plan {file}` says how many each zone holds",
        _EKS_GROUP_ERRORS,
    ),
    _failure(
        r"NodeCreationFailure|failed to join the kubernetes cluster",
        "instances came and did not join: read the log of one of them (`aws ec2 "
        "get-console-output --latest --region {region} --instance-id ID`), and whether its subnet "
        "reaches the cluster, ECR, S3 and STS",
        _EKS_GROUP_ERRORS,
    ),
    _failure(
        r"PodEvictionFailure|trying to evict pods",
        "pods did not leave the old nodes in time: `kubectl get pdb -A` shows budgets that allow "
        "no disruption, and a pod that tolerates every taint comes back to the node that it left; "
        "let them go, then deploy again",
        _EKS_GROUP_UPDATES,
    ),
    _failure(
        r"Version and ReleaseVersion updates cannot be combined",
        "deploy twice: the version of the nodes alone, then the rest of what changed",
        "https://github.com/aws/containers-roadmap/issues/1258",
    ),
    _failure(
        r"cannot be (deleted|updated) as it is in use by|Export .* in use by",
        "another stack still imports what this one gives up: deploy that one first, as the "
        "decision about stacks says (docs/decisions/0002-stacks-follow-lifecycles.md)",
        _CFN,
    ),
    _EXISTS,
    _failure(
        r"is not authorized to perform|AccessDenied|UnauthorizedOperation|Forbidden",
        "allow that action to the role that CloudFormation deploys with (cdk-hnb659fds-cfn-exec-"
        "role-…), or to the function that the message names; look at service control policies and "
        "at a permissions boundary, too",
        _CFN,
    ),
    _failure(
        r"did not receive a response from your Custom Resource|Custom Resource failed to stabilize|"
        r"Task timed out",
        "the function of that resource did not answer in time; its log group says how far it came: "
        "`aws logs tail LOG-GROUP --since 1h --region {region}`",
        _CUSTOM,
    ),
    _failure(
        r"ClusterUnreachable|Unable to connect to the server|i/o timeout|connection refused|"
        r"no such host|context deadline exceeded",
        "the function that applies manifests did not reach the API server: look whether the "
        "cluster is ACTIVE, and whether its subnets reach it; then deploy again",
        "https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html",
    ),
    _failure(
        r"DependencyViolation|has a dependent object|resource .* is in use",
        "something that no stack made still uses it, such as a network interface of a load "
        "balancer: remove that, and deploy again",
        _EC2_ERRORS,
    ),
    _failure(
        r"NotStabilized|Exceeded attempts to wait|did not stabilize|timed out",
        "AWS did not finish it in time: look at the resource itself in the console, then deploy "
        "again",
        _CFN,
    ),
    _failure(
        r"hook\(s\) failed|HOOK_COMPLETE_FAILED",
        "a CloudFormation Hook of the account refuses it: its reason says which rule; ask whoever "
        "runs the account",
        "https://docs.aws.amazon.com/cloudformation-cli/latest/hooks-userguide/what-is-cloudformation-hooks.html",
    ),
)

CDK_FAILURES: tuple[DeployFailure, ...] = (
    _failure(
        r"ExpiredToken|RequestExpired|(token|session|credentials)\b.{0,60}\bexpired",
        "the credentials ended: log in again or export new ones that last for as long as a "
        "deployment takes, which may be hours; then deploy again. What CloudFormation has begun "
        "goes on meanwhile",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp.html",
    ),
    _failure(
        r"_IN_PROGRESS state and can ?not be updated|OperationInProgress",
        "another deployment changes it: wait until that ends, and deploy again",
        _CFN,
    ),
    _failure(
        r"Has the environment been bootstrapped|requires bootstrap stack version",
        "`ultrascale cdk bootstrap aws://ACCOUNT/{region}` once; then deploy again",
        _CDK,
    ),
    _failure(
        r"could not be used to assume|Could not assume role",
        "allow sts:AssumeRole on the roles cdk-hnb659fds-* of the account",
        _CDK,
    ),
    _failure(
        r"Throttling|Rate exceeded|TooManyRequests",
        "AWS throttled it: deploy again, with a smaller --concurrency",
        _EC2_ERRORS,
    ),
    _EXISTS,
)
"""Known errors of the CDK CLI, for a deployment without a failed event of CloudFormation."""

_HOW_FAR = "`aws cloudformation describe-stacks --stack-name {stack} --region {region}`"
IN_PROGRESS = (
    f"CloudFormation goes on with it: wait until {_HOW_FAR} says that it ended, then deploy again"
)
"""Remedy for a stack that is still changing."""
GOES_ON = f"what CloudFormation has begun of it goes on; {_HOW_FAR} says how far it is"
"""Note on a stack that is still changing after the command has ended."""

STATUSES: Mapping[str, str] = MappingProxyType(
    {
        "ROLLBACK_COMPLETE": "it was new, and what it made is gone again, but for what is "
        "retained. `aws cloudformation delete-stack --stack-name {stack} --region {region}`, then "
        "deploy again",
        "ROLLBACK_FAILED": "it was new, and some of what it made is still there: remove that by "
        "hand, then `aws cloudformation delete-stack --stack-name {stack} --region {region}`",
        "CREATE_FAILED": "it was new, and is still there, half made: `aws cloudformation "
        "delete-stack --stack-name {stack} --region {region}`",
        "UPDATE_ROLLBACK_COMPLETE": "it is again as it was before: put the cause right, and deploy "
        "again",
        "UPDATE_ROLLBACK_FAILED": "it is stuck half-way back: put the cause right, then `aws "
        "cloudformation continue-update-rollback --stack-name {stack} --region {region}`",
        "UPDATE_FAILED": "it is paused half-way: `aws cloudformation rollback-stack --stack-name "
        "{stack} --region {region}`, then deploy again",
    }
)
"""Meaning and remedy of each status of a stack after a failed operation.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""


def what_to_do(reason: str, among: Sequence[DeployFailure] = FAILURES) -> str | None:
    """Return the remedy for a reason; None for an unknown reason.

    Args:
        reason: Text of a failed event, or of the CDK CLI.
        among: Known reasons.
    """
    return next((each.todo for each in among if each.pattern.search(reason)), None)
