"""Stacks that a deployment cannot update, and fixed names that are already in use.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html (status)
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale.core.table import all_parts
from ultrascale.errors import UnansweredError, unless_gone
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LayerId, planned_stacks, stack_names, stack_of
from ultrascale.preflight.model import Check, Context

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.type_defs import StackTypeDef as Stack

    from ultrascale.account import Account

_STACKS, _NAMES = "stacks", "names"
_DESCRIBE = "cloudformation:DescribeStacks"
# A further permission for the description of all stacks.
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
_LIST = "cloudformation:ListStacks"
_RESOURCES = "cloudformation:ListStackResources"
_REPOSITORIES = "ecr:DescribeRepositories"
_CLUSTER = "eks:DescribeCluster"
_LOG_GROUPS = "logs:DescribeLogGroups"
_ROLE = "iam:GetRole"
# Codes of the services for a name that does not exist.
_ABSENT = frozenset(
    {
        "NoSuchEntity",
        "RepositoryNotFoundException",
        "ResourceNotFound",
        "ResourceNotFoundException",
    }
)
# A change set was created but never executed: the next deployment creates its own.
_REVIEW = "REVIEW_IN_PROGRESS"
_NEVER_MADE = frozenset({"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"})
_HALF_UPDATED = frozenset({"UPDATE_ROLLBACK_FAILED"})
_PAUSED = frozenset({"UPDATE_FAILED"})


def _run_stacks(context: Context) -> Iterator[Finding]:
    planned = planned_stacks(context.plan)
    # A stack that has left the file is not deployed.
    own = [stack for stack in _own_stacks(context) if stack["StackName"] in planned]
    cluster = context.plan.name
    findings = (stack_finding(one, cluster, context.plan.region) for one in own)
    wrong = [finding for finding in findings if finding is not None]
    yield from wrong
    if not wrong:
        evidence = f"{len(own)} are there, and can be updated" if own else "none is there yet"
        yield Finding(check=_STACKS, subject=context.plan.name, state="pass", evidence=evidence)


def _own_stacks(context: Context) -> "list[Stack]":
    wanted = stack_names(context.plan.name, context.plan.all_pools)
    stacks = context.account.ask_all(
        context.account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    )
    return [stack for stack in stacks if stack["StackName"] in wanted]


def stack_finding(answer: "Stack", cluster: str, region: str) -> Finding | None:
    """Return the failure of a stack that cannot be updated or has another owner, or None."""
    name, status = answer["StackName"], answer["StackStatus"]
    if status != _REVIEW and answer.get("Description") != names.stack_description(cluster):
        whose = answer.get("Description", "no description")
        return Finding(
            check=_STACKS,
            subject=name,
            state="fail",
            evidence=f"another cluster or tool made this stack: {whose}; a deployment would "
            "replace its resources",
            fix="give the cluster, or the pool, another name",
        )
    of = f"--stack-name {name} --region {region}"
    fix = None
    if status in _NEVER_MADE:
        fix = f"`aws cloudformation delete-stack {of}`, and see what it keeps"
    elif status in _HALF_UPDATED:
        fix = f"`aws cloudformation continue-update-rollback {of}`"
    elif status in _PAUSED:
        fix = f"`aws cloudformation rollback-stack {of}`"
    elif status.endswith("_IN_PROGRESS") and status != _REVIEW:
        fix = "wait until it ends"
    elif status.endswith("_COMPLETE") or status == _REVIEW:
        issues = [*_remarks(answer, of)]
        return finding(_STACKS, name, issues, fine="") if issues else None
    why = answer.get("StackStatusReason")
    return Finding(
        check=_STACKS,
        subject=name,
        state="unknown" if fix is None else "fail",
        evidence=f"StackStatus is {status}" + (f": {why}" if why else ""),
        fix=fix or f"`aws cloudformation describe-stack-events {of}` says why",
    )


def _remarks(answer: "Stack", of: str) -> Iterator[Issue]:
    """Yield how somebody protected or deployed a stack by hand.

    Sources:
        https://github.com/aws/aws-cdk-cli (deploy-stack.ts, updateTerminationProtection)
        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-express-mode.html
    """
    if answer.get("EnableTerminationProtection"):
        yield Issue(
            state="warn",
            evidence="its termination protection is on, and `cdk deploy` turns it off",
            fix="after the deployment `aws cloudformation update-termination-protection "
            f"--enable-termination-protection {of}`",
        )
    if answer.get("DeploymentConfig", {}).get("Mode") == "EXPRESS":
        yield Issue(
            state="warn",
            evidence="it was last deployed in express mode, which ends before resources are ready "
            "and may leave a failed update as it is",
            fix="see that its resources are ready before you go on; `ultrascale deploy FILE` "
            "states the standard mode",
        )


class FixedName(Frozen):
    """A name that a template fixes."""

    kind: str  # Kind of the thing with that name, for the user
    name: str  # The name
    layers: tuple[LayerId, ...]  # Layers that may hold it
    # Returns CloudFormation's id of the thing with the name; None where the name is free.
    find: "Callable[[Account], str | None]"
    remove: str  # The command that removes the thing
    # Whether a stack can import the thing: the template has the name in plain text, and retains the
    # thing.
    importable: bool = False


class PartNames(Frozen):
    """Names that the templates of a part fix."""

    names: Callable[[ClusterPlan], Iterable[FixedName]]  # Returns those of a cluster
    resources: Mapping[str, str]  # ARN pattern of each IAM action that looks for one


@cache
def _names_of_parts() -> Sequence[PartNames]:
    modules = (part.module("preflight") for part in all_parts() if part.has_checks)
    return [module.NAMES for module in modules if hasattr(module, "NAMES")]


def _run_names(context: Context) -> Iterator[Finding]:
    live = {stack["StackName"] for stack in _own_stacks(context)}
    held: dict[str, frozenset[str]] = {}
    for fixed in fixed_names(context.plan):
        stacks = [stack_of(context.plan.name, layer) for layer in fixed.layers]
        try:
            id = _id_of(context, fixed)
            for stack in stacks if id is not None else ():
                if stack in live and stack not in held:
                    held[stack] = _physical_ids(context, stack)
        except UnansweredError as error:
            yield unknown(_NAMES, f"{fixed.kind} {fixed.name}", error)
            continue
        owner = next((stack for stack in stacks if id in held.get(stack, ())), None)
        yield name_finding(fixed, context, there=id is not None, owner=owner)


def name_finding(fixed: FixedName, context: Context, *, there: bool, owner: str | None) -> Finding:
    """Return the finding whether a deployment can use a name.

    Args:
        fixed: The name.
        context: The cluster.
        there: Whether something already has the name.
        owner: The stack of the cluster that created the thing; None for another creator.
    """
    subject = f"{fixed.kind} {fixed.name}"
    if not there or owner is not None:
        evidence = f"the stack {owner} has it" if owner else "the name is free"
        return Finding(check=_NAMES, subject=subject, state="pass", evidence=evidence)
    stack = stack_of(context.plan.name, fixed.layers[0])
    if fixed.importable and context.imports:
        evidence = f"it exists, outside of this cluster's stacks: {stack} imports it"
        return Finding(check=_NAMES, subject=subject, state="warn", evidence=evidence)
    take = "ultrascale deploy FILE --import-existing-resources"
    return Finding(
        check=_NAMES,
        subject=subject,
        state="fail",
        evidence=f"it exists, outside of this cluster's stacks: {stack} could not create it",
        fix=(f"take it over by `{take}`, " if fixed.importable else "")
        + f"remove it by `{fixed.remove}` if nobody needs it, or choose another name",
    )


def fixed_names(plan: ClusterPlan) -> Iterator[FixedName]:
    """Yield the names that outlive their stacks, or that others in the account may use."""
    region = f"--region {plan.region}"
    yield FixedName(
        kind="EKS cluster",
        name=plan.name,
        layers=("cluster",),
        find=partial(_eks_cluster, name=plan.name),
        remove=f"aws eks delete-cluster --name {plan.name} {region}",
    )
    logs: dict[str, LayerId] = {names.control_plane_logs(plan.name): "cluster"}
    for part in plan.parts:
        logs |= part.log_groups
    for group, layer in logs.items():
        yield FixedName(
            kind="log group",
            name=group,
            layers=(layer,),
            find=partial(_log_group, name=group),
            remove=f"aws logs delete-log-group --log-group-name {group} {region}",
            importable=layer == "cluster",
        )
    for role in filter(
        None,
        (plan.nodes.role, plan.nodes.karpenter.node_role_by_id if plan.nodes.karpenter else None),
    ):
        yield FixedName(
            kind="IAM role",
            name=role,
            layers=("karpenter", "nodes"),
            find=partial(_role_id, name=role),
            remove=f"aws iam delete-role --role-name {role}",
        )
    for own in _names_of_parts():
        yield from own.names(plan)
    for repository in plan.images.repositories:
        name = names.repository(plan.name, repository)
        yield FixedName(
            kind="ECR repository",
            name=name,
            layers=("registry",),
            find=partial(_repository, name=name),
            remove=f"aws ecr delete-repository --repository-name {name} --force {region}",
            importable=True,
        )


def _id_of(context: Context, fixed: FixedName) -> str | None:
    """Return CloudFormation's id of the thing with the name; None if the name is free."""
    with unless_gone(*_ABSENT):
        return fixed.find(context.account)
    return None


