"""People's roles and access entries, service-linked roles, and the permissions boundary.

EKS accepts only roles that exist. A missing role, or an ARN without the role's path, fails the
stack of access entries once the cluster is created; so does a role that already has an entry. An
entry holds the role's unique id: a role deleted and made anew under the same ARN is locked out.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
    https://docs.aws.amazon.com/singlesignon/latest/userguide/referencingpermissionsets.html
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from ultrascale.errors import UnansweredError, unless_gone
from ultrascale.findings import Finding, Issue, State, finding, unknown
from ultrascale.frozen import Frozen
from ultrascale.plan.model import AccessPlan, ClusterPlan, ControlPlanePlan, PoolPlan
from ultrascale.plan.stacks import stack_of
from ultrascale.preflight.model import Check, Context

_ADMINS, _ENTRIES = "admins", "access-entries"
_GET_ROLE, _LIST_ROLES = "iam:GetRole", "iam:ListRoles"
_LIST, _DESCRIBE = "eks:ListAccessEntries", "eks:DescribeAccessEntry"
_RESOURCES = "cloudformation:ListStackResources"
# Codes for a missing role at IAM, cluster at EKS, and stack at CloudFormation.
_NO_ROLE, _NO_CLUSTER, _NO_STACK = "NoSuchEntity", "ResourceNotFoundException", "ValidationError"
_SSO_PATH = "/aws-reserved/sso.amazonaws.com/"
# Number of hexadecimal digits that end the name of a permission set's role.
_SSO_SUFFIX = 16


def _roles(control_plane: ControlPlanePlan, access: AccessPlan) -> Mapping[str, str]:
    """Return the key in the file of each role with access, by the role's ARN."""
    admins = control_plane.admins
    return {
        entry.role: "kubernetes.admins" if entry.role in admins else "kubernetes.access"
        for entry in access.entries
    }


def _run_admins(context: Context) -> Iterator[Finding]:
    for arn, key in _roles(context.plan.control_plane, context.plan.access).items():
        if arn.split(":")[4] == context.account.id:
            yield _look_for_role(context, arn, key)
            continue
        yield Finding(
            check=_ADMINS,
            subject=arn,
            state="warn",
            evidence=f"of another account than {context.account.id}, whose roles nobody can see "
            "here",
            fix=f"run `aws iam get-role --role-name {_role_name(arn)}` with credentials of its own",
        )


def _look_for_role(context: Context, arn: str, key: str) -> Finding:
    try:
        there = context.account.ask(
            context.account.client("iam").get_role, RoleName=_role_name(arn)
        )
    except UnansweredError as error:
        if error.code != _NO_ROLE:
            return unknown(_ADMINS, arn, error)
        return finding(_ADMINS, arn, [_missing_role_issue(context, arn, key)], fine="")
    found = there["Role"]["Arn"]
    issues = []
    if found != arn:
        # IAM looks a role up by its name alone. Roles of IAM Identity Center have a path.
        evidence = (
            f"its ARN is {found} in the account: EKS would refuse an access entry with another ARN"
        )
        issues = [Issue(state="fail", evidence=evidence, fix=f"write {found} in {key}")]
    return finding(_ADMINS, arn, issues, fine="it is there")


def _missing_role_issue(context: Context, arn: str, key: str) -> Issue:
    evidence = "there is no such role: EKS would refuse its access entry"
    fix = "write one that `aws iam list-roles` lists"
    if _SSO_PATH in arn:
        try:
            others = [*_roles_of_permission_set(context, arn)]
        except UnansweredError as error:
            return Issue(state="fail", evidence=f"{evidence}; {error}", fix=fix)
        evidence += ". IAM Identity Center makes it anew, under another name, once its permission "
        evidence += "set is assigned again"
        fix = "assign the permission set in this account"
        if others:
            fix = f"write {' or '.join(others)} in {key}"
    return Issue(state="fail", evidence=evidence, fix=fix)


def _roles_of_permission_set(context: Context, arn: str) -> Iterator[str]:
    """Yield the present ARNs of roles with the same permission set."""
    begin = _role_name(arn)[:-_SSO_SUFFIX]
    roles = context.account.ask_all(
        context.account.client("iam").list_roles,
        lambda page: page["Roles"],
        PathPrefix=_SSO_PATH,
    )
    for role in roles:
        name = role["RoleName"]
        if name.startswith(begin) and len(name) == len(begin) + _SSO_SUFFIX:
            yield role["Arn"]


def _role_name(arn: str) -> str:
    return arn.rpartition("/")[2]


ADMINS = Check(
    name=_ADMINS,
    title="roles of administrators, and of others with access, exist",
    actions=(_GET_ROLE, _LIST_ROLES),
    run=_run_admins,
    resources={
        _GET_ROLE: "arn:{partition}:iam::{account}:role/*",
    },
)


