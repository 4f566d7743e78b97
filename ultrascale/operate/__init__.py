"""Operation of a running cluster: size of pools, renewal and repair of nodes, connections."""

from ultrascale.operate.clock import Clock
from ultrascale.operate.connection import Connection, connect
from ultrascale.operate.fleets import Old
from ultrascale.operate.pool_size import SizeChange
from ultrascale.operate.rolling import Pace, Rolled, RollPlan, roll
from ultrascale.operate.scaling import Scaling, scale
from ultrascale.operate.tunnel import refuse_missing_programs
from ultrascale.operate.veto import Veto, set_veto

__all__ = [
    "Clock",
    "Connection",
    "Old",
    "Pace",
    "RollPlan",
    "Rolled",
    "Scaling",
    "SizeChange",
    "Veto",
    "connect",
    "refuse_missing_programs",
    "roll",
    "scale",
    "set_veto",
]
