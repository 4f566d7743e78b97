"""The EKS side of level `objects`: control plane, add-ons, node groups, alarms, log groups.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Cluster.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale.accept.model import Check, Run
from ultrascale.documents import look_up, objects, text
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding
from ultrascale.guard.sources import read_assembly
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.cluster import CLUSTER
from ultrascale.preflight.model import Context

if TYPE_CHECKING:
    from ultrascale.account import Account

_NAME, _FIX = "account", "deploy again, or take it into the file"
_GONE = "ResourceNotFoundException"
_ALARM, _LOGS = "AWS::CloudWatch::Alarm", "AWS::Logs::LogGroup"


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of the account; it has no findings where the account is not asked."""
    title = "the account has the control plane, add-ons, node groups, alarms and log groups"
    yield Check(level="objects", name=_NAME, subject=plan.name, title=title, run=_findings)


def _findings(run: Run) -> Iterator[Finding]:
    if run.account is None:
        return
    context = Context(plan=run.plan, needs=plan_needs(run.plan), account=run.account, at=run.at)
    for seen in CLUSTER.run(context):
        yield replace(seen, check=_NAME, state="pass" if seen.state == "pass" else "differs")
    yield _control_plane(run.account, run.plan)
    for name, issues in _addons(run.account, run.plan):
        yield finding(_NAME, f"add-on {name}", issues, fine="its version, active")
    yield from _node_groups(run.account, run.plan.name)
    yield from _of_stacks(run, run.account)


def _control_plane(account: "Account", plan: ClusterPlan) -> Finding:
    answer = account.ask(account.client("eks").describe_cluster, name=plan.name)["cluster"]
    wanted = plan.control_plane
    pairs = {
        "version": (answer.get("version"), wanted.version),
        "Auto Mode": (look_up(answer, "computeConfig", "enabled") is True, wanted.auto_mode),
        "tier": (text(answer, "controlPlaneScalingConfig", "tier") or "standard", wanted.tier),
        "support": (text(answer, "upgradePolicy", "supportType"), wanted.support_type),
    }
    issues = [
        _issue(f"{field} is {found} in the account, {ours} in the file")
        for field, (found, ours) in pairs.items()
        if found != ours
    ]
    fine = ", ".join(f"{field} {found}" for field, (found, _) in pairs.items())
    return finding(_NAME, "control plane", issues, fine=fine)


def _addons(account: "Account", plan: ClusterPlan) -> Iterator[tuple[str, list[Issue]]]:
    client = account.client("eks")
    for addon in (*plan.control_plane.node_addons, *plan.control_plane.workload_addons):
        try:
            answer = account.ask(client.describe_addon, clusterName=plan.name, addonName=addon.name)
        except UnansweredError as error:
            if error.code != _GONE:
                raise
            yield addon.name, [_issue("it is not there")]
            continue
        live, issues = answer["addon"], list[Issue]()
        if (version := live.get("addonVersion")) != addon.version:
            issues.append(
                _issue(f"version is {version} in the account, {addon.version} in the file")
            )
        if (status := live.get("status")) != "ACTIVE":
            issues.append(_issue(f"status is {status}"))
        yield addon.name, [*issues, *_health(live)]


def _node_groups(account: "Account", cluster: str) -> Iterator[Finding]:
    client = account.client("eks")
    for name in account.ask_all(
        client.list_nodegroups, lambda page: page["nodegroups"], clusterName=cluster
    ):
        answer = account.ask(client.describe_nodegroup, clusterName=cluster, nodegroupName=name)
        group = answer["nodegroup"]
        issues = [*_health(group)]
        if (status := group.get("status")) != "ACTIVE":
            issues.append(_issue(f"status is {status}"))
        yield finding(_NAME, f"node group {name}", issues, fine="active")


def _health(answer: object) -> Iterator[Issue]:
    for issue in objects(answer, "health", "issues"):
        yield _issue(f"health: {text(issue, 'code')}: {text(issue, 'message')}")


def _of_stacks(run: Run, account: "Account") -> Iterator[Finding]:
    """Yield whether alarms and log groups of the stacks are there, and alarms turned on."""
    ids: dict[str, list[str]] = {_ALARM: [], _LOGS: []}
    for stack in read_assembly(run.assembly):
        for resource in account.ask_all(
            account.client("cloudformation").list_stack_resources,
            lambda page: page["StackResourceSummaries"],
            StackName=stack,
        ):
            ids.get(resource["ResourceType"], []).append(resource.get("PhysicalResourceId", ""))
    # CloudFormation's names of alarms begin with the stack's.
    alarms = {
        alarm.get("AlarmName", ""): alarm
        for alarm in account.ask_all(
            account.client("cloudwatch").describe_alarms,
            lambda page: page["MetricAlarms"],
            AlarmNamePrefix=run.plan.name,
        )
    }
    off = [name for name in ids[_ALARM] if alarms.get(name, {}).get("ActionsEnabled") is False]
    groups = [
        group.get("logGroupName", "")
        for name in ids[_LOGS]
        for group in account.ask_all(
            account.client("logs").describe_log_groups,
            lambda page: page["logGroups"],
            logGroupNamePrefix=name,
        )
    ]
    yield _present("alarms", ids[_ALARM], alarms, off)
    yield _present("log groups", ids[_LOGS], groups, ())


def _present(what: str, wanted: list[str], seen: Iterable[str], off: Iterable[str]) -> Finding:
    issues = [_issue(f"{name} is not there") for name in sorted({*wanted} - {*seen})]
    issues += [_issue(f"actions of {name} are turned off") for name in off]
    return finding(_NAME, what, issues, fine=f"{len(wanted)} of the stacks are there")


def _issue(evidence: str) -> Issue:
    return Issue(state="differs", evidence=evidence, fix=_FIX)