def _run_entries(context: Context) -> Iterator[Finding]:
    cluster, roles = context.plan.name, _roles(context.plan.control_plane, context.plan.access)
    try:
        there = context.account.ask_all(
            context.account.client("eks").list_access_entries,
            lambda page: page["accessEntries"],
            clusterName=cluster,
        )
        known = {*there}
    except UnansweredError as error:
        if error.code != _NO_CLUSTER:
            raise
        evidence = "the cluster does not exist yet, and has no entry"
        yield Finding(check=_ENTRIES, subject=cluster, state="pass", evidence=evidence)
        return
    own = _roles_of_own_entries(context) if known & roles.keys() else frozenset[str]()
    for arn in roles:
        if arn in known:
            yield finding(
                _ENTRIES, arn, _entry_issues(context, arn, own), fine="its entry is the stack's own"
            )
    yield _unknown_entries_finding(
        cluster,
        sorted(arn for arn in known if arn not in roles and _is_unknown(cluster, arn)),
    )


def _entry_issues(context: Context, arn: str, own: frozenset[str]) -> Iterator[Issue]:
    cluster, region = context.plan.name, context.plan.region
    entry = f"--cluster-name {cluster} --principal-arn {arn} --region {region}"
    if arn not in own:
        yield Issue(
            state="fail",
            evidence="it has an access entry that this cluster's stacks did not make: EKS takes "
            "one of each role, and would answer ResourceInUseException",
            fix=f"delete it, if nobody else needs it: `aws eks delete-access-entry {entry}`",
        )
        return
    made, since = _creation_time(context, arn), _entry_time(context, arn)
    if made is not None and made > since:
        yield Issue(
            state="fail",
            evidence=f"the role was made anew at {made:%Y-%m-%d %H:%M} UTC, after its access "
            "entry: EKS knows it by its unique id, and keeps the new one out",
            fix="take it out of the file and deploy, then put it in again and deploy",
        )


def _creation_time(context: Context, arn: str) -> datetime | None:
    """Return the time at which a role was created; None if this account cannot read it."""
    if arn.split(":")[4] != context.account.id:
        return None
    iam = context.account.client("iam")
    with unless_gone(_NO_ROLE):
        return context.account.ask(iam.get_role, RoleName=_role_name(arn))["Role"]["CreateDate"]
    return None  # Another check reports a missing role


def _entry_time(context: Context, arn: str) -> datetime:
    answer = context.account.ask(
        context.account.client("eks").describe_access_entry,
        clusterName=context.plan.name,
        principalArn=arn,
    )
    return answer["accessEntry"]["createdAt"]


def _roles_of_own_entries(context: Context) -> frozenset[str]:
    """Return the roles whose access entries the cluster's own stack has made.

    CloudFormation names an entry by its role and its cluster, with a bar between them.
    """
    with unless_gone(_NO_STACK):
        resources = context.account.ask_all(
            context.account.client("cloudformation").list_stack_resources,
            lambda page: page["StackResourceSummaries"],
            StackName=stack_of(context.plan.name, "access"),
        )
        held = [resource.get("PhysicalResourceId", "") for resource in resources]
        return frozenset(id.partition("|")[0] for id in held)
    return frozenset()


def _is_unknown(cluster: str, arn: str) -> bool:
    """Return whether neither our stacks nor an AWS service account for an entry."""
    # CloudFormation begins the name of a role with its stack's name, which it may shorten.
    is_own = _role_name(arn).startswith(f"{cluster}-")
    return not is_own and ":role/aws-service-role/" not in arn


def _unknown_entries_finding(cluster: str, unknown_roles: list[str]) -> Finding:
    if not unknown_roles:
        evidence = "nobody has an access entry that neither the file nor its stacks state"
        return Finding(check=_ENTRIES, subject=cluster, state="pass", evidence=evidence)
    return Finding(
        check=_ENTRIES,
        subject=cluster,
        state="warn",
        evidence=f"others than the file states have access entries: {', '.join(unknown_roles)}",
        fix="`aws eks list-associated-access-policies` shows their rights; write them in "
        "kubernetes.access once their entries are deleted, or leave them to their owner",
    )


ACCESS_ENTRIES = Check(
    name=_ENTRIES,
    title="access entries of the cluster are those of the file",
    actions=(_LIST, _DESCRIBE, _RESOURCES, _GET_ROLE),
    run=_run_entries,
    resources={
        _LIST: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}",
        _DESCRIBE: "arn:{partition}:eks:{region}:{account}:access-entry/{cluster}/*",
        _RESOURCES: "arn:{partition}:cloudformation:{region}:{account}:stack/{cluster}-*/*",
        _GET_ROLE: "arn:{partition}:iam::{account}:role/*",
    },
)


# --- IAM: service-linked roles, and the permissions boundary --------------------------------------
# Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html


_GET_POLICY = "iam:GetPolicy"
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
            yield _look_for_linked_role(context, role)


def _look_for_linked_role(context: Context, role: _Role) -> Finding:
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
