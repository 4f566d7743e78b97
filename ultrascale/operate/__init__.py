"""Operation of a running cluster: resize a pool, renew its nodes, connect to a private endpoint."""

from ultrascale.operate.clock import Clock
from ultrascale.operate.connection import Connection, connect
from ultrascale.operate.fleets import Old
from ultrascale.operate.pool_size import SizeChange
from ultrascale.operate.rolling import Pace, Rolled, RollPlan, roll
from ultrascale.operate.scaling import Scaling, scale
from ultrascale.operate.tunnel import refuse_missing_programs

__all__ = [
    "Clock",
    "Connection",
    "Old",
    "Pace",
    "RollPlan",
    "Rolled",
    "Scaling",
    "SizeChange",
    "connect",
    "refuse_missing_programs",
    "roll",
    "scale",
]
