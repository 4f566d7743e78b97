"""The stacks of the Trainium cluster, and what each may take down with it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Template

from tests.support.assembly import Assembly, stacks_before, synthesize
from tests.support.construct_stacks import cluster_of
from tests.support.pools import SYSTEM_POOL, as_text, make_cluster, make_document
from ultrascale.plan import plan_cluster
from ultrascale_stacks.cluster import AccessStack

LAYERS = (
    *("network", "cluster", "access", "node-addons", "scaling", "system", "addons"),
    *("storage", "registry", "images", "platform", "trn1"),
)


def test_each_lifecycle_has_a_stack_of_its_own_and_functions_are_in_none_of_the_clusters(
    trainium: Assembly,
) -> None:
    functions = {stack for stack, _ in trainium.resources("AWS::Lambda::Function")}

    assert (set(trainium.templates), functions) == (set(LAYERS), {"platform", "scaling"})


@pytest.mark.parametrize("layer", ["network", "cluster", "storage", "registry", "images"])
def test_a_failed_addon_or_pool_never_rolls_back_what_is_hard_to_replace(
    trainium: Assembly, layer: str
) -> None:
    fragile = {"access", "node-addons", "scaling", "system", "addons", "platform", "trn1"}

    assert not stacks_before(trainium, layer) & fragile


@pytest.mark.parametrize(
    ("kind", "nodes"), [("managed-node-group", {"min": 2, "max": 2}), ("auto-mode", {"max": 2})]
)
def test_the_least_cluster_has_no_stack_that_cloudformation_refuses_as_empty(
    tmp_path: Path, kind: str, nodes: Mapping[str, int]
) -> None:
    file = tmp_path / "least.yaml"
    pool = SYSTEM_POOL | {"instance_types": ["m7i.xlarge"], "provisioner": kind, "nodes": nodes}
    file.write_text(as_text(make_document(kubernetes=None, pools=[pool])))

    least = synthesize(file, tmp_path)

    empty = {name for name, template in least.templates.items() if not template.get("Resources")}
    assert empty == set()
    assert "access" not in least.templates


# As IAM Identity Center makes the role of a permission set.
SSO = "aws-reserved/sso.amazonaws.com/us-west-2/AWSReservedSSO_Research_0123456789abcdef"
VOLCANO = {"queueing": "volcano"}


def test_a_wrong_administrator_takes_nothing_down(trainium: Assembly) -> None:
    kinds = {body["Type"] for body in trainium.templates["access"]["Resources"].values()}

    assert kinds - {"AWS::CDK::Metadata"} == {"AWS::EKS::AccessEntry"}
    assert not any("access" in stacks_before(trainium, layer) for layer in LAYERS)


def entries(*admins: str) -> dict[str, str]:
    """Return the logical ids of the access entries of administrators, by their ARNs."""
    plan = plan_cluster(make_cluster(kubernetes={"admins": [*admins]}))
    template = Template.from_stack(AccessStack(cluster_of(plan), "Access"))
    found = template.find_resources("AWS::EKS::AccessEntry")
    return {body["Properties"]["PrincipalArn"]: key for key, body in found.items()}


@pytest.mark.parametrize(
    "others",
    [
        ("111122223333:role/Admin", "444455556666:role/Admin"),
        ("111122223333:role/x/y", "111122223333:role/x-y"),
        ("111122223333:role/x/y", "111122223333:role/xy"),
    ],
    ids=["one name in two accounts", "path or hyphen", "path or none"],
)
def test_administrators_with_names_alike_each_get_in_and_move_no_entry(
    others: tuple[str, ...],
) -> None:
    first, second = (f"arn:aws:iam::{other}" for other in others)
    both = entries(second, first)

    assert both.keys() == {first, second}
    assert both[first] == entries(first)[first]


def test_a_role_of_several_levels_has_one_entry() -> None:
    researchers = f"arn:aws:iam::111122223333:role/{SSO}"
    access = [
        {"role": researchers, "policy": "edit", "namespaces": ["training"]},
        {"role": researchers, "policy": "view"},
    ]
    plan = plan_cluster(make_cluster(kubernetes={"access": access}, scheduling=VOLCANO))

    template = Template.from_stack(AccessStack(cluster_of(plan), "Access"))

    (entry,) = template.find_resources("AWS::EKS::AccessEntry").values()
    policies = "arn:aws:eks::aws:cluster-access-policy/AmazonEKS"
    assert entry["Properties"] == {
        "ClusterName": "research",
        "PrincipalArn": researchers,
        "AccessPolicies": [
            {
                "PolicyArn": f"{policies}EditPolicy",
                "AccessScope": {"Type": "namespace", "Namespaces": ["training"]},
            },
            {"PolicyArn": f"{policies}ViewPolicy", "AccessScope": {"Type": "cluster"}},
        ],
        "KubernetesGroups": [
            "ultrascale:access",
            "ultrascale:access:ultrascale-jobs-edit:training",
            "ultrascale:access:ultrascale-jobs-view",
        ],
    }


def test_addons_are_there_before_nodes_and_controllers_after_them(trainium: Assembly) -> None:
    addons = {
        body["Properties"]["AddonName"]: stack
        for stack, body in trainium.resources("AWS::EKS::Addon")
    }

    assert addons == {
        "vpc-cni": "node-addons",
        "kube-proxy": "node-addons",
        "eks-pod-identity-agent": "node-addons",
        "coredns": "addons",
        "aws-ebs-csi-driver": "addons",
        "aws-fsx-csi-driver": "addons",
        "eks-node-monitoring-agent": "addons",
    }


class TestManifestsOfThePlatform:
    """Custom resources that apply the charts."""

    @staticmethod
    def applied(assembly: Assembly) -> dict[str, Mapping[str, Any]]:
        kind = "Custom::AWSCDK-EKS-KubernetesResource"
        resources = assembly.templates["platform"]["Resources"]
        return {key: body for key, body in resources.items() if body["Type"] == kind}

    def test_they_are_applied_one_after_the_other_and_after_access_is_given(
        self, trainium: Assembly
    ) -> None:
        resources = trainium.templates["platform"]["Resources"]
        (access,) = (k for k, b in resources.items() if b["Type"] == "AWS::EKS::AccessEntry")
        waiting = self.applied(trainium)
        done = {access}
        for _ in range(len(waiting)):
            (ready,) = (
                key for key, body in waiting.items() if set(body.get("DependsOn", [])) & done
            )
            done = {ready}
            del waiting[ready]

        assert not waiting

    def test_no_function_is_called_before_its_log_group_is_there(self, trainium: Assembly) -> None:
        # Lambda would make the group itself, and CloudFormation fail because it exists.
        resources = trainium.templates["platform"]["Resources"]
        groups = {key for key, body in resources.items() if body["Type"] == "AWS::Logs::LogGroup"}

        (first,) = (
            body
            for body in self.applied(trainium).values()
            if not set(body["DependsOn"]) & self.applied(trainium).keys()
        )

        assert len(groups) == 2
        assert groups <= set(first["DependsOn"])

    def test_every_chart_is_applied_and_what_holds_data_stays_when_it_leaves_the_template(
        self, trainium: Assembly
    ) -> None:
        kinds = ("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim")
        assert len(self.applied(trainium)) == len(trainium.charts)
        for name, body in self.applied(trainium).items():
            text = json.dumps(body["Properties"])
            assert (body["DeletionPolicy"] == "Retain") == any(
                f'\\"kind\\":\\"{kind}\\"' in text for kind in kinds
            )
            # Pruning is off, and the first apply adopts what was retained.
            assert "PruneLabel" not in body["Properties"]
            assert body["Properties"]["Overwrite"] is True
            # Each stays far below what an update can carry, without placeholders.
            assert len(text) < 100_000, name
            assert "${FSX_" not in text

    def test_dist_holds_placeholders_that_a_gitops_user_can_read_in_outputs(
        self, trainium: Assembly
    ) -> None:
        (volume,) = (d for d in trainium.documents if d["kind"] == "PersistentVolume")
        outputs = trainium.templates["storage"]["Outputs"]
        described = " ".join(output.get("Description", "") for output in outputs.values())

        assert volume["spec"]["csi"]["volumeHandle"] == "${FSX_TRAINING_ID}"
        for path in (trainium.folder / "dist").iterdir():
            assert "${Token[" not in path.read_text()
        for lustre in trainium.plan.storage.lustre:
            for placeholder in (lustre.file_system_id, lustre.dns_name, lustre.mount_name):
                assert placeholder in described


class TestExports:
    """CloudFormation refuses to take an export away before its last user is updated."""

    def test_every_subnet_is_exported_whether_a_pool_lies_in_it_or_not(
        self, trainium: Assembly
    ) -> None:
        outputs = trainium.templates["network"]["Outputs"].values()
        exported = {str(output["Value"]) for output in outputs if "Export" in output}
        subnets = {
            key
            for key, body in trainium.templates["network"]["Resources"].items()
            if body["Type"] == "AWS::EC2::Subnet"
        }

        assert len(subnets) == len(trainium.plan.network.subnets)
        assert {str({"Ref": key}) for key in subnets} <= exported
