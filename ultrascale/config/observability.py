"""`observability`: metrics, dashboards, logs and alarms."""

from typing import Annotated

from pydantic import AfterValidator, Field

from ultrascale.config._base import Section, matching
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._parts import Every
from ultrascale.config._rules import rule
from ultrascale.config.pools import Pool

Email = Annotated[
    str,
    AfterValidator(
        matching(
            r"[^@\s]+@[^@\s]+\.[^@\s.]+", "not an e-mail address", "write it as name@example.com"
        )
    ),
]


class Alarms(Section):
    """Who hears of alarms."""

    email: Email


class WriteLatencySlo(Section):
    """Objective for the latency of Kubernetes API writes, which a canary in the VPC measures.

    Attributes:
        threshold_ms: A write within this time is a good one, in milliseconds.
        goal_percent: Share of good writes over the last seven days, in percent.
    """

    threshold_ms: Annotated[int, Field(ge=1, le=10_000)]
    goal_percent: Annotated[float, Field(ge=1, lt=100)]


class Observability(Section):
    """What is measured and shown.

    Attributes:
        dashboards: Whether dashboards are made.
        alarms: Who hears of alarms; None for no alarms.
        container_logs: Whether what containers and nodes log is sent to CloudWatch.
        hyperpod_addon: Whether HyperPod's observability add-on is installed, with a workspace of
            Amazon Managed Service for Prometheus. Its name and its settings are documented; no
            public source states its versions, so `kubernetes.addons` has to.
        write_latency_slo: Objective for API writes; None for no objective.
    """

    dashboards: bool = False
    alarms: Alarms | None = None
    container_logs: bool = True
    hyperpod_addon: bool = False
    write_latency_slo: WriteLatencySlo | None = None


@rule
def hyperpod_addon_has_nodes(observability: Observability, pools: Every[Pool]) -> Mistakes:
    if observability.hyperpod_addon and not any(pool.is_hyperpod for pool in pools):
        wrong = "no pool has provisioner hyperpod"
        yield refuse("hyperpod_addon", wrong, "leave it out, or add such a pool")
