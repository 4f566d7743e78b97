"""The plan of a teardown: deleted and kept resources, before it asks."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.estate.account import VPC
from tests.support.estate.cluster import (
    ALL,
    BUCKET,
    FILE_SYSTEM,
    FSX_GROUP,
    LOGS,
    REPOSITORY,
    estate,
    ids,
    interface,
    kept,
    research,
    stack,
)
from tests.support.estate.doubles import FakeStack
from ultrascale.errors import QuestionError
from ultrascale.plan.model import ImageCachePlan, ImageCacheRule
from ultrascale.teardown.kept import Asked, refuse_unknown
from ultrascale.teardown.model import Teardown


def steps(teardown: Teardown) -> list[str]:
    return [step.name for step in teardown.steps]


def test_the_plan_names_every_id_that_goes_in_the_order_of_the_promise_and_deletes_nothing() -> (
    None
):
    cluster = estate()

    printed, teardown = ids(cluster.planned()), cluster.planned(ALL)

    assert {"training/bert", "burst", "burst-1", "other/web", "vol-1", "pv-1"} <= printed
    assert {"research-train", "research/train", "research-cluster", "secret-1"} <= printed
    # Jobs of another namespace are not ours to stop; what is in the cluster goes with it.
    assert not {"other/not-ours", "namespaces-1"} & printed
    assert steps(teardown) == [
        *("jobs", "node-pools", "node-groups", "load-balancers", "platform", "volumes", "add-ons"),
        *("cluster", "storage", "network"),
    ]
    assert (cluster.deleted, cluster.changes) == ([], 0)


def test_data_stays_unless_it_is_named_with_what_that_costs_and_blocks() -> None:
    teardown = estate().planned()
    data = {FILE_SYSTEM, BUCKET, REPOSITORY, LOGS, "key-1", "vol-2"}
    left = kept(teardown)

    assert data <= left.keys()
    assert not data & ids(teardown)
    # A file system that stays keeps its network.
    assert "network" not in steps(teardown)
    assert left["nat-0a1"].usd_per_hour == 0.045
    assert "us-east-1" in left["nat-0a1"].price
    assert left[FILE_SYSTEM].price.startswith("$252.00 per month")
    assert left["vol-2"].price.startswith("from $8.00 per month")
    assert left["vol-2"].usd_per_hour == pytest.approx(8 / 730)
    for id in (LOGS, REPOSITORY):
        assert "a deployment under the same name" in left[id].why
    assert left[LOGS].command.startswith("--delete-logs, or aws logs delete-log-group")
    assert left[REPOSITORY].command.startswith("--delete-storage trainer, or aws ecr")

    named = estate().planned(Asked(storage=frozenset({"data"})))
    assert BUCKET in ids(named)
    assert {FILE_SYSTEM, REPOSITORY, LOGS} <= kept(named).keys()
    system = estate().planned(Asked(storage=frozenset({"scratch"})))
    assert {FILE_SYSTEM, FSX_GROUP, "research-network"} <= ids(system)


def test_endpoints_of_a_network_that_stays_have_the_price_of_their_zones() -> None:
    held = [
        ("AWS::EC2::VPC", "Vpc", VPC, False),
        ("AWS::EC2::VPCEndpoint", "Ecr", "vpce-1", False),
        ("AWS::EC2::VPCEndpoint", "S3", "vpce-2", False),
    ]
    cluster = estate(network=stack("network", resources=held))
    interface = {"VpcEndpointType": "Interface", "SubnetIds": ["subnet-1", "subnet-2", "subnet-3"]}
    cluster.answers["ec2:DescribeVpcEndpoints"] = {
        "VpcEndpoints": [
            {"VpcEndpointId": "vpce-1", **interface},
            {"VpcEndpointId": "vpce-2", "VpcEndpointType": "Gateway"},
        ]
    }

    left = kept(cluster.planned())

    assert left["vpce-1"].usd_per_hour == pytest.approx(0.03)
    assert "vpce-2" not in left


def test_a_pool_that_has_left_the_file_or_its_node_group_goes_with_the_node_groups() -> None:
    former = FakeStack("research-old", [], imports=("research-scaling",))
    teardown = estate(former, stack("burst")).planned()
    (step,) = (step for step in teardown.steps if step.name == "node-groups")
    assert {"research-old", "research-burst"} <= {thing.id for thing in step.things}


def test_another_cluster_whose_name_begins_alike_is_left_alone() -> None:
    other = FakeStack("research-two-cluster", [], cluster="research-two")
    held = [("AWS::Lambda::Function", "Function1", "research-train-Function1-Abc", False)]
    cluster = estate(other, train=stack("train", resources=held))
    cluster.log_groups.add("/aws/lambda/research-train-addons-Function1-Abc")
    cluster.log_groups.add("/aws/lambda/research-train-Function1-Abc")

    teardown = cluster.planned()

    assert "research-two-cluster" not in ids(teardown)
    assert "/aws/lambda/research-train-Function1-Abc" in kept(teardown)
    assert "/aws/lambda/research-train-addons-Function1-Abc" not in kept(teardown)
    assert not {"/aws/eks/research-two/cluster", "research-two/other"} & kept(teardown).keys()


def test_a_pipeline_that_would_deploy_the_cluster_again_is_told() -> None:
    pipeline = {"research-pipeline", "research-pipeline-gate"}
    teardown = estate(*(FakeStack(name, []) for name in pipeline)).planned()
    assert not pipeline & ids(teardown)
    for name in pipeline:
        assert "deploys the cluster again" in kept(teardown)[name].why


def test_a_gateway_goes_while_its_controller_runs() -> None:
    cluster = estate()
    cluster.api.groups |= {"/apis/gateway.networking.k8s.io/v1"}
    path = "/apis/gateway.networking.k8s.io/v1/namespaces/other/gateways/entry"
    cluster.api.put(path, {"kind": "Gateway", "status": {"addresses": [{"value": "a.elb"}]}})
    (step,) = (each for each in cluster.planned().steps if each.name == "load-balancers")
    assert "Gateway other/entry (a.elb)" in {str(thing) for thing in step.things}


def test_what_stacks_have_left_that_are_gone_stays_on_the_list() -> None:
    cluster = estate(storage=stack("storage", status="DELETE_COMPLETE"))
    teardown = cluster.planned()
    assert {FILE_SYSTEM, FSX_GROUP, BUCKET} <= kept(teardown).keys()
    assert "network" not in steps(teardown)


def test_what_was_left_and_is_gone_since_is_not_told() -> None:
    cluster = estate(storage=stack("storage", status="DELETE_COMPLETE"))
    cluster.file_systems.clear()
    cluster.groups.clear()
    teardown = cluster.planned()
    assert FILE_SYSTEM not in kept(teardown)
    assert "network" in steps(teardown)


def test_interfaces_that_a_node_has_left_are_printed_and_those_in_use_are_not() -> None:
    cluster = estate()
    cluster.interfaces["eni-1"] = interface("eni-1")
    cluster.interfaces["eni-2"] = interface("eni-2", Status="in-use")
    cluster.interfaces["eni-3"] = interface("eni-3", Description="somebody else's")
    other = [{"Key": "cluster.k8s.amazonaws.com/name", "Value": "research-two"}]
    cluster.interfaces["eni-4"] = interface("eni-4", TagSet=other)
    assert ids(cluster.planned()) & {*cluster.interfaces} == {"eni-1"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"status": "UPDATE_IN_PROGRESS"}, "it is UPDATE_IN_PROGRESS; wait until that ends"),
        ({"protected": True}, "termination protection is on; .*-train --region us-west-2`"),
    ],
)
def test_a_stack_that_may_not_go_stops_everything_before_it_begins(
    changes: dict[str, object], says: str
) -> None:
    with pytest.raises(QuestionError, match=f"stack research-train: .*{says}"):
        estate(train=stack("train", **changes)).planned()


def test_a_stack_of_another_cluster_under_our_name_stops_everything() -> None:
    with pytest.raises(QuestionError, match="stack research-train: it is no stack of this"):
        estate(train=stack("train", cluster="research-tr")).planned()


def test_a_change_set_that_nobody_executed_goes_and_has_no_template() -> None:
    cluster = estate(train=stack("train", status="REVIEW_IN_PROGRESS"))
    template: Any = cluster.answers["cloudformation:GetTemplate"]

    def answer(asked: dict[str, Any]) -> Any:
        assert "research-train" not in asked["StackName"]
        return template(asked)

    cluster.answers["cloudformation:GetTemplate"] = answer

    assert "research-train" in ids(cluster.planned())


@pytest.mark.parametrize("name", ["dta", "research-dta", "fs-x"])
def test_storage_that_the_file_does_not_have_is_refused_with_what_it_has(name: str) -> None:
    with pytest.raises(QuestionError, match=f"got '{name}'; name one of data, scratch, trainer"):
        refuse_unknown(research(), Asked(storage=frozenset({name})))


@pytest.mark.parametrize("name", ["data", FILE_SYSTEM, FSX_GROUP, BUCKET, REPOSITORY])
def test_storage_can_be_named_by_its_id(name: str) -> None:
    refuse_unknown(research(), Asked(storage=frozenset({name})))


def test_security_groups_of_controllers_are_printed_and_those_of_others_are_not() -> None:
    cluster = estate()
    for id, tag, owner in (
        ("sg-1", "eks:eks-cluster-name", "research"),
        ("sg-2", "elbv2.k8s.aws/cluster", "research"),
        ("sg-3", "elbv2.k8s.aws/cluster", "research-two"),
        ("sg-4", "Name", "research"),
    ):
        tags = [{"Key": tag, "Value": owner}]
        cluster.groups[id] = {"GroupId": id, "VpcId": VPC, "GroupName": id, "Tags": tags}

    assert ids(cluster.planned()) & {*cluster.groups} == {"sg-1", "sg-2"}


def test_a_cluster_that_is_gone_needs_no_api_server() -> None:
    cluster = estate()
    cluster.cluster = None
    assert "jobs" not in steps(cluster.planned())


def test_a_cluster_of_our_name_that_no_stack_of_ours_made_is_not_touched() -> None:
    teardown = estate(cluster=stack("cluster", status="DELETE_COMPLETE")).planned()
    assert not {"training/bert", "burst", "research"} & ids(teardown)


def test_a_cached_image_is_not_taken_for_a_repository_of_the_same_name() -> None:
    cluster = estate()
    rule = ImageCacheRule(
        upstream="docker.io",
        url="registry-1.docker.io",
        kind="docker-hub",
        prefix="hub",
        secret=None,
    )
    cache = ImageCachePlan(registry="x", rules=(rule,))
    plan = research()
    images = replace(plan.images, repositories=("hub/base",), cache=cache)
    cluster.plan = replace(plan, images=images)
    cluster.repositories |= {"hub/base", "research/hub/base"}

    printed = ids(cluster.planned(Asked(storage=frozenset({"hub/base"}))))

    assert "research/hub/base" in printed
    assert "hub/base" not in printed
