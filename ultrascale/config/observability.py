"""`observability`: metrics, dashboards, logs and alarms."""

from typing import Annotated

from pydantic import Field

from ultrascale.config._base import Section
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._parts import Every
from ultrascale.config._rules import rule
from ultrascale.config._values import matching
from ultrascale.config.pools import Pool

Email = Annotated[
    str,
    # The form of HTML's `input type=email`, with two parts of a domain, and SMTP's lengths.
    # Sources: https://html.spec.whatwg.org/#valid-e-mail-address,
    # https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1
    matching(
        r"(?=.{1,254}$)[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
        r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
        r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+",
        "not an e-mail address",
        "write it as name@example.com",
    ),
]


class Alarms(Section):
    """Receiver of alarms."""

    email: Email
    """E-mail address that gets alarms, HyperPod's events and notices of ends that are near."""


class WriteLatencySlo(Section):
    """Objective for the latency of Kubernetes API writes, which a canary in the VPC measures."""

    threshold_ms: Annotated[int, Field(ge=1, le=10_000)]
    """Longest time of a good write, in milliseconds."""

    goal_percent: Annotated[float, Field(ge=1, lt=100)]
    """Share of good writes over the last seven days, in percent."""


class Observability(Section):
    """Metrics, dashboards, logs and alarms."""

    dashboards: bool = False
    """Make a CloudWatch dashboard of the nodes and the control plane."""

    alarms: Alarms | None = None
    """Receiver of alarms. Default: no alarms."""

    container_logs: bool = True
    """Send the logs of containers and nodes to CloudWatch."""

    hyperpod_addon: bool = False
    """Install HyperPod's observability add-on with a workspace of Amazon Managed Service for
    Prometheus; its version stands in `kubernetes.addons`.
    """

    write_latency_slo: WriteLatencySlo | None = None
    """Objective for writes to the API server, which a canary in the VPC measures.

    Default: no objective.
    """


@rule
def hyperpod_addon_has_nodes(observability: Observability, pools: Every[Pool]) -> Mistakes:
    if observability.hyperpod_addon and not any(pool.is_hyperpod for pool in pools):
        wrong = "no pool has provisioner hyperpod"
        yield refuse("hyperpod_addon", wrong, "leave it out, or add such a pool")
