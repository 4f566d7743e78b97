"""Services that are called from within a VPC, by what a cluster deploys."""

from typing import Any

import pytest

from tests.support.existing_vpc import MIRROR, OWNER, VPC, existing_document
from tests.support.pools import (
    HYPERPOD_POOL,
    LUSTRE,
    ODCR,
    POOL,
    SYSTEM_POOL,
    as_json,
    loads_own,
    make_cluster,
    make_document,
    pool_document,
)
from ultrascale.catalog import endpoints as catalog
from ultrascale.catalog.endpoints import Feature
from ultrascale.errors import ConfigError
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.needs.control_plane import plan_control_plane_needs
from ultrascale.plan.needs.decisions import plan_decisions
from ultrascale.plan.network.endpoints import features_of

STATIC_POOL = pool_document(
    provisioner="karpenter", role="reserved", purchase=ODCR, nodes={"static": 4}
)
SELF_MANAGED = pool_document(provisioner="self-managed")
BACKEND = {"submits_to": ["train"], "database": {"version": "17"}}
FIXED_SYSTEM = SYSTEM_POOL | {"nodes": {"static": 2}}


def plan(**changes: Any) -> ClusterPlan:
    return plan_cluster(make_cluster(**changes))


PLAIN = plan(pools=[SYSTEM_POOL, POOL])


def test_a_cluster_of_eks_auto_mode_alone_needs_no_endpoint_of_sessions() -> None:
    """Its nodes take none, and owners of shared VPCs would be asked for what nobody calls."""
    auto = SYSTEM_POOL | {"provisioner": "auto-mode", "nodes": {"max": 4}}

    network = plan(pools=[auto]).network

    needed = {each.service for each in network.endpoints if each.required}
    assert not needed & {"ssm", "ssmmessages"}
    assert "session-manager" in features_of(PLAIN)


class TestOwnVpc:
    """Nodes of a private cluster join through endpoints, whatever becomes of the NAT gateway."""

    def test_nodes_can_join_pull_and_log_without_the_internet(self) -> None:
        needed = {"ec2", "ecr.api", "ecr.dkr", "sts", "logs", "eks", "eks-auth", "ssm"}

        assert needed <= {*PLAIN.network.interface_endpoints}
        assert PLAIN.network.gateway_endpoints == ("s3",)

    def test_an_endpoint_is_paid_for_once_and_where_something_calls_it(self) -> None:
        services = PLAIN.network.interface_endpoints
        assert len(services) == len({*services})
        # Interruptions are heard of without the internet.
        for changes, service in (
            ({"storage": {"lustre": [LUSTRE]}}, "fsx"),
            ({"karpenter": {"version": "1.15.2"}}, "sqs"),
            ({"pools": [SYSTEM_POOL, SELF_MANAGED]}, "sqs"),
        ):
            assert service in plan(**changes).network.interface_endpoints
            assert service not in services
        # A VPC of others with NAT needs none.
        theirs = plan_cluster(loads_own(as_json(existing_document())))
        assert theirs.network.interface_endpoints == ()


TRAIN_JOB = {"jobs": {"train": {"pool": "train", "durable": False}}}
LAUNCHED = {"karpenter": {"version": "1.15.2"}}
PARTS: dict[Feature, tuple[set[str], dict[str, Any]]] = {
    "karpenter": ({"sqs", "ssm", "ec2"}, LAUNCHED),
    "cluster-autoscaler": ({"autoscaling"}, {"pools": [SYSTEM_POOL, POOL]}),
    "termination-handler": ({"sqs"}, {"pools": [FIXED_SYSTEM, SELF_MANAGED]}),
    "fsx-csi": ({"fsx"}, {"storage": {"lustre": [LUSTRE]}}),
    "s3-output": ({"s3"}, {"storage": {"buckets": ["checkpoints"]}}),
    "cloudwatch": (
        {"logs", "monitoring"},
        {"observability": {"alarms": {"email": "a@example.com"}}},
    ),
    "hyperpod": ({"sagemaker.api", "logs"}, {"pools": [SYSTEM_POOL, HYPERPOD_POOL]}),
    "hyperpod-chart": ({"logs", "eks"}, {"pools": [SYSTEM_POOL, HYPERPOD_POOL]}),
    "node-pool-calendars": ({"ec2", "eks"}, LAUNCHED | {"pools": [SYSTEM_POOL, STATIC_POOL]}),
    "backend": ({"secretsmanager"}, {"backend": BACKEND, **TRAIN_JOB}),
}


@pytest.mark.parametrize("feature", PARTS)
def test_what_a_part_calls_is_needed_where_it_is_deployed_and_nowhere_else(
    feature: Feature,
) -> None:
    services, changes = PARTS[feature]
    deployed, without = plan(**changes), plan(pools=[FIXED_SYSTEM])
    assert feature in features_of(deployed)
    assert feature not in features_of(without)
    told = catalog.features()[feature].title
    reasons = {each.service: each.reasons for each in deployed.network.endpoints}
    assert all(any(why.startswith(told) for why in reasons[name]) for name in services)


