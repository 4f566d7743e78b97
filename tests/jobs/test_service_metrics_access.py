"""Access to a service's metrics: the API server has no pod address, and must still reach them."""

from ipaddress import ip_network
from typing import Any

from tests.support.existing_vpc import existing_document
from tests.support.jobs import SERVICE, job_cluster, objects, prepared
from tests.support.model_servers import VLLM
from tests.support.pools import as_json, loads_own, make_cluster, pool_document
from ultrascale.plan.network.policies import control_plane_ranges
from ultrascale.plan.network.vpc import plan_network

GPUS = pool_document(instance_types=["g6e.12xlarge"])


def blocks(**job: Any) -> list[str]:
    """Return the ranges that the policies of a service let in."""
    policies = objects(prepared(job_cluster(GPUS), SERVICE | job), "NetworkPolicy")
    peers = [peer for each in policies for rule in each["spec"]["ingress"] for peer in rule["from"]]
    return [peer["ipBlock"]["cidr"] for peer in peers if "ipBlock" in peer]


def test_the_api_server_reaches_a_model_server_and_no_node_or_pod_does() -> None:
    network = plan_network(make_cluster())
    allowed = {ip_network(each) for each in blocks(**VLLM)}

    assert allowed == {subnet.cidr for subnet in network.of_kind("control-plane")}
    for subnet in network.subnets:
        if subnet.kind != "control-plane":
            assert not any(ip_network(subnet.cidr).overlaps(each) for each in allowed)


def test_of_another_program_nothing_is_read_and_nothing_opened() -> None:
    assert blocks() == []
    assert blocks(**VLLM, server="other") == []


def test_both_kinds_of_clients_are_let_in_at_the_port_of_the_service() -> None:
    job = SERVICE | VLLM | {"allow_from": ["web"], "port": 9000}
    (policy,) = objects(prepared(job_cluster(GPUS), job), "NetworkPolicy")

    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"port": 9000}]
    assert {key for peer in rule["from"] for key in peer} == {"namespaceSelector", "ipBlock"}


def test_in_a_vpc_that_exists_the_file_says_where_the_control_plane_is() -> None:
    network = loads_own(as_json(existing_document())).network

    assert control_plane_ranges(network) == ("10.20.0.0/26", "10.20.0.64/26")
