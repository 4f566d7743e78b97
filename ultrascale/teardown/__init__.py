"""Takes a cluster down in an order that leaves nothing running, and tells what stays."""

from ultrascale.teardown.clusters import eks_status
from ultrascale.teardown.ec2 import nodes_of_pools
from ultrascale.teardown.kept import Asked, refuse_unknown
from ultrascale.teardown.leftovers import Sweep, sweep
from ultrascale.teardown.model import Left, Step, StoppedError, Teardown, Thing
from ultrascale.teardown.plan import Findings, plan_teardown, read_findings
from ultrascale.teardown.runner import Clock, Outcome, destroy

__all__ = [
    "Asked",
    "Clock",
    "Findings",
    "Left",
    "Outcome",
    "Step",
    "StoppedError",
    "Sweep",
    "Teardown",
    "Thing",
    "destroy",
    "eks_status",
    "nodes_of_pools",
    "plan_teardown",
    "read_findings",
    "refuse_unknown",
    "sweep",
]
