"""The EKS control plane: private, encrypted, logged, protected."""

from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.construct_stacks import flat, make_stack, make_vpc, managed_policies, the
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


def test_it_is_private_encrypted_logged_and_protected(private: Template) -> None:
    (key,) = private.find_resources("AWS::KMS::Key")
    (role,) = private.find_resources("AWS::IAM::Role")
    properties = the(private, CLUSTER)

    # Whole nodes stay free for jobs that need them.
    scoring = scored("MostAllocated", **{"aws.amazon.com/neuron": 10})
    assert properties.pop("KubeSchedulerConfig") == scoring
    logs = properties.pop("Logging")["ClusterLogging"]["EnabledTypes"]
    kinds = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    assert [each["Type"] for each in logs] == [*kinds]
    assert properties["ResourcesVpcConfig"].pop("SecurityGroupIds")
    assert flat(properties) == {
        "Name": "research",
        "Version": "1.35",
        "RoleArn": {"Fn::GetAtt": [role, "Arn"]},
        "AccessConfig.AuthenticationMode": "API",
        "AccessConfig.BootstrapClusterCreatorAdminPermissions": False,
        "BootstrapSelfManagedAddons": False,  # Pinned add-ons meet no unpinned ones.
        # Auto Mode launches no nodes beside the pools.
        "ComputeConfig.Enabled": False,
        "StorageConfig.BlockStorage.Enabled": False,
        "KubernetesNetworkConfig.ElasticLoadBalancing.Enabled": False,
        "KubernetesNetworkConfig.IpFamily": "ipv4",
        "KubernetesNetworkConfig.ServiceIpv4Cidr": "172.20.0.0/16",
        "ControlPlaneScalingConfig.Tier": "standard",
        "DeletionProtection": True,
        "EncryptionConfig.0.Provider.KeyArn": {"Fn::GetAtt": [key, "Arn"]},
        "EncryptionConfig.0.Resources.0": "secrets",
        "KubeApiServerConfig.EventTtl": "60m",
        # An endpoint that is open to everyone is scanned within the hour.
        "ResourcesVpcConfig.EndpointPrivateAccess": True,
        "ResourcesVpcConfig.EndpointPublicAccess": False,
        "ResourcesVpcConfig.SubnetIds.0": "subnet-a",
        "ResourcesVpcConfig.SubnetIds.1": "subnet-b",
        "UpgradePolicy.SupportType": "EXTENDED",  # EKS never upgrades the cluster by itself.
    }
    assert managed_policies(the(private, "AWS::IAM::Role")) == {"AmazonEKSClusterPolicy"}
    private.resource_count_is("AWS::Lambda::Function", 0)


def test_the_file_opens_networks_and_chooses_version_size_and_ranges() -> None:
    bent = synthesize(
        version="1.36",
        control_plane_tier="4xl",
        service_cidr="172.21.0.0/16",
        event_ttl="10m",
        endpoint={"public_cidrs": ["203.0.113.0/24", "198.51.100.0/24"]},
    )

    bent.has_resource_properties(
        CLUSTER,
        {
            "Version": "1.36",
            "ControlPlaneScalingConfig": {"Tier": "tier-4xl"},
            "KubernetesNetworkConfig": {"ServiceIpv4Cidr": "172.21.0.0/16"},
            "KubeApiServerConfig": {"EventTtl": "10m"},
            "ResourcesVpcConfig": {
                "EndpointPrivateAccess": True,
                "EndpointPublicAccess": True,
                "PublicAccessCidrs": ["203.0.113.0/24", "198.51.100.0/24"],
            },
        },
    )


def test_the_scheduler_is_told_its_defaults_too() -> None:
    """EKS keeps what a template no longer states: the last accelerator would pack for ever."""
    template = synthesize_plan(plan_cluster(make_cluster(pools=[SYSTEM_POOL])))

    template.has_resource_properties(CLUSTER, {"KubeSchedulerConfig": scored("LeastAllocated")})


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
