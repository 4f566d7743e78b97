"""Takes a cluster down in an order that leaves nothing running, and lists what stays."""

from ultrascale.teardown.kept import Asked, refuse_unknown
from ultrascale.teardown.model import Left, Scope, Step, StoppedError, Teardown, Thing
from ultrascale.teardown.plan import Findings, plan_teardown, read_findings
from ultrascale.teardown.runner import Clock, Outcome, destroy
from ultrascale.teardown.survey import Sweep, survey, sweep

__all__ = [
    "Asked",
    "Clock",
    "Findings",
    "Left",
    "Outcome",
    "Scope",
    "Step",
    "StoppedError",
    "Sweep",
    "Teardown",
    "Thing",
    "destroy",
    "plan_teardown",
    "read_findings",
    "refuse_unknown",
    "survey",
    "sweep",
]
