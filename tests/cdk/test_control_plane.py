"""The EKS control plane: private, encrypted, logged, protected."""

from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from tests.support.construct_stacks import make_stack, make_vpc, managed_policies, resources, the
from tests.support.pools import SYSTEM_POOL, make_cluster
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale_constructs.control_plane import ControlPlane

CLUSTER = "AWS::EKS::Cluster"


def synthesize(**kubernetes: Any) -> Template:
    return synthesize_plan(plan_cluster(make_cluster(kubernetes=kubernetes)))


def scored(strategy: str, **accelerators: int) -> dict[str, Any]:
    weights = {"cpu": 1, "memory": 1, **accelerators}
    resources = [{"Name": name, "Weight": weight} for name, weight in weights.items()]
    return {"NodeResourcesFit": {"ScoringStrategy": {"Type": strategy, "Resources": resources}}}


def synthesize_plan(plan: ClusterPlan) -> Template:
    stack = make_stack()
    ControlPlane(
        stack,
        "ControlPlane",
        name=plan.name,
        plan=plan.control_plane,
        vpc=make_vpc(stack),
        subnet_ids=["subnet-a", "subnet-b"],
        tags_nodes=False,
    )
    return Template.from_stack(stack)


@pytest.fixture(scope="module")
def private() -> Template:
    return synthesize()


@pytest.fixture(scope="module")
def bent() -> Template:
    return synthesize(
        version="1.36",
        control_plane_tier="4xl",
        service_cidr="172.21.0.0/16",
        event_ttl="10m",
        endpoint={"public_cidrs": ["203.0.113.0/24", "198.51.100.0/24"]},
    )


class TestEndpoint:
    """An endpoint that is open to everyone is scanned within the hour."""

    def test_it_is_private_unless_the_file_names_networks(self, private: Template) -> None:
        private.has_resource_properties(
            CLUSTER,
            {
                "ResourcesVpcConfig": {
                    "EndpointPrivateAccess": True,
                    "EndpointPublicAccess": False,
                    "PublicAccessCidrs": Match.absent(),
                }
            },
        )

    def test_only_the_named_networks_reach_the_public_one(self, bent: Template) -> None:
        bent.has_resource_properties(
            CLUSTER,
            {
                "ResourcesVpcConfig": {
                    "EndpointPrivateAccess": True,
                    "EndpointPublicAccess": True,
                    "PublicAccessCidrs": ["203.0.113.0/24", "198.51.100.0/24"],
                }
            },
        )


class TestWhatTheFileChooses:
    """Keys of `kubernetes`."""

    @pytest.mark.parametrize(
        ("key", "default", "chosen"),
        [
            ("Version", "1.35", "1.36"),
            ("ControlPlaneScalingConfig", {"Tier": "standard"}, {"Tier": "tier-4xl"}),
            (
                "KubernetesNetworkConfig",
                {"ServiceIpv4Cidr": "172.20.0.0/16"},
                {"ServiceIpv4Cidr": "172.21.0.0/16"},
            ),
            ("KubeApiServerConfig", {"EventTtl": "60m"}, {"EventTtl": "10m"}),
        ],
    )
    def test_it_reaches_the_cluster(
        self, private: Template, bent: Template, key: str, default: object, chosen: object
    ) -> None:
        private.has_resource_properties(CLUSTER, {key: default})
        bent.has_resource_properties(CLUSTER, {key: chosen})

    def test_the_scheduler_is_told_its_defaults_too(self) -> None:
        """EKS keeps what a template no longer states: the last accelerator would pack for ever."""
        template = synthesize_plan(plan_cluster(make_cluster(pools=[SYSTEM_POOL])))

        template.has_resource_properties(CLUSTER, {"KubeSchedulerConfig": scored("LeastAllocated")})

    def test_whole_nodes_stay_free_for_jobs_that_need_them(self, private: Template) -> None:
        scoring = scored("MostAllocated", **{"aws.amazon.com/neuron": 10})

        private.has_resource_properties(CLUSTER, {"KubeSchedulerConfig": scoring})

    def test_the_cluster_has_the_name_that_everything_else_calls_it(
        self, private: Template
    ) -> None:
        private.has_resource_properties(CLUSTER, {"Name": "research"})


class TestSafety:
    """Settings that cannot be repaired after the cluster exists."""

    def test_it_is_protected_from_deletion(self, private: Template) -> None:
        private.has_resource_properties(CLUSTER, {"DeletionProtection": True})

    def test_all_five_logs_are_written(self, private: Template) -> None:
        enabled = the(private, CLUSTER)["Logging"]["ClusterLogging"]["EnabledTypes"]

        assert {item["Type"] for item in enabled} == {
            "api",
            "audit",
            "authenticator",
            "controllerManager",
            "scheduler",
        }

    def test_secrets_are_encrypted_with_a_key_of_its_own(self, private: Template) -> None:
        (key,) = private.find_resources("AWS::KMS::Key")

        assert the(private, CLUSTER)["EncryptionConfig"] == [
            {"Provider": {"KeyArn": {"Fn::GetAtt": [key, "Arn"]}}, "Resources": ["secrets"]}
        ]

    def test_access_goes_through_access_entries_alone(self, private: Template) -> None:
        private.has_resource_properties(
            CLUSTER,
            {
                "AccessConfig": {
                    "AuthenticationMode": "API",
                    "BootstrapClusterCreatorAdminPermissions": False,
                }
            },
        )

    def test_pinned_addons_meet_no_unpinned_ones(self, private: Template) -> None:
        private.has_resource_properties(CLUSTER, {"BootstrapSelfManagedAddons": False})

    def test_auto_mode_does_not_launch_nodes_beside_the_pools(self, private: Template) -> None:
        properties = the(private, CLUSTER)

        assert properties.get("ComputeConfig", {}).get("Enabled", False) is False
        private.resource_count_is("AWS::EKS::Nodegroup", 0)


def test_it_is_a_native_cluster_and_no_function_of_ours(private: Template) -> None:
    private.resource_count_is(CLUSTER, 1)
    private.resource_count_is("AWS::Lambda::Function", 0)
    assert not any(
        body["Type"].startswith("Custom::") for body in private.to_json()["Resources"].values()
    )


def test_its_interfaces_lie_in_subnets_of_their_own(private: Template) -> None:
    subnets = the(private, CLUSTER)["ResourcesVpcConfig"]["SubnetIds"]

    assert subnets == ["subnet-a", "subnet-b"]


def test_its_role_may_what_eks_documents_and_use_the_key(private: Template) -> None:
    roles = [body["Properties"] for body in resources(private, "AWS::IAM::Role")]

    assert [managed_policies(role) for role in roles] == [{"AmazonEKSClusterPolicy"}]


def test_logs_end_after_a_while_and_stay_when_the_cluster_goes(private: Template) -> None:
    (group,) = private.find_resources("AWS::Logs::LogGroup")
    (cluster,) = private.find_resources("AWS::EKS::Cluster").values()

    private.has_resource(
        "AWS::Logs::LogGroup",
        {
            "Properties": {"RetentionInDays": 90},
            "DeletionPolicy": "RetainExceptOnCreate",
            "UpdateReplacePolicy": "Retain",
        },
    )
    # EKS makes the group itself, and keeps it forever, if it comes first.
    assert group in cluster["DependsOn"]


def test_eks_never_upgrades_the_cluster_by_itself(private: Template) -> None:
    private.has_resource_properties(
        "AWS::EKS::Cluster", {"UpgradePolicy": {"SupportType": "EXTENDED"}}
    )
