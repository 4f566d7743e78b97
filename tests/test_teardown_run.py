"""A teardown that fails, is killed and goes on: what is paid for must end, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.account import ID, THROTTLED, Refusal, denied
from tests.stub_api_server import Refusal as ApiRefusal
from tests.teardown_cluster import (
    BUCKET,
    FILE_SYSTEM,
    FSX_GROUP,
    LOGS,
    REPOSITORY,
    claim,
    estate,
    instance,
    interface,
    research,
    stack,
)
from tests.teardown_doubles import FakeClock, FakeStack, KilledError
from tests.teardown_estate import Estate
from tests.test_teardown_plan import ALL, ids
from ultrascale.errors import UltrascaleError
from ultrascale.teardown import prices
from ultrascale.teardown.journal import Journal
from ultrascale.teardown.keeping import Asked
from ultrascale.teardown.model import StoppedError, Teardown
from ultrascale.teardown.sweep import sweep

# By what a request deletes: an object of Kubernetes is named without its namespace there.
ORDER = [
    "bert",
    "burst",
    "research-node-pools",
    "research-train",
    "web",
    "research-karpenter",
    "research-platform",
    "research-registry",
    "db",
    "research-addons",
    "research-storage",
    "research-system",
    "research-scaling",
    "research-node-addons",
    "research-access",
    "deletion protection",
    "research-cluster",
    LOGS,
    FILE_SYSTEM,
    BUCKET,
    REPOSITORY,
    FSX_GROUP,
    "research-network",
]


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: the tests write thousands of lines."""

    def sync(_: int) -> None:
        pass

    monkeypatch.setattr("os.fsync", sync)


NOTHING = Teardown(cluster="research", region="us-west-2", account=ID, steps=(), kept=())


def names(printed: set[str]) -> set[str]:
    """Return ids as requests name them."""
    return printed | {id.rpartition("/")[2] for id in printed} | {"deletion protection"}


def test_a_whole_cluster_goes_in_order_and_leaves_nothing(tmp_path: Path) -> None:
    cluster = estate()

    teardown = cluster.run(tmp_path, ALL)

    assert sorted(cluster.deleted, key=ORDER.index) == cluster.deleted
    assert set(cluster.deleted) == set(ORDER)
    found = sweep(cluster.account, research(), teardown)
    assert found.orphans == found.unknown == ()
    assert {each.thing.id for each in found.left} == {"key-1", "vol-2"}


