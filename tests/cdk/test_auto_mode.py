"""EKS Auto Mode in the control plane: its switches, its rights, and what switching it on moves."""

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks

from tests.support.construct_stacks import make_stack, make_vpc, managed_policies, the
from tests.support.pools import POOL, SYSTEM_POOL, make_cluster
from ultrascale import config
from ultrascale.plan import plan_cluster
from ultrascale_constructs.control_plane import ControlPlane

CLUSTER = "AWS::EKS::Cluster"
# Source: the schema of AWS::EKS::Cluster, `createOnlyProperties`.
CREATE_ONLY = (
    ("Name",),
    ("RoleArn",),
    ("EncryptionConfig",),
    ("BootstrapSelfManagedAddons",),
    ("OutpostConfig",),
    ("AccessConfig", "BootstrapClusterCreatorAdminPermissions"),
    ("KubernetesNetworkConfig", "IpFamily"),
    ("KubernetesNetworkConfig", "ServiceIpv4Cidr"),
)
AUTO_POOLS = [
    pool | {"provisioner": "auto-mode", "nodes": {"max": 4}} for pool in (SYSTEM_POOL, POOL)
]


def stack_of(cluster: config.Cluster, *, tags_nodes: bool = False) -> cdk.Stack:
    """Return a stack that holds the control plane of ``cluster``."""
    plan = plan_cluster(cluster)
    stack = make_stack()
    ControlPlane(
        stack,
        "ControlPlane",
        name=plan.name,
        plan=plan.control_plane,
        vpc=make_vpc(stack),
        subnet_ids=["subnet-a", "subnet-b"],
        tags_nodes=tags_nodes,
    )
    return stack


@pytest.fixture(scope="module")
def node_groups() -> Template:
    return Template.from_stack(stack_of(make_cluster()))


@pytest.fixture(scope="module")
def auto_mode() -> Template:
    return Template.from_stack(stack_of(make_cluster(pools=AUTO_POOLS), tags_nodes=True))


def test_the_cluster_role_may_use_the_users_own_key_of_volumes() -> None:
    """It launches the nodes: without the right each one ends at its launch."""
    key = "arn:aws:kms:us-west-2:444455556666:key/11111111-2222-4333-8444-555555555501"
    stack = stack_of(make_cluster(pools=AUTO_POOLS, keys={"volumes": key}))
    policies = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()

    (document,) = (each["Properties"]["PolicyDocument"] for each in policies)
    assert {each["Resource"] for each in document["Statement"]} == {key}
    assert "kms:CreateGrant" in document["Statement"][1]["Action"]


def at(properties: Any, *path: str) -> Any:
    for key in path:
        properties = properties.get(key, {})
    return properties


class TestAutoMode:
    """EKS launches the nodes: on the day the cluster is made, or later."""

    @pytest.mark.parametrize("enabled", [False, True])
    def test_its_three_parts_are_on_together_or_off_together(
        self, node_groups: Template, auto_mode: Template, enabled: bool
    ) -> None:
        properties = the(auto_mode if enabled else node_groups, CLUSTER)

        # Pools of EKS's own would launch nodes beside ours, and take the pods that ours are for.
        pools: dict[str, list[str]] = {"NodePools": []} if enabled else {}
        assert properties["ComputeConfig"] == {"Enabled": enabled, **pools}
        assert properties["StorageConfig"]["BlockStorage"] == {"Enabled": enabled}
        network = properties["KubernetesNetworkConfig"]
        assert network["ElasticLoadBalancing"] == {"Enabled": enabled}

    def test_switching_it_on_replaces_nothing(
        self, node_groups: Template, auto_mode: Template
    ) -> None:
        before, after = the(node_groups, CLUSTER), the(auto_mode, CLUSTER)

        for path in CREATE_ONLY:
            assert at(before, *path) == at(after, *path), path
        kinds = {key: body["Type"] for key, body in node_groups.to_json()["Resources"].items()}
        assert kinds.items() <= {
            (key, body["Type"]) for key, body in auto_mode.to_json()["Resources"].items()
        }

    def test_its_role_may_what_eks_documents(self, auto_mode: Template) -> None:
        role = the(auto_mode, "AWS::IAM::Role")

        assert managed_policies(role) == {
            "AmazonEKSClusterPolicy",
            "AmazonEKSComputePolicy",
            "AmazonEKSBlockStoragePolicy",
            "AmazonEKSLoadBalancingPolicy",
            "AmazonEKSNetworkingPolicy",
        }
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "eks.amazonaws.com"}
        assert set(trust["Action"]) == {"sts:AssumeRole", "sts:TagSession"}


class TestTagsOfAutoModesNodes:
    """The managed policies refuse every launch, and every interface, with a tag of the user."""

    def test_they_need_a_right_to_launches_and_interfaces_of_this_cluster_alone(
        self, node_groups: Template, auto_mode: Template
    ) -> None:
        policy = the(auto_mode, "AWS::IAM::Policy")
        launch, interface = policy["PolicyDocument"]["Statement"]
        (role,) = auto_mode.find_resources("AWS::IAM::Role")

        # No other cluster has it.
        node_groups.resource_count_is("AWS::IAM::Policy", 0)
        for statement in (launch, interface):
            own = {"aws:RequestTag/eks:eks-cluster-name": "research"}
            assert statement["Condition"]["StringEquals"] == own
        for arn in (*launch["Resource"], interface["Resource"]):
            assert ":ec2:us-west-2:*:" in json.dumps(arn)
        actions = ("CreateFleet", "CreateLaunchTemplate", "RunInstances")
        assert set(launch["Action"]) == {f"ec2:{action}" for action in actions}
        tags = ("node-class-name", "node-pool-name")
        wanted = {f"aws:RequestTag/eks:kubernetes-{tag}" for tag in tags}
        assert set(launch["Condition"]["StringLike"]) == wanted
        assert interface["Action"] == "ec2:CreateNetworkInterface"
        tag = "aws:RequestTag/eks:kubernetes-cni-node-name"
        assert set(interface["Condition"]["StringLike"]) == {tag}
        assert policy["Roles"] == [{"Ref": role}]

    def test_every_finding_is_accepted_with_its_reason(self) -> None:
        # No cluster file of ours has such tags: nothing else would find an id that is not exact.
        stack = stack_of(make_cluster(pools=AUTO_POOLS), tags_nodes=True)
        app = stack.node.root
        assert isinstance(app, cdk.App)
        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))

        app.synth()
