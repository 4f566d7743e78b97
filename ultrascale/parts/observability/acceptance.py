"""Level `alarms` of an acceptance: the message of each alarm leaves CloudWatch.

Sources:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_SetAlarmState.html
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarmHistory.html
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ultrascale.accept.model import Check, Run
from ultrascale.errors import ClusterError
from ultrascale.findings import Finding, State
from ultrascale.operate.clock import wait
from ultrascale.parts.observability.model import Plan
from ultrascale.plan.model import ClusterPlan

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricAlarmTypeDef

    from ultrascale.account import Account

_MINUTES = 3
_EVERY = 10.0
_SENT = "Successfully executed action"


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of the alarms that notify somebody."""
    observability = plan.part(Plan)
    if observability is not None and plan.alarm_topic is not None:
        yield Check(
            level="alarms",
            name="alarm",
            subject=plan.alarm_topic.name,
            title="each alarm is set once, and its topic takes the message",
            run=partial(_alarms, observability, plan.alarm_topic.name),
            leaves="an alarm that is set, until CloudWatch judges it anew; each sends a message",
        )


def _alarms(observability: Plan, topic: str, run: Run) -> Iterator[Finding]:
    if run.account is None:
        yield _finding(topic, "not run", "AWS is not asked; --profile asks it")
        return
    cloudwatch = run.account.client("cloudwatch")
    found = run.account.ask_all(
        cloudwatch.describe_alarms,
        lambda page: page["MetricAlarms"],
        AlarmNamePrefix=f"{run.plan.name}-",
        AlarmTypes=["MetricAlarm"],
    )
    # Another cluster's name may begin with this one's, and its alarms have another topic.
    own = [alarm for alarm in found if _notifies(alarm.get("AlarmActions", ()), topic)]
    planned = [*(observability.alerts.alarms if observability.alerts is not None else ())]
    planned += observability.write_latency.alarms if observability.write_latency else ()
    names = {f"{run.plan.name}-{alarm.name}" for alarm in planned}
    if missing := sorted(names - {alarm["AlarmName"] for alarm in own}):
        yield _finding(topic, "differs", f"no such alarms notify it: {', '.join(missing)}")
    else:
        yield _finding(topic, "pass", f"all {len(names)} planned alarms notify it, {len(own)} do")
    for alarm in sorted(own, key=lambda alarm: alarm["AlarmName"]):
        yield _try(run, run.account, cloudwatch, alarm)


def _notifies(actions: Sequence[str], topic: str) -> bool:
    return bool(actions) and all(action.endswith(f":{topic}") for action in actions)


def _try(
    run: Run, account: "Account", cloudwatch: "CloudWatchClient", alarm: "MetricAlarmTypeDef"
) -> Finding:
    name, before = alarm["AlarmName"], alarm["StateValue"]
    if before == "ALARM" or not alarm.get("ActionsEnabled"):
        why = "it is in ALARM now" if before == "ALARM" else "its actions are switched off"
        return _finding(name, "not run", why)
    reason = f"ultrascale accept {run.id}: a trial of the message, nothing is wrong"
    sent: list[str] = []

    def look() -> str:
        history = account.ask(
            cloudwatch.describe_alarm_history,
            AlarmName=name,
            HistoryItemType="Action",
            StartDate=run.at,
        )
        sent[:] = [item.get("HistorySummary", "") for item in history.get("AlarmHistoryItems", ())]
        return "" if sent else f"{name}: CloudWatch has taken no action yet"

    try:
        account.ask(
            cloudwatch.set_alarm_state, AlarmName=name, StateValue="ALARM", StateReason=reason
        )
        wait(run.clock, look, minutes=_MINUTES, every=_EVERY, say=run.say)
    except ClusterError as error:
        return _finding(name, "failed", str(error))
    finally:
        account.ask(
            cloudwatch.set_alarm_state, AlarmName=name, StateValue=before, StateReason=reason
        )
    taken = any(line.startswith(_SENT) for line in sent)
    return _finding(name, "pass" if taken else "failed", sent[0])


def _finding(subject: str, state: State, evidence: str) -> Finding:
    return Finding(check="alarm", subject=subject, state=state, evidence=evidence)
