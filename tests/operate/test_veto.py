"""The veto of repair, on nodes that Karpenter launched and on others."""

from typing import Any

import pytest

from tests.support.operate_cluster import NODES, FakeCluster, put_node
from tests.support.pools import POOL, SYSTEM_POOL, make_cluster
from ultrascale.errors import QuestionError
from ultrascale.operate import restart_agent, set_veto
from ultrascale.plan import ClusterPlan, plan_cluster

OFFERS = {"nvidia.com/gpu": "8"}
DO_NOT_REPAIR = "karpenter.sh/do-not-repair"


def planned(version: str = "1.15.2", **changes: Any) -> ClusterPlan:
    pool = POOL | {"provisioner": "karpenter", "repair": "replace"} | changes
    return plan_cluster(make_cluster(pools=[SYSTEM_POOL, pool], karpenter={"version": version}))


@pytest.fixture
def stub() -> FakeCluster:
    found = FakeCluster()
    put_node(found, "train", 0, OFFERS)
    return found


def annotations(stub: FakeCluster) -> dict[str, str]:
    node: Any = stub.find(f"{NODES}/train-0-node")
    return node["metadata"].get("annotations", {})


def test_a_node_is_held_and_let_go_again(stub: FakeCluster) -> None:
    plan, api = planned(), stub.connected()
    held = set_veto(plan, api, "train-0-node", held=True)
    assert annotations(stub)[DO_NOT_REPAIR] == "true"
    freed = set_veto(plan, api, "train-0-node", held=False)
    assert DO_NOT_REPAIR not in annotations(stub)
    assert (held.pool, held.changed, freed.changed) == ("train", True, True)
    assert freed.repairs == "replace"


def test_other_annotations_of_the_node_stay(stub: FakeCluster) -> None:
    node: Any = stub.find(f"{NODES}/train-0-node")
    node["metadata"]["annotations"] = {"own": "1"}
    stub.put(f"{NODES}/train-0-node", node)
    set_veto(planned(), stub.connected(), "train-0-node", held=True)
    assert annotations(stub) == {"own": "1", DO_NOT_REPAIR: "true"}


def test_a_node_that_karpenter_did_not_launch_is_refused(stub: FakeCluster) -> None:
    put_node(stub, "another", 0, OFFERS)
    with pytest.raises(QuestionError, match="Karpenter alone heeds a veto"):
        set_veto(planned(), stub.connected(), "another-0-node", held=True)


def test_a_karpenter_that_heeds_no_veto_is_named(stub: FakeCluster) -> None:
    plan = planned("1.14.3", repair="none")
    with pytest.raises(QuestionError, match=r"heeds no veto before 1\.15\.0"):
        set_veto(plan, stub.connected(), "train-0-node", held=True)


def test_a_node_that_is_not_there_is_named(stub: FakeCluster) -> None:
    with pytest.raises(QuestionError, match="no node 'gone'"):
        set_veto(planned(), stub.connected(), "gone", held=True)


AGENT = {"app.kubernetes.io/name": "eks-node-monitoring-agent"}


def put_agent(stub: FakeCluster, name: str, on: str) -> str:
    path = f"/api/v1/namespaces/kube-system/pods/{name}"
    metadata = {"name": name, "namespace": "kube-system", "uid": name, "labels": AGENT}
    stub.put(path, {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": on}})
    return path


def test_a_false_verdict_ends_with_the_agents_pod_on_that_node_alone(stub: FakeCluster) -> None:
    own = put_agent(stub, "agent-1", "train-0-node")
    other = put_agent(stub, "agent-2", "train-1-node")
    restart_agent(stub.connected(), "train-0-node")
    assert stub.find(own) is None
    assert stub.find(other) is not None
    assert stub.find(f"{NODES}/train-0-node") is not None


def test_a_node_without_the_agent_is_told(stub: FakeCluster) -> None:
    with pytest.raises(QuestionError, match="no pod of the node monitoring agent runs"):
        restart_agent(stub.connected(), "train-0-node")
    with pytest.raises(QuestionError, match="no node 'gone'"):
        restart_agent(stub.connected(), "gone")