def test_what_is_killed_at_any_request_goes_on_and_deletes_nothing_unprinted(
    tmp_path: Path,
) -> None:
    whole = estate().without_botocore()
    whole.run(tmp_path, ALL)

    for number in range(1, whole.changes + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        cluster = estate().without_botocore()
        cluster.kill_at = number
        printed = ids(cluster.planned(ALL))
        with pytest.raises(KilledError):
            cluster.run(folder, ALL)

        printed |= ids(cluster.planned(ALL))
        teardown = cluster.run(folder, ALL)

        assert set(cluster.deleted) == set(ORDER)
        assert set(cluster.deleted) <= names(printed)
        assert not cluster.instances
        assert sweep(cluster.account, research(), teardown).orphans == ()


# Whatever a run asks that changes something; the first answer is an error each time.
CHANGES = [
    "cloudformation:DeleteStack",
    "eks:UpdateClusterConfig",
    "fsx:DeleteFileSystem",
    "ecr:DeleteRepository",
    "ec2:DeleteSecurityGroup",
    "logs:DeleteLogGroup",
    "s3:DeleteObjects",
    "s3:DeleteBucket",
]


@pytest.mark.parametrize("action", CHANGES)
def test_a_throttle_ends_no_teardown(action: str, tmp_path: Path) -> None:
    cluster = estate().without_botocore()
    answer: Any = cluster.answers[action]
    throttles = iter([True, True])

    def throttled(asked: dict[str, Any]) -> Any:
        if next(throttles, False):
            raise THROTTLED
        return answer(asked)

    cluster.answers[action] = throttled

    cluster.run(tmp_path, ALL)

    assert set(cluster.deleted) == set(ORDER)


@pytest.mark.parametrize("action", CHANGES)
def test_a_refusal_stops_says_what_to_allow_and_the_next_run_goes_on(
    action: str, tmp_path: Path
) -> None:
    cluster = estate().without_botocore()
    answer = cluster.answers[action]
    cluster.answers[action] = denied(action)

    with pytest.raises(StoppedError, match=f"allow {action}, then run the command again"):
        cluster.run(tmp_path, ALL)

    cluster.answers[action] = answer
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


@pytest.mark.parametrize("kind", ["jobs", "nodepools", "services", "persistentvolumeclaims"])
def test_a_refusal_of_the_api_server_stops_and_the_next_run_goes_on(
    kind: str, tmp_path: Path
) -> None:
    cluster = estate().without_botocore()
    cluster.api.refuse("DELETE", f"/{kind}/", refusal := ApiRefusal(403, "may not delete"))

    with pytest.raises(StoppedError, match=r"may not delete; .*; mend that"):
        cluster.run(tmp_path, ALL)

    refusal.times = 0
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


@pytest.mark.parametrize("kind", ["jobs", "nodepools", "services", "persistentvolumeclaims"])
def test_an_api_server_that_fails_for_a_moment_ends_no_teardown(kind: str, tmp_path: Path) -> None:
    cluster = estate().without_botocore()
    cluster.api.refuse("DELETE", f"/{kind}/", ApiRefusal(500, times=2))

    cluster.run(tmp_path, ALL)

    assert set(cluster.deleted) == set(ORDER)


def test_a_stuck_network_interface_is_named_and_what_else_is_paid_for_goes(tmp_path: Path) -> None:
    held = [("AWS::EC2::SecurityGroup", "Group", "sg-9", False)]
    stuck = stack("train", resources=held, stuck=("Group", "resource sg-9 has a dependent object"))
    other = FakeStack("research-old", [], looks=9)
    cluster = estate(other, train=stuck)
    cluster.interfaces["eni-9"] = interface(
        "eni-9", Status="in-use", Description="ELB app/web", Groups=[{"GroupId": "sg-9"}]
    )

    with pytest.raises(StoppedError) as stopped:
        cluster.run(tmp_path)

    assert stopped.value.why == "AWS::EC2::SecurityGroup sg-9: resource sg-9 has a dependent object"
    assert "(eni-9 in-use: ELB app/web)" in stopped.value.fix
    assert cluster.stacks["research-old"].status == "DELETE_COMPLETE"
    assert "web" not in cluster.deleted
    (node,) = (
        each
        for each in sweep(cluster.account, research(), NOTHING).orphans
        if each.thing.kind == "AWS::EC2::Instance"
    )
    assert node.paid
    assert node.why == "it runs on"

    stuck.stuck = None
    cluster.interfaces.clear()
    cluster.run(tmp_path, ALL)
    assert set(ORDER) <= set(cluster.deleted)


@pytest.mark.parametrize(
    "fields",
    [
        {"Description": "Amazon EKS research-two"},
        {"Description": "VPC Endpoint Interface vpce-0f9"},
        {"Description": "AWS created network interface for fs-0f9"},
        {"Description": "aws-K8S-i-0f9", "Attachment": {"InstanceId": "i-0f9"}},
    ],
)
def test_a_vpc_that_others_are_in_keeps_its_gateways(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    cluster, clock = estate(), FakeClock()
    cluster.interfaces["eni-7"] = interface("eni-7", Status="in-use", **fields)
    begun = clock.time

    with pytest.raises(StoppedError, match=f"eni-7 in-use: {fields['Description']}"):
        cluster.run(tmp_path, ALL, clock)

    assert "research-network" not in cluster.deleted
    assert (clock.time - begun).total_seconds() < 3600


def test_interfaces_that_aws_gives_back_are_waited_for(tmp_path: Path) -> None:
    cluster = estate()
    nat = {"Description": "Interface for NAT Gateway nat-0a1"}
    cluster.interfaces["eni-6"] = interface("eni-6", Status="in-use", **nat)
    lambda_ = {"Description": "AWS Lambda VPC ENI-research-cluster-Kubectl"}
    cluster.interfaces["eni-7"] = interface("eni-7", Status="in-use", **lambda_)

    with pytest.raises(StoppedError, match="not gone after 90 minutes: it is in use") as stopped:
        cluster.run(tmp_path, ALL)

    assert "eni-7 in-use: AWS Lambda VPC ENI" in stopped.value.why
    assert "eni-6" not in stopped.value.why
    del cluster.interfaces["eni-7"]
    cluster.run(tmp_path, ALL)
    assert "research-network" in cluster.deleted


def test_the_first_cause_is_told_and_not_what_follows_from_it(tmp_path: Path) -> None:
    cluster = estate()
    train = cluster.stacks["research-train"]
    train.stuck = ("Group", "Nodegroup is in use")
    train.tell("Old", "AWS::IAM::Role", "old", "DELETE_FAILED", "of an earlier attempt")
    train.resources.append(("AWS::IAM::Role", "Role", "role-1", False))
    train.cancelled = "Role"

    with pytest.raises(StoppedError, match="Nodegroup is in use"):
        cluster.run(tmp_path)


def test_a_node_that_does_not_go_keeps_karpenter_alive_and_is_named(tmp_path: Path) -> None:
    cluster, clock = estate(), FakeClock()
    claim(cluster, "burst-2")
    begun = clock.time

    with pytest.raises(StoppedError, match="not gone after 120 minutes: 1 of its nodes") as stopped:
        cluster.run(tmp_path, clock=clock)

    assert "NodeClaim burst-2 (i-0b2 m7i.8xlarge)" in stopped.value.why
    assert "remove no finalizer" in stopped.value.fix
    assert (clock.time - begun).total_seconds() < 3 * 3600
    assert not {"research-node-pools", "research-karpenter"} & set(cluster.deleted)

    cluster.api.remove("/apis/karpenter.sh/v1/nodeclaims/burst-2")
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


def test_a_stack_that_was_changed_since_the_plan_was_printed_is_not_deleted(
    tmp_path: Path,
) -> None:
    cluster = estate()
    teardown = cluster.planned()
    cluster.stacks["research-train"].resources.append(("AWS::RDS::DBInstance", "Db", "db-1", False))

    with pytest.raises(StoppedError, match="it holds AWS::RDS::DBInstance db-1, too"):
        cluster.carry_out(teardown, tmp_path)

    assert "research-train" not in cluster.deleted


def test_a_stack_that_no_longer_keeps_what_the_plan_says_stays_is_not_deleted(
    tmp_path: Path,
) -> None:
    cluster = estate()
    teardown = cluster.planned()
    held = cluster.stacks["research-storage"].resources
    held[:] = [(type, logical, id, False) for type, logical, id, _ in held]

    with pytest.raises(StoppedError, match=f"no longer keeps .*{FSX_GROUP}"):
        cluster.carry_out(teardown, tmp_path)

    assert "research-storage" not in cluster.deleted


def test_a_job_of_the_same_name_that_came_later_is_not_deleted(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.planned()
    path = "/apis/batch/v1/namespaces/training/jobs/bert"
    cluster.api.remove(path)
    cluster.api.put(path, {"kind": "Job"})

    cluster.carry_out(teardown, tmp_path)

    assert "bert" not in cluster.deleted


def test_what_is_left_in_the_vpc_later_is_printed_before_it_goes(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.planned(ALL)
    cluster.interfaces["eni-1"] = interface("eni-1")

    with pytest.raises(StoppedError, match=r"eni-1 .*; run the command again"):
        cluster.carry_out(teardown, tmp_path)
    assert not {"eni-1", "research-network"} & set(cluster.deleted)

    cluster.run(tmp_path, ALL)
    assert cluster.deleted[-2:] == ["eni-1", "research-network"]


def test_an_export_that_another_stack_imports_is_told(tmp_path: Path) -> None:
    cluster = estate(FakeStack("theirs", [], imports=("research-scaling",), cluster="theirs"))

    with pytest.raises(StoppedError, match=r"stack research-scaling: .*in use by") as stopped:
        cluster.run(tmp_path)

    assert "delete the stacks that import it first" in stopped.value.fix


def test_the_protection_of_the_cluster_stays_until_everything_on_it_is_gone(
    tmp_path: Path,
) -> None:
    cluster = estate(addons=stack("addons", resources=[("a", "b", "c", False)], stuck=("b", "no")))

    with pytest.raises(StoppedError, match="stack research-addons"):
        cluster.run(tmp_path)

    assert cluster.cluster is not None
    assert cluster.cluster["deletionProtection"]


def test_an_object_that_s3_keeps_is_named(tmp_path: Path) -> None:
    cluster = estate()
    error = {"Key": "a", "Code": "AccessDenied", "Message": "legal hold"}
    cluster.answers["s3:DeleteObjects"] = {"Errors": [error]}

    with pytest.raises(StoppedError, match="S3 keeps a: AccessDenied: legal hold"):
        cluster.run(tmp_path, Asked(storage=frozenset({"data"})))


def test_what_the_sweep_may_not_ask_is_told_and_hides_nothing_else() -> None:
    cluster = estate()
    cluster.answers["ec2:DescribeVolumes"] = denied("ec2:DescribeVolumes")
    cluster.instances["i-9"] = instance("i-9", "", "p5.48xlarge", CapacityReservationId="cr-9")

    found = sweep(cluster.account, research(), NOTHING)

    assert any(each.startswith("ec2:DescribeVolumes: denied") for each in found.unknown)
    assert {"i-0a1", "i-9"} <= {each.thing.id for each in found.left}
    assert "it runs on, and holds cr-9" in {each.why for each in found.orphans}


def test_what_was_to_go_and_did_not_is_told_although_no_tag_tells_of_it(tmp_path: Path) -> None:
    cluster = estate()
    cluster.answers["ec2:DescribeVolumes"] = lambda asked: {
        "Volumes": [{"VolumeId": each} for each in asked.get("VolumeIds", []) if each == "vol-1"]
    }

    teardown = cluster.run(tmp_path, ALL)

    (volume,) = sweep(cluster.account, research(), teardown).orphans
    assert str(volume.thing) == "AWS::EC2::Volume vol-1 (other/db)"
    assert volume.paid


def test_what_controllers_and_services_left_is_told_with_what_removes_it() -> None:
    cluster = estate()
    balancer = f"arn:aws:elasticloadbalancing:us-west-2:{ID}:loadbalancer"
    arns = [f"{balancer}/net/k8s-web/0a1", f"{balancer}/classic"]
    cluster.answers["tag:GetResources"] = {
        "ResourceTagMappingList": [{"ResourceARN": each} for each in arns]
    }
    profile = {"InstanceProfileName": "research_1", "InstanceProfileId": "AIPA0123456789ABC"}
    cluster.answers["iam:ListInstanceProfiles"] = {
        "InstanceProfiles": [
            profile
            | {
                "Path": "/karpenter/us-west-2/research/1/",
                "Arn": f"arn:aws:iam::{ID}:instance-profile/research_1",
                "CreateDate": FakeClock().now(),
                "Roles": [],
            }
        ]
    }
    cluster.log_groups.add("/aws/containerinsights/research/performance")

    found = sweep(cluster.account, research(), NOTHING)

    commands = {each.thing.id: each.command for each in found.orphans}
    assert commands[arns[0]].startswith("aws elbv2 delete-load-balancer --load-balancer-arn")
    assert "elb delete-load-balancer --load-balancer-name classic" in commands[arns[1]]
    assert "delete-instance-profile --instance-profile-name research_1" in commands["research_1"]
    assert "/aws/containerinsights/research/performance" in commands
    assert FILE_SYSTEM in commands


def test_instances_are_told_first_whether_their_price_is_known_or_not() -> None:
    cluster = estate()
    cluster.instances["i-9"] = instance("i-9", "", "m7i.8xlarge")

    found = sweep(cluster.account, research(), NOTHING)

    assert {each.thing.id for each in found.left[:2]} == {"i-0a1", "i-9"}


def test_an_instance_has_its_price_where_the_catalog_has_one() -> None:
    words, usd = prices.of_instance("us-east-1", "p5.48xlarge")

    assert words == f"${usd:,.3f} per hour On-Demand"
    assert usd > 20
    elsewhere = f"${usd:,.3f} per hour On-Demand in us-east-1, here unknown"
    assert prices.of_instance("us-west-2", "p5.48xlarge") == (elsewhere, 0)


def test_each_request_stands_in_the_journal_before_it_is_sent(tmp_path: Path) -> None:
    cluster = estate()
    cluster.kill_at = 5
    with pytest.raises(KilledError):
        cluster.run(tmp_path)

    past = Journal.opened(tmp_path / "journal.jsonl", FakeClock()).past

    assert past[-1]["asks"] == "Service other/web"
    agreed = {each for line in past for each in line.get("agreed", [])}
    assert {line["asks"] for line in past if "asks" in line} <= agreed


def test_the_journal_of_another_cluster_is_refused(tmp_path: Path) -> None:
    cluster = estate()
    Journal.opened(tmp_path / "journal.jsonl", FakeClock()).write(run={"cluster": "other"})

    with pytest.raises(UltrascaleError, match="name another file by --journal"):
        cluster.run(tmp_path)

    assert cluster.deleted == []


def test_a_line_that_a_run_was_killed_at_keeps_nobody_from_going_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"gone": "a"}\n{"asks": "b')

    estate().run(tmp_path)

    assert Journal.opened(path, FakeClock()).past[0] == {"gone": "a"}


def hyperpod_estate() -> Estate:
    from ultrascale import plan

    file = Path(__file__).parent.parent / "clusters" / "hybrid-hyperpod.yaml"
    layers = ("hyperpod-chart", "hyperpod-groups", "governance", "teams", "hyperpod-metrics")
    cluster = Estate(
        plan.load(file),
        *(FakeStack(f"hybrid-hyperpod-{layer}", [], cluster="hybrid-hyperpod") for layer in layers),
    )
    cluster.cluster = None
    cluster.hyperpod = ["Updating", "Updating", "InService"]
    cluster.hyperpod_nodes = [["DeepHealthCheckInProgress"], ["Running"]]
    return cluster


def test_hyperpod_goes_after_its_governance_and_before_its_chart(tmp_path: Path) -> None:
    cluster = hyperpod_estate()

    cluster.run(tmp_path)

    assert [name.removeprefix("hybrid-hyperpod-") for name in cluster.deleted] == [
        "hyperpod-metrics",
        "teams",
        "governance",
        "hyperpod-groups",
        "hyperpod-chart",
    ]
    assert cluster.hyperpod_nodes == []


def test_a_deep_health_check_that_does_not_end_is_told(tmp_path: Path) -> None:
    cluster = hyperpod_estate()
    cluster.hyperpod_nodes = [["DeepHealthCheckInProgress"]] * 1000

    with pytest.raises(StoppedError, match="updates or checks its nodes"):
        cluster.run(tmp_path)

    assert "hybrid-hyperpod-hyperpod-groups" not in cluster.deleted


def test_an_account_that_cannot_be_asked_is_planned_nothing_of() -> None:
    cluster = estate()
    cluster.answers["cloudformation:ListStacks"] = Refusal("InternalFailure")

    with pytest.raises(UltrascaleError, match="cloudformation:ListStacks"):
        cluster.planned()
