"""IAM: service-linked roles, and the permissions boundary.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
"""

from collections.abc import Callable, Iterator, Sequence

from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.preflight.model import Check, Context, Finding, State, unknown

_GET_ROLE, _GET_POLICY = "iam:GetRole", "iam:GetPolicy"
# IAM's code of a role or policy that does not exist.
_ABSENT = "NoSuchEntity"


class _Role(Frozen):
    """A service-linked role that a cluster may need."""

    name: str  # Its name
    service: str  # The service that assumes it
    source: str  # Page that names both
    # Returns whether a cluster needs it; None if only parts decide.
    needed: Callable[[ClusterPlan], bool] | None = None
    # The command that creates it; None for `aws iam create-service-linked-role`.
    command: str | None = None


def _spot_pools(pools: Sequence[PoolPlan]) -> list[PoolPlan]:
    return [pool for pool in pools if pool.purchase == "spot"]


_SPOT = _Role(
    name="AWSServiceRoleForEC2Spot",
    service="spot.amazonaws.com",
    needed=lambda plan: bool(_spot_pools(plan.all_pools)),
    source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html",
)
_ROLES = (
    _Role(
        name="AWSServiceRoleForAmazonEKS",
        service="eks.amazonaws.com",
        needed=lambda _: True,
        source="https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks.html",
    ),
    _Role(
        name="AWSServiceRoleForAmazonEKSNodegroup",
        service="eks-nodegroup.amazonaws.com",
        needed=lambda plan: any(pool.is_managed for pool in plan.all_pools),
        source="https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks-nodegroups.html",
    ),
    _Role(
        name="AWSServiceRoleForAutoScaling",
        service="autoscaling.amazonaws.com",
        needed=lambda plan: any(pool.is_node_group for pool in plan.all_pools),
        source="https://docs.aws.amazon.com/autoscaling/ec2/userguide/autoscaling-service-linked-role.html",
    ),
    _SPOT,
    _Role(
        name="AWSServiceRoleForAmazonFSx",
        service="fsx.amazonaws.com",
        needed=lambda plan: bool(plan.storage.lustre),
        source="https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html",
    ),
    _Role(
        # AWS's page names only the role; HyperPod's other roles trust this service.
        name="AWSServiceRoleForSageMakerHyperPod",
        service="hyperpod.sagemaker.amazonaws.com",
        source="https://docs.aws.amazon.com/sagemaker/latest/dg/security-iam-awsmanpol-AmazonSageMakerHyperPodServiceRolePolicy.html",
    ),
    _Role(
        name="AWSServiceRoleForRDS",
        service="rds.amazonaws.com",
        source="https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAM.ServiceLinkedRoles.html",
    ),
    _Role(
        name="AWSServiceRoleForElasticLoadBalancing",
        service="elasticloadbalancing.amazonaws.com",
        source="https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-service-linked-roles.html",
    ),
    _Role(
        name="AWSServiceRoleForECRPullThroughCache",
        service="pullthroughcache.ecr.amazonaws.com",
        needed=lambda plan: plan.images.cache is not None,
        source="https://docs.aws.amazon.com/AmazonECR/latest/userguide/slr-pullthroughcache.html",
    ),
    _Role(
        # AWS does not say whether an objective over a custom metric needs it.
        name="AWSServiceRoleForCloudWatchApplicationSignals",
        service="application-signals.cloudwatch.amazonaws.com",
        source="https://docs.aws.amazon.com/applicationsignals/latest/APIReference/API_StartDiscovery.html",
        command="aws application-signals start-discovery",
    ),
)


def _run_roles(context: Context) -> Iterator[Finding]:
    of_parts = {service for part in context.plan.parts for service in part.linked_roles}
    for role in _ROLES:
        if role.service in of_parts or (role.needed and role.needed(context.plan)):
            yield _look_for_role(context, role)


def _look_for_role(context: Context, role: _Role) -> Finding:
    try:
        _ = context.account.ask(context.account.client("iam").get_role, RoleName=role.name)["Role"]
    except UnansweredError as error:
        if error.code != _ABSENT:
            raise
    else:
        return Finding(check=ROLES.name, subject=role.name, state="pass", evidence="it is there")
    # Karpenter's own role may not create it; other services create their roles, if the deployment
    # is allowed to.
    # Source: https://karpenter.sh/docs/getting-started/getting-started-with-karpenter/
    for_karpenter = role is _SPOT and any(
        pool.is_karpenter for pool in _spot_pools(context.plan.all_pools)
    )
    evidence = "not there; Karpenter cannot launch Spot Instances without it"
    if not for_karpenter:
        evidence = (
            f"not there; {role.service} creates it, if the one who deploys may create such roles"
        )
    made_by = f"aws iam create-service-linked-role --aws-service-name {role.service}"
    if role.command is not None:
        made_by = f"{role.command} --region {context.plan.region}"
    return Finding(
        check=ROLES.name,
        subject=role.name,
        state="fail" if for_karpenter else "warn",
        evidence=evidence,
        fix=made_by,
    )


ROLES = Check(
    name="roles",
    title="service-linked roles",
    actions=(_GET_ROLE,),
    run=_run_roles,
    resources={_GET_ROLE: "arn:{partition}:iam::{account}:role/aws-service-role/*"},
)


def _run_boundary(context: Context) -> Iterator[Finding]:
    name = context.plan.permissions_boundary
    if name is None:
        return
    arn = f"arn:{context.plan.partition}:iam::{context.account.id}:policy/{name}"
    try:
        answer = context.account.ask(context.account.client("iam").get_policy, PolicyArn=arn)
    except UnansweredError as error:
        if error.code != _ABSENT:
            yield unknown(BOUNDARY.name, arn, error)
            return
        evidence = "there is no such policy: IAM would create no role with it as its boundary"
        fix = "create it: `ultrascale bootstrap-policy FILE` writes it, and prints the command"
        yield _finding(BOUNDARY, arn, "fail", evidence, fix)
        return
    if not answer["Policy"].get("IsAttachable", True):
        evidence = "IsAttachable is false: IAM cannot attach it"
        yield _finding(
            BOUNDARY, arn, "fail", evidence, "name another policy in permissions_boundary"
        )
        return
    yield _finding(BOUNDARY, arn, "pass", "it is there")


BOUNDARY = Check(
    name="boundary",
    title="permissions boundary of the roles",
    actions=(_GET_POLICY,),
    run=_run_boundary,
    resources={_GET_POLICY: "arn:{partition}:iam::{account}:policy/*"},
)


def _finding(
    check: Check, arn: str, state: State, evidence: str, fix: str | None = None
) -> Finding:
    return Finding(check=check.name, subject=arn, state=state, evidence=evidence, fix=fix)
