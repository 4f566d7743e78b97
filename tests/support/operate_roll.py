"""A static NodePool of three nodes that have drifted, and the renewal of them."""

from collections.abc import Sequence
from datetime import timedelta

from tests.support.operate_cluster import (
    NODE_CLAIMS,
    NODES,
    FakeCluster,
    Karpenter,
    Time,
    make_pool,
)
from tests.support.pools import CAPACITY_BLOCK
from ultrascale.operate.fleets import NodePoolFleet, Old
from ultrascale.operate.node_pools import NodePool
from ultrascale.operate.rolling import Drain, Pace, Roll

OFFERS = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"}

KARPENTER_POOL = make_pool(
    {
        "role": "reserved",
        "provisioner": "karpenter",
        "purchase": CAPACITY_BLOCK,
        "nodes": {"static": 3},
    }
)


class Pool:
    """A static NodePool of three nodes that have drifted, and the renewal of them."""

    def __init__(self) -> None:
        self.stub = FakeCluster()
        self.karpenter = Karpenter(self.stub, "train", 3, OFFERS)
        self.time = Time(each=self.karpenter.tick)
        self.said: list[str] = []
        self.node_pool = NodePool(cluster=self.stub.connected(), name="train", pool=KARPENTER_POOL)

    def roll(
        self,
        *,
        batch: int = 1,
        evicts: bool = False,
        minutes: float | None = None,
        broken: int = 0,
        agreed: Sequence[Old] = (),
    ) -> list[str]:
        """Renew the nodes, and return those that are left."""
        cluster = self.node_pool.cluster
        fleet = NodePoolFleet(node_pools=[self.node_pool])
        until = None if minutes is None else self.time.now + timedelta(minutes=minutes)
        rolling = Roll(
            fleet,
            Drain(cluster=cluster, evicts_jobs=evicts, clock=self.time.clock),
            Pace(batch=batch, until=until, drain_minutes=10, join_minutes=10, broken=broken),
            self.time.clock,
            self.said.append,
        )
        return [each.id for each in rolling.run(agreed or fleet.old())]

    @property
    def deleted(self) -> list[str]:
        return [each.path.rpartition("/")[2] for each in self.stub.asked("DELETE", NODE_CLAIMS)]

    @property
    def cordoned(self) -> list[str]:
        patches = [each for each in self.stub.asked("PATCH", NODES)]
        return [each.path.rpartition("/")[2] for each in patches]