def _eks_cluster(account: "Account", name: str) -> str:
    account.ask(account.client("eks").describe_cluster, name=name)
    return name


def _log_group(account: "Account", name: str) -> str | None:
    groups = account.ask_all(
        account.client("logs").describe_log_groups,
        lambda page: page["logGroups"],
        logGroupNamePrefix=name,
    )
    return name if any(group["logGroupName"] == name for group in groups) else None


def _role_id(account: "Account", name: str) -> str:
    account.ask(account.client("iam").get_role, RoleName=name)
    return name


def _repository(account: "Account", name: str) -> str:
    account.ask(account.client("ecr").describe_repositories, repositoryNames=[name])
    return name


def _physical_ids(context: Context, stack: str) -> frozenset[str]:
    resources = context.account.ask_all(
        context.account.client("cloudformation").list_stack_resources,
        lambda page: page["StackResourceSummaries"],
        StackName=stack,
    )
    return frozenset(resource.get("PhysicalResourceId", "") for resource in resources)


STACKS = Check(
    name=_STACKS,
    title="stacks of the cluster can be updated",
    actions=(_DESCRIBE, _LIST),
    run=_run_stacks,
)


@cache
def names_check() -> Check:
    """Return the check of names that stacks use, including names of parts."""
    rights = {action: arn for own in _names_of_parts() for action, arn in own.resources.items()}
    return replace(
        NAMES, actions=(*NAMES.actions, *rights), resources={**NAMES.resources, **rights}
    )


NAMES = Check(
    name=_NAMES,
    title="names that the stacks use are free",
    actions=(
        _DESCRIBE,
        _LIST,
        _RESOURCES,
        _CLUSTER,
        _LOG_GROUPS,
        _REPOSITORIES,
        _ROLE,
    ),
    run=_run_names,
    resources={
        _RESOURCES: "arn:{partition}:cloudformation:{region}:{account}:stack/{cluster}-*/*",
        _CLUSTER: "arn:{partition}:eks:{region}:{account}:cluster/{cluster}",
        _REPOSITORIES: "arn:{partition}:ecr:{region}:{account}:repository/{cluster}/*",
        _ROLE: "arn:{partition}:iam::{account}:role/{cluster}-node-{region}",
    },
)
