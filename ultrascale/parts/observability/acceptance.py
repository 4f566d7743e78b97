"""Level `alarms` of an acceptance: the message of each alarm leaves CloudWatch.

Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_SetAlarmState.html
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from ultrascale.accept.model import Check, Run
from ultrascale.errors import ClusterError
from ultrascale.findings import Finding, State
from ultrascale.operate.clock import wait
from ultrascale.parts.observability.model import Plan
from ultrascale.plan.model import ClusterPlan

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.literals import StateValueType

    from ultrascale.account import Account

_MINUTES, _EVERY = 3, 10.0
_SENT = "Successfully executed action"


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of the alarms that notify somebody."""
    observability, topic = plan.part(Plan), plan.alarm_topic
    if observability is not None and topic is not None:
        alerts, latency = observability.alerts, observability.write_latency
        planned = (*(alerts.alarms if alerts else ()), *(latency.alarms if latency else ()))
        yield Check(
            level="alarms",
            name="alarm",
            subject=topic.name,
            title="each alarm is set once, and its topic takes the message",
            run=partial(_alarms, {f"{plan.name}-{alarm.name}" for alarm in planned}, topic.name),
            leaves="an alarm that is set, until CloudWatch judges it anew; each sends a message",
        )


def _alarms(planned: set[str], topic: str, run: Run) -> Iterator[Finding]:
    if (account := run.account) is None:
        yield _finding(topic, "not run", "AWS is not asked; --profile asks it")
        return
    found = account.ask_all(
        account.client("cloudwatch").describe_alarms,
        lambda page: page["MetricAlarms"],
        AlarmNamePrefix=f"{run.plan.name}-",
    )
    # Another cluster's name may begin with this one's, and its alarms have another topic.
    own = {
        alarm["AlarmName"]: alarm
        for alarm in found
        if [action.rpartition(":")[2] for action in alarm.get("AlarmActions", ())] == [topic]
    }
    if missing := sorted(planned - own.keys()):
        yield _finding(topic, "differs", f"no such alarms notify it: {', '.join(missing)}")
    for name, alarm in sorted(own.items()):
        if alarm["StateValue"] == "ALARM" or not alarm.get("ActionsEnabled"):
            why = "it is in ALARM now, or its actions are switched off"
            yield _finding(name, "not run", why)
        else:
            yield _try(run, account, name, alarm["StateValue"])


def _try(run: Run, account: "Account", name: str, before: "StateValueType") -> Finding:
    cloudwatch, sent = account.client("cloudwatch"), [""]

    def set_to(state: "StateValueType") -> None:
        reason = f"ultrascale accept {run.id}: a trial of the message, nothing is wrong"
        method = cloudwatch.set_alarm_state
        account.ask(method, AlarmName=name, StateValue=state, StateReason=reason)

    def look() -> str:
        method, kind = cloudwatch.describe_alarm_history, "Action"
        answer = account.ask(method, AlarmName=name, HistoryItemType=kind, StartDate=run.at)
        lines = (item.get("HistorySummary", "") for item in answer["AlarmHistoryItems"])
        sent[0] = next(lines, "")
        return "" if sent[0] else f"{name}: CloudWatch has taken no action yet"

    try:
        set_to("ALARM")
        wait(run.clock, look, minutes=_MINUTES, every=_EVERY, say=run.say)
    except ClusterError as error:
        return _finding(name, "failed", str(error))
    finally:
        set_to(before)
    return _finding(name, "pass" if sent[0].startswith(_SENT) else "failed", sent[0])


def _finding(subject: str, state: State, evidence: str) -> Finding:
    return Finding(check="alarm", subject=subject, state=state, evidence=evidence)
