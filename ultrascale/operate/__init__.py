"""Operation of a running cluster: size of pools, renewal and repair of nodes, connections."""

from ultrascale.operate.clock import Clock
from ultrascale.operate.connection import Connection, connect
from ultrascale.operate.fleets import Old
from ultrascale.operate.node_pools import Veto, restart_agent, set_veto
from ultrascale.operate.pool_size import Scaling, SizeChange, scale
from ultrascale.operate.rolling import Pace, Rolled, RollPlan, roll
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
    "Veto",
    "connect",
    "refuse_missing_programs",
    "restart_agent",
    "roll",
    "scale",
    "set_veto",
]
