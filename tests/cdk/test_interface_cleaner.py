"""The function that deletes left interfaces: on large clusters each node would ask EC2 for all."""

import json
from typing import Any

from aws_cdk.assertions import Template

from tests.support.construct_stacks import make_stack, resources, the
from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale_constructs.interface_cleaner import InterfaceCleaner

SYSTEM = SYSTEM_POOL | {"instance_types": ["m7g.8xlarge"]}
NETWORK = {
    "vpc_cidr": "10.0.0.0/16",
    "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
    "zones": ["us-west-2a", "us-west-2b"],
}


def planned(nodes: int) -> ClusterPlan:
    pool = pool_document(provisioner="karpenter", nodes={"max": nodes})
    return plan_cluster(
        make_cluster(network=NETWORK, karpenter={"version": "1.15.2"}, pools=[SYSTEM, pool])
    )


def test_it_deletes_interfaces_of_its_cluster_each_hour_where_there_are_many_nodes() -> None:
    plan = planned(6_000).network.interface_cleaner
    assert plan is not None
    stack = make_stack()
    InterfaceCleaner(stack, "Cleaner", plan=plan, cluster_name="research")
    built = Template.from_stack(stack)
    schedule = the(built, "AWS::Scheduler::Schedule")
    statements: list[dict[str, Any]] = [
        statement
        for policy in resources(built, "AWS::IAM::Policy")
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]
    (delete,) = (each for each in statements if "Delete" in str(each["Action"]))

    assert planned(100).network.interface_cleaner is None
    assert delete["Action"] == "ec2:DeleteNetworkInterface"
    own = {"aws:ResourceTag/cluster.k8s.amazonaws.com/name": "research"}
    assert delete["Condition"] == {"StringEquals": own}
    assert schedule["ScheduleExpression"] == "rate(60 minutes)"
    assert json.loads(schedule["Target"]["Input"])["Cluster"] == "research"
