"""The EKS side of level `objects`: control plane, add-ons, node groups, alarms, log groups.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Cluster.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Addon.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_Nodegroup.html
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale.accept.model import Check, Run
from ultrascale.documents import Json, JsonObject, look_up, mapping, objects, text
from ultrascale.errors import unless_gone
from ultrascale.findings import Finding, Issue, finding
from ultrascale.guard.sources import read_assembly
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight.cluster import CLUSTER
from ultrascale.preflight.model import Context

if TYPE_CHECKING:
    from ultrascale.account import Account

_NAME = "account"
_ALARM, _LOGS = "AWS::CloudWatch::Alarm", "AWS::Logs::LogGroup"


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of the account; it has no findings where the account is not asked."""
    title = "the account has the control plane, add-ons, node groups, alarms and log groups"
    yield Check(level="objects", name=_NAME, subject=plan.name, title=title, run=_findings)


def _findings(run: Run) -> Iterator[Finding]:
    account, name, wanted = run.account, run.plan.name, run.plan.control_plane
    if account is None:
        return
    needs = plan_needs(run.plan)
    for seen in CLUSTER.run(Context(plan=run.plan, needs=needs, account=account, at=run.at)):
        yield replace(seen, check=_NAME, state="pass" if seen.state == "pass" else "differs")
    eks = account.client("eks")
    cluster = account.ask(eks.describe_cluster, name=name)["cluster"]
    pairs: dict[str, tuple[Json, Json]] = {
        "version": (cluster.get("version"), wanted.version),
        "Auto Mode": (look_up(cluster, "computeConfig", "enabled") is True, wanted.auto_mode),
        "tier": (text(cluster, "controlPlaneScalingConfig", "tier") or "standard", wanted.tier),
        "support": (text(cluster, "upgradePolicy", "supportType"), wanted.support_type),
    }
    yield _compared("control plane", pairs)
    for addon in (*wanted.node_addons, *wanted.workload_addons):
        live: JsonObject = {}
        with unless_gone("ResourceNotFoundException"):
            answer = account.ask(eks.describe_addon, clusterName=name, addonName=addon.name)
            live = mapping(answer, "addon")
        version = {"version": (live.get("addonVersion"), addon.version)}
        yield _compared(f"add-on {addon.name}", {**version, **_health(live)})
    for group in account.ask_all(
        eks.list_nodegroups, lambda page: page["nodegroups"], clusterName=name
    ):
        answer = account.ask(eks.describe_nodegroup, clusterName=name, nodegroupName=group)
        yield _compared(f"node group {group}", _health(mapping(answer, "nodegroup")))
    yield from _of_stacks(run, account)


def _health(live: JsonObject) -> Mapping[str, tuple[Json, Json]]:
    issues = [text(issue, "message") for issue in objects(live, "health", "issues")]
    return {"status": (live.get("status"), "ACTIVE"), "health": ("; ".join(issues), "")}


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
        alarm.get("AlarmName"): "on" if alarm.get("ActionsEnabled") else "off"
        for alarm in account.ask_all(
            account.client("cloudwatch").describe_alarms,
            lambda page: page["MetricAlarms"],
            AlarmNamePrefix=run.plan.name,
        )
    }
    yield _compared("alarms", {name: (alarms.get(name), "on") for name in ids[_ALARM]})
    groups = {
        group.get("logGroupName")
        for name in ids[_LOGS]
        for group in account.ask_all(
            account.client("logs").describe_log_groups,
            lambda page: page["logGroups"],
            logGroupNamePrefix=name,
        )
    }
    present = {name: ("there" if name in groups else None, "there") for name in ids[_LOGS]}
    yield _compared("log groups", present)


def _compared(subject: str, pairs: Mapping[str, tuple[Json, Json]]) -> Finding:
    """Return the finding of values in the account and in the file, by the field's name."""
    issues = [
        Issue(
            state="differs",
            evidence=f"{field} is {live or 'nothing'} in the account, {wanted or 'nothing'} wanted",
            fix="deploy again, or take it into the file",
        )
        for field, (live, wanted) in pairs.items()
        if live != wanted
    ]
    seen = [f"{field} {wanted}" for field, (_, wanted) in pairs.items() if wanted]
    return finding(_NAME, subject, issues, fine=", ".join(seen) or "the stacks have none")
