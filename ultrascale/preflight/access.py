"""Check that the IAM roles of people exist, and that their access entries belong to the cluster.

EKS accepts only roles that exist. A missing role, or an ARN without the role's path, fails the
stack of access entries once the cluster is created; so does a role that already has an entry. An
entry holds the role's unique id: a role deleted and made anew under the same ARN is locked out.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
    https://docs.aws.amazon.com/singlesignon/latest/userguide/referencingpermissionsets.html
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from ultrascale.errors import UnansweredError, unless_gone
from ultrascale.plan.model import AccessPlan, ControlPlanePlan
from ultrascale.plan.stacks import stack_of
from ultrascale.preflight.model import Check, Context, Finding, Issue, finding, unknown

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