def test_every_part_names_services_that_have_endpoints() -> None:
    assert [*catalog.features()] == [*catalog.FEATURES]
    for feature, row in catalog.features().items():
        named = [call.service for call in row.calls]
        assert len(named) == len({*named}), feature
        assert {*named} <= catalog.services().keys(), feature


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("ec2.us-east-1.amazonaws.com", "ec2"),
        ("111122223333.dkr.ecr.us-east-1.amazonaws.com", "ecr.dkr"),
        ("api.ecr.us-east-1.amazonaws.com", "ecr.api"),
        ("data.s3.us-east-1.amazonaws.com", "s3"),
        ("eks-auth.us-east-1.api.aws", "eks-auth"),
        ("ec2.us-west-2.amazonaws.com", None),
        ("iam.amazonaws.com", None),
        ("public.ecr.aws", None),
        ("ec2.us-east-1.amazonaws.com.evil.org", None),
    ],
)
def test_a_host_belongs_to_the_endpoint_that_answers_for_it(host: str, service: str | None) -> None:
    assert catalog.service_of_host(host, "us-east-1") == service


def test_an_action_belongs_to_the_endpoints_of_its_service() -> None:
    assert catalog.services_of_action("ecr:BatchGetImage") == ("ecr.api", "ecr.dkr")
    assert catalog.services_of_action("cloudwatch:PutMetricData") == ("monitoring",)
    assert catalog.services_of_action("iam:PassRole") == ()


PRESENT = [
    *("autoscaling", "ec2", "ec2messages", "ecr.api", "ecr.dkr", "eks", "eks-auth", "lambda"),
    *("s3", "ssm", "ssmmessages", "sts"),
]


def closed(**network: Any) -> ClusterPlan:
    """Return a plan in a VPC that exists and has no way out."""
    return plan_cluster(loads_own(as_json(existing_document(egress="none", **network))))


class TestWithoutWayOut:
    """A service without an endpoint is out of reach, and what calls it fails hours later."""

    def test_a_file_that_names_every_needed_endpoint_is_planned(self) -> None:
        network = closed(endpoints={"create": "none", "present": PRESENT}).network

        assert network.interface_endpoints == network.gateway_endpoints == ()
        assert {each.state for each in network.endpoints} == {"present"}

    @pytest.mark.parametrize("service", PRESENT)
    def test_each_one_that_is_missing_is_told_with_what_calls_it(self, service: str) -> None:
        present = [name for name in PRESENT if name != service]
        if service == "ec2messages":
            closed(endpoints={"present": present})  # newer agents do without
            return

        with pytest.raises(ConfigError) as refused:
            closed(endpoints={"present": present})

        (line,) = str(refused.value).splitlines()
        told = f"network.endpoints: no endpoint of {service}, and no other way there: "
        assert told in line
        assert any(row.title in line for row in catalog.features().values())

    def test_a_misspelt_service_is_told_by_its_right_name(self) -> None:
        present = [{"ecr.api": "ecr-api"}.get(name, name) for name in PRESENT]

        with pytest.raises(ConfigError, match=r"present has ecr-api: write ecr\.api"):
            closed(endpoints={"present": present})
        with pytest.raises(ConfigError, match=r"create has lambdas: write lambda"):
            closed(endpoints={"create": ["lambdas"], "present": [*{*PRESENT} - {"lambda"}]})

    def test_all_that_are_missing_are_told_at_once(self) -> None:
        with pytest.raises(ConfigError) as refused:
            closed()

        assert len(str(refused.value).splitlines()) == len(PRESENT) - 1

    def test_those_that_are_missing_are_made_where_the_file_says_so(self) -> None:
        network = closed(endpoints={"create": "missing", "present": ["s3", "kms", "sts"]}).network
        assert {*network.interface_endpoints} == {*PRESENT} - {"s3", "sts"}
        assert network.gateway_endpoints == ()
        # No route of others is changed for a gateway, and an owner makes what lies in a shared VPC.
        with pytest.raises(ConfigError, match=r"no endpoint of s3.*route tables make the gateway"):
            closed(endpoints={"create": "missing"})
        shared = {"id": VPC, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"], "owner": OWNER}
        with pytest.raises(ConfigError, match="let the VPC's owner make it, then add sts"):
            closed(vpc=shared)

    def test_a_vpc_of_ours_gets_all_that_are_needed(self) -> None:
        network = make_document()["network"] | {"egress": "none"}
        made = plan(
            network=network,
            images={"mirror": MIRROR.replace("us-east-1", "us-west-2")},
            backend=BACKEND,
            **TRAIN_JOB,
        ).network
        needed = {"lambda", "secretsmanager", *PLAIN.network.interface_endpoints}
        assert needed <= {*made.interface_endpoints}

    def test_a_vpc_of_ours_has_no_other_endpoints_than_the_file_lists(self) -> None:
        network = make_document()["network"] | {"endpoints": {"create": ["s3", "ec2"]}}

        built = plan(network=network).network

        assert (built.gateway_endpoints, built.interface_endpoints) == (("s3",), ("ec2",))


def test_the_plan_tells_what_follows_from_no_way_out() -> None:
    endpoints = {"present": [*PRESENT, "sqs"]}
    document = existing_document(egress="none", endpoints=endpoints) | LAUNCHED
    planned = plan_cluster(loads_own(as_json(document)))
    told = [each.choice for each in plan_decisions(planned, plan_control_plane_needs(planned))]
    assert any(line.startswith(f"{len(PRESENT) + 1} endpoints that parts") for line in told)
    assert any("instance profiles" in line for line in told)
