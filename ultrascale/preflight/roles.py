"""Whether the roles are there that AWS services take to work in an account."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ultrascale.errors import UnansweredError
from ultrascale.plan.model import ClusterPlan
from ultrascale.preflight.model import Check, Context, Finding

_AUTO_SCALED = frozenset({"managed-node-group", "self-managed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Role:
    """A service-linked role.

    Attributes:
        name: Its name.
        service: The service that takes it.
        needed: Whether a cluster needs it.
        source: Page that names both.
        command: What makes it, where it is not made as all others are.
    """

    name: str
    service: str
    needed: Callable[[ClusterPlan], bool]
    source: str
    command: str | None = None


def _provisioners(plan: ClusterPlan) -> frozenset[str]:
    return frozenset(pool.provisioner for pool in plan.all_pools)


def _measures_writes(plan: ClusterPlan) -> bool:
    return plan.observability is not None and plan.observability.write_latency is not None


def _spot_provisioners(plan: ClusterPlan) -> frozenset[str]:
    return frozenset(pool.provisioner for pool in plan.all_pools if pool.purchase == "spot")


_SPOT = _Role(
    name="AWSServiceRoleForEC2Spot",
    service="spot.amazonaws.com",
    needed=lambda plan: bool(_spot_provisioners(plan)),
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
        needed=lambda plan: "managed-node-group" in _provisioners(plan),
        source="https://docs.aws.amazon.com/eks/latest/userguide/using-service-linked-roles-eks-nodegroups.html",
    ),
    _Role(
        name="AWSServiceRoleForAutoScaling",
        service="autoscaling.amazonaws.com",
        needed=lambda plan: bool(_AUTO_SCALED & _provisioners(plan)),
        source="https://docs.aws.amazon.com/autoscaling/ec2/userguide/autoscaling-service-linked-role.html",
    ),
    _SPOT,
    _Role(
        name="AWSServiceRoleForAmazonFSx",
        service="fsx.amazonaws.com",
        needed=lambda plan: bool(plan.lustre),
        source="https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html",
    ),
    _Role(
        # AWS's page names the role alone; the service is the one that HyperPod's other roles trust.
        name="AWSServiceRoleForSageMakerHyperPod",
        service="hyperpod.sagemaker.amazonaws.com",
        needed=lambda plan: plan.hyperpod is not None,
        source="https://docs.aws.amazon.com/sagemaker/latest/dg/security-iam-awsmanpol-AmazonSageMakerHyperPodServiceRolePolicy.html",
    ),
    _Role(
        name="AWSServiceRoleForRDS",
        service="rds.amazonaws.com",
        needed=lambda plan: plan.backend is not None and plan.backend.database is not None,
        source="https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/UsingWithRDS.IAM.ServiceLinkedRoles.html",
    ),
    _Role(
        name="AWSServiceRoleForECRPullThroughCache",
        service="pullthroughcache.ecr.amazonaws.com",
        needed=lambda plan: plan.image_cache is not None,
        source="https://docs.aws.amazon.com/AmazonECR/latest/userguide/slr-pullthroughcache.html",
    ),
    _Role(
        # Whether an objective over a metric of one's own needs it, AWS does not say.
        name="AWSServiceRoleForCloudWatchApplicationSignals",
        service="application-signals.cloudwatch.amazonaws.com",
        needed=_measures_writes,
        source="https://docs.aws.amazon.com/applicationsignals/latest/APIReference/API_StartDiscovery.html",
        command="aws application-signals start-discovery",
    ),
)


def _run(context: Context) -> Iterator[Finding]:
    for role in _ROLES:
        if role.needed(context.plan):
            yield _look(context, role)


def _look(context: Context, role: _Role) -> Finding:
    try:
        _ = context.account.ask(context.account.client("iam").get_role, RoleName=role.name)["Role"]
    except UnansweredError as error:
        if error.code != "NoSuchEntity":
            raise
    else:
        return Finding(check=ROLES.name, subject=role.name, state="pass", evidence="it is there")
    # Karpenter asks for Spot Instances with a role that may not make it; other services make
    # theirs, for a deployment that is allowed to.
    # Source: https://karpenter.sh/docs/getting-started/getting-started-with-karpenter/
    for_karpenter = role is _SPOT and "karpenter" in _spot_provisioners(context.plan)
    evidence = "not there; Karpenter cannot launch Spot Instances without it"
    if not for_karpenter:
        evidence = f"not there; {role.service} makes it, if who deploys may make such roles"
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
    actions=("iam:GetRole",),
    run=_run,
    resources={"iam:GetRole": "arn:{partition}:iam::{account}:role/aws-service-role/*"},
)
