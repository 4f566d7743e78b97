"""A cluster with NodePools, their NodeClaims and nodes, for the commands of day 2."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from tests.support.pools import POOL, SYSTEM_POOL, as_text, loads_own, make_document
from tests.support.stub_api_server import Object, Reply, Request, StubApiServer
from ultrascale.cluster_api.connection import Transport
from ultrascale.cluster_api.server import Cluster
from ultrascale.operate.clock import Clock
from ultrascale.plan import PoolPlan, plan_cluster

NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODES = "/api/v1/nodes"


def make_pool(changes: dict[str, Any]) -> PoolPlan:
    """Return the plan of the pool `train` in which ``changes`` replace keys."""
    document: dict[str, Any] = {"pools": [SYSTEM_POOL, POOL | changes]}
    if changes["provisioner"] == "karpenter":
        document["karpenter"] = {"version": "1.15.2"}
    return plan_cluster(loads_own(as_text(make_document(**document)))).pools[0]


@dataclass
class Time:
    """A clock that passes only while somebody sleeps."""

    now: datetime = datetime(2026, 12, 4, 12, tzinfo=UTC)  # The time
    # Is called at each sleep: what AWS or Kubernetes does meanwhile
    each: Callable[[], None] = lambda: None
    sleeps: int = field(default=0)  # How often somebody slept

    @property
    def clock(self) -> Clock:
        return Clock(now=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.sleeps += 1
        self.each()


class FakeCluster(StubApiServer):
    """The stub, which knows JSON patches, evictions and reviews of rights too."""

    def __init__(self) -> None:
        super().__init__()
        self.token = None
        self.groups |= {"/apis/karpenter.sh/v1"}
        self.lacks: set[str] = set()  # Rights that its user does not have, such as ``patch /nodes``
        # Whether a deletion is taken and not carried out
        self.on_delete: Callable[[str], bool] = lambda _path: False

    def connected(self) -> Cluster:
        """Return a client of this cluster, without a network."""
        return Cluster(cast("Transport", _Transport(self)), "arn:aws:eks:x:1:cluster/x")

    def _answer(self, request: Request) -> tuple[int, Object]:
        if request.method == "POST" and request.path.endswith("/eviction"):
            self.remove(request.path.removesuffix("/eviction"))
            return 201, {"kind": "Status", "status": "Success"}
        if request.path.endswith("/selfsubjectaccessreviews"):
            asked = request.body["spec"]["resourceAttributes"]
            right = f"{asked['verb']} {asked['group']}/{asked['resource']}"
            return 201, {"status": {"allowed": right not in self.lacks}}
        if request.headers.get("Content-Type") == "application/json-patch+json":
            return self._patched(request)
        if request.method == "DELETE" and self.on_delete(request.path):
            return 200, {"kind": "Status", "status": "Success"}
        return super()._answer(request)

    def _patched(self, request: Request) -> tuple[int, Object]:
        found: Any = deepcopy(self.find(request.path))
        if found is None:
            return 404, {"kind": "Status", "message": "not found", "code": 404}
        for operation in cast("list[Any]", request.body):
            parts = operation["path"].strip("/").split("/")
            *way, last = (part.replace("~1", "/") for part in parts)
            place = found
            for key in way:
                place = place.setdefault(key, {})
            match operation["op"]:
                case "test" if place.get(last) != operation["value"]:
                    return 422, {"kind": "Status", "message": "test failed", "reason": "Invalid"}
                case "remove":
                    del place[last]
                case "add" | "replace":
                    place[last] = operation["value"]
                case _:
                    pass
        self.put(request.path, found)
        return 200, found


class _Transport:
    """Transport of `kubernetes.client.ApiClient` without a network."""

    user_agent = ""

    def __init__(self, stub: StubApiServer) -> None:
        self._stub = stub

    def call_api(
        self,
        resource_path: str,
        method: str,
        *,
        query_params: list[tuple[str, str]],
        header_params: dict[str, str],
        body: Any,
        **_: object,
    ) -> Any:
        import json

        from kubernetes.client.exceptions import ApiException

        request = Request(method, resource_path, dict(query_params), header_params, body)
        reply: Reply = self._stub.respond(request)
        answer = json.dumps(reply.answer)
        if reply.status >= 300:
            error: Any = ApiException(status=reply.status)
            error.body = answer
            raise error
        return SimpleNamespace(data=answer.encode())


def put_node(
    stub: StubApiServer, pool: str, number: int, offers: Mapping[str, str], *, drifted: bool = False
) -> None:
    """Store a NodeClaim of a NodePool, and its node, which takes work and goes with it."""
    labels = {"karpenter.sh/nodepool": pool}
    name = f"{pool}-{number}"
    conditions = [{"type": "Drifted", "status": "True"}] if drifted else []
    claim = stub.put(
        f"{NODE_CLAIMS}/{name}",
        {
            "metadata": {"labels": labels, "creationTimestamp": f"2026-12-01T00:{number:02}:00Z"},
            "status": {
                "nodeName": f"{name}-node",
                "conditions": [{"type": "Initialized", "status": "True"}, *conditions],
            },
        },
    )
    owner = {"kind": "NodeClaim", "uid": claim["metadata"]["uid"]}
    stub.put(
        f"{NODES}/{name}-node",
        {
            "metadata": {"labels": labels, "ownerReferences": [owner]},
            "spec": {"taints": []},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "allocatable": dict(offers),
            },
        },
    )


def put_pod(stub: StubApiServer, name: str, node: str, *, protected: bool = False) -> str:
    """Store a pod of a job on a node, and return its path."""
    annotations = {"karpenter.sh/do-not-disrupt": "true"} if protected else {}
    path = f"/api/v1/namespaces/training/pods/{name}"
    metadata = {"labels": {"ultrascale.dev/job": name}, "annotations": annotations}
    stub.put(path, {"metadata": metadata, "spec": {"nodeName": node}, "status": {}})
    return path


class Karpenter:
    """Keeps a static NodePool at its count: a successor comes at the look after a node has gone.

    Attributes:
        count: Nodes that it keeps.
        offers: What new nodes offer.
        launches: Whether there is capacity.
        most: Most NodeClaims that there were at a time.
    """

    def __init__(self, stub: FakeCluster, pool: str, count: int, offers: Mapping[str, str]) -> None:
        self._stub, self._pool, self.count, self.offers = stub, pool, count, offers
        self._next = count
        self.launches, self.most = True, count
        stub.put(f"{NODE_POOLS}/{pool}", {"spec": {"replicas": count}})
        for number in range(count):
            put_node(stub, pool, number, offers, drifted=True)

    @property
    def claims(self) -> list[str]:
        found = (path for path in self._stub.paths() if path.startswith(f"{NODE_CLAIMS}/"))
        return sorted(path.rpartition("/")[2] for path in found)

    def tick(self) -> None:
        while self.launches and len(self.claims) < self.count:
            put_node(self._stub, self._pool, self._next, self.offers)
            self._next += 1
        self.most = max(self.most, len(self.claims))
