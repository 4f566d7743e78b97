"""The node classes of Karpenter and EKS Auto Mode: a wrong field and no node ever launches."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from tests.support.auto_mode_crd import AUTO_MODE
from tests.support.cases import for_each
from tests.support.crd_schemas import CrdSet, karpenter_crds
from tests.support.node_pool_plans import (
    CELLS,
    G_TYPES,
    PROVISIONERS,
    Planned,
    planned,
    planned_cluster,
    planned_file,
)
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    pool_document,
)
from ultrascale.plan.model import NodeClassPlan
from ultrascale.plan.stacks import reserved_names
from ultrascale_k8s.node_pools import ec2_node_class_spec, node_class_manifest, node_class_spec

CPU: Mapping[str, Any] = {"instance_types": ["m7g.8xlarge"], "zones": None}
EFA: Mapping[str, Any] = {"purchase": CAPACITY_BLOCK, "instance_types": ["p5.48xlarge"]}
CLOSED = {
    "vpc_cidr": "10.0.0.0/16",
    "zones": ["us-west-2a", "us-west-2b", "us-west-2c"],
    "egress": "none",
}
POD_NETWORK = {
    "vpc_cidr": "10.0.0.0/16",
    "pod_cidrs": ["100.64.0.0/16"],
    "zones": ["us-west-2a", "us-west-2b", "us-west-2c"],
}
each_provisioner = pytest.mark.parametrize("provisioner", PROVISIONERS)
each_cell = pytest.mark.parametrize("cell", CELLS.values(), ids=list(CELLS))


@pytest.fixture(scope="module")
def karpenter() -> CrdSet:
    return karpenter_crds()


def spec(provisioner: str = "karpenter", **changes: Any) -> Mapping[str, Any]:
    return node_class_manifest(planned(provisioner, **changes).node_class)["spec"]  # pyright: ignore[reportReturnType]


def interfaces(provisioner: str, **changes: Any) -> list[Mapping[str, Any]]:
    found = spec(provisioner, **changes)
    return found.get("advancedNetworking", found).get("networkInterfaces", [])


def refused_by_auto_mode(plan: NodeClassPlan, **changes: object) -> list[str]:
    manifest = node_class_manifest(plan)
    return AUTO_MODE.validate({**manifest, "spec": {**node_class_spec(plan), **changes}})


@each_provisioner
def test_volumes_take_the_users_own_key_and_no_other_field_changes(
    provisioner: str, karpenter: CrdSet
) -> None:
    plain = planned(provisioner, **EFA).node_class
    key = "arn:aws:kms:us-west-2:444455556666:key/11111111-2222-4333-8444-555555555501"
    manifest = node_class_manifest(replace(plain, volume_key=key))
    spec: Any = manifest["spec"]
    crds = AUTO_MODE if provisioner == "auto-mode" else karpenter
    volume: dict[str, Any] = (
        spec["ephemeralStorage"]
        if provisioner == "auto-mode"
        else spec["blockDeviceMappings"][0]["ebs"]
    )

    assert crds.validate(manifest) == []
    assert volume.pop("kmsKeyID") == key
    assert manifest == node_class_manifest(plain)


class TestNamesOfNodes:
    """A node that calls itself what its role does not let it never joins."""

    def test_gate_and_role_come_together(self, karpenter: CrdSet) -> None:
        plain = planned("karpenter").node_class
        by_id = replace(plain, named_by_id=True, parallel_image_pull=False)
        config = yaml.safe_load(str(ec2_node_class_spec(by_id)["userData"]))

        assert karpenter.validate(node_class_manifest(by_id)) == []
        assert config["spec"]["featureGates"] == {"InstanceIdNodeName": True}
        assert "InstanceIdNodeName" not in str(node_class_manifest(plain))

    def test_large_fleets_of_karpenter_take_both(self) -> None:
        cluster = make_cluster(
            karpenter={"version": "1.15.2"},
            kubernetes={"instance_id_node_names": True},
            pools=[SYSTEM_POOL, pool_document(provisioner="karpenter")],
        )
        node_class = planned_cluster(cluster).node_class

        assert node_class.named_by_id
        assert node_class.role == "research-instance-us-west-2"


class TestValidity:
    @each_cell
    def test_karpenter_takes_the_class_of_every_cell(
        self, karpenter: CrdSet, cell: Mapping[str, Any]
    ) -> None:
        assert karpenter.validate(node_class_manifest(planned(**cell).node_class)) == []

    @each_cell
    def test_auto_mode_knows_every_field_of_the_class_of_every_cell(
        self, cell: Mapping[str, Any]
    ) -> None:
        assert (
            AUTO_MODE.validate(node_class_manifest(planned("auto-mode", **cell).node_class)) == []
        )

    def test_classes_of_the_karpenter_file_are_valid(self, karpenter: CrdSet) -> None:
        classes = planned_file("mixed-capacity.yaml").classes

        assert [karpenter.validate(node_class_manifest(each)) for each in classes] == [[]] * 4

    def test_classes_of_the_auto_mode_file_are_valid(self) -> None:
        classes = planned_file("auto-mode.yaml").classes

        assert [AUTO_MODE.validate(node_class_manifest(each)) for each in classes] == [[]] * 6

    @pytest.mark.parametrize(
        "wrong",
        [
            {"amiFamily": "AL2023"},
            {"userData": "…"},
            {"kubelet": {"maxPods": 110}},
            {"instanceStorePolicy": "RAID0"},
            {"metadataOptions": {"httpTokens": "required"}},
            {"tags": {"kubernetes.io/cluster/research": "owned"}},
            {"tags": {}},
            {"networkPolicy": "Allow"},
            {"ephemeralStorage": {"size": "100"}},
            {"capacityReservationSelectorTerms": [{"id": "cr-1", "tags": {"team": "ml"}}]},
            {"capacityReservationSelectorTerms": [{"tags": {"a": "b"}, "ownerID": "111122223333"}]},
            {"advancedNetworking": {"networkInterfaces": [{"networkCardIndex": 0}]}},
        ],
        ids=str,
    )
    def test_the_checker_of_auto_modes_class_refuses_what_the_guide_does_not_name(
        self, wrong: Mapping[str, object]
    ) -> None:
        plan = planned("auto-mode").node_class

        assert refused_by_auto_mode(plan, **wrong) != []

    def test_no_class_can_have_the_name_that_eks_keeps_for_its_own(self) -> None:
        assert "default" in reserved_names()


class TestInterfaces:
    """Karpenter counts a node's EFA interfaces from the list: one that is missing is never used."""

    @each_provisioner
    @pytest.mark.parametrize(
        ("instance_type", "efas"),
        [("p5.48xlarge", 32), ("p5en.48xlarge", 16), ("p6-b300.48xlarge", 16)],
    )
    def test_every_efa_card_has_its_interface(
        self, provisioner: str, instance_type: str, efas: int
    ) -> None:
        found = interfaces(provisioner, instance_types=[instance_type])

        assert [each["interfaceType"] for each in found] == ["interface"] + ["efa-only"] * efas
        assert (found[0]["networkCardIndex"], found[0]["deviceIndex"]) == (0, 0)

    @for_each(
        {
            "several types": {"instance_types": G_TYPES, "purchase": SPOT},
            "switched off": {"instance_types": ["p5.48xlarge"], "efa": "none"},
            "several zones": {"instance_types": ["g6e.12xlarge"], "zones": None},
            "no accelerators": {"instance_types": ["m8g.48xlarge"]},
            "one of them has EFA": {
                "instance_types": ["g6.xlarge", "g6.12xlarge"],
                "purchase": SPOT,
            },
        }
    )
    def test_karpenter_offers_no_efa_where_no_plugin_would_ever_bring_it(
        self, changes: Mapping[str, Any]
    ) -> None:
        # Else a pod that asks for it makes Karpenter pay for nodes that it never initializes.
        assert interfaces("karpenter", **changes) == [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
        ]

    def test_types_without_efa_need_no_list(self) -> None:
        assert interfaces("karpenter", instance_types=["g6.xlarge"]) == []

    def test_auto_mode_brings_the_plugin_along_and_lists_none(self) -> None:
        assert interfaces("auto-mode", instance_types=G_TYPES, purchase=SPOT) == []

    @each_provisioner
    def test_public_addresses_are_never_asked_for(self, provisioner: str) -> None:
        assert "associatePublicIPAddress" not in str(spec(provisioner, **EFA))

    def test_an_auto_mode_node_launches_with_the_addresses_of_all_its_pods(self) -> None:
        first, *others = interfaces("auto-mode", **EFA)

        assert first["secondaryIPv4PrefixCount"] == 2
        assert not [each for each in others if "secondaryIPv4PrefixCount" in each]

    @for_each(
        {
            "interfaces listed": (EFA, "secondaryIPv4Count': 31"),
            "none listed": (CPU, "ipv4PrefixSize': '32'"),
        }
    )
    def test_auto_mode_takes_single_addresses_where_subnets_have_no_blocks(
        self, changes: Mapping[str, Any], asked: str
    ) -> None:
        plan = replace(planned("auto-mode", **changes).node_class, ip_prefixes=0, pod_addresses=31)

        assert asked in str(node_class_spec(plan))
        assert "secondaryIPv4PrefixCount" not in str(node_class_spec(plan))
        assert refused_by_auto_mode(plan) == []

    def test_an_accelerated_karpenter_node_launches_with_one_prefix(self) -> None:
        assert spec(**EFA)["ipPrefixCount"] == 1

    @each_provisioner
    def test_cpu_nodes_get_their_addresses_as_pods_come(self, provisioner: str) -> None:
        found = spec(provisioner, **CPU)

        assert planned(provisioner, **CPU).node_class.ip_prefixes == 0
        assert "ipPrefixCount" not in found
        assert "advancedNetworking" not in found


class TestPlacement:
    @each_provisioner
    def test_nodes_are_in_the_private_subnets_of_the_cluster(self, provisioner: str) -> None:
        assert spec(provisioner)["subnetSelectorTerms"] == [
            {"tags": {"karpenter.sh/discovery": "research", "ultrascale.dev/subnet": "private"}}
        ]

    @pytest.mark.parametrize(
        ("changes", "kind"), [({}, "accelerated"), (CPU, "private")], ids=["gpu", "cpu"]
    )
    def test_accelerated_nodes_draw_from_the_pod_ranges_if_there_are_any(
        self, changes: Mapping[str, Any], kind: str
    ) -> None:
        ((term,),) = [spec(network=POD_NETWORK, **changes)["subnetSelectorTerms"]]

        assert term["tags"]["ultrascale.dev/subnet"] == kind

    @each_provisioner
    def test_efa_nodes_are_in_the_cluster_group_and_in_that_of_their_pool(
        self, provisioner: str
    ) -> None:
        assert spec(provisioner, **EFA)["securityGroupSelectorTerms"] == [
            {"tags": {"aws:eks:cluster-name": "research"}},
            {"tags": {"karpenter.sh/discovery": "research", "ultrascale.dev/pool": "train"}},
        ]

    @each_provisioner
    def test_others_are_in_the_cluster_group_alone(self, provisioner: str) -> None:
        groups = spec(provisioner, **CPU)["securityGroupSelectorTerms"]

        assert groups == [{"tags": {"aws:eks:cluster-name": "research"}}]

    @each_provisioner
    def test_a_placement_group_stands_as_a_placeholder_until_ec2_names_it(
        self, provisioner: str
    ) -> None:
        found = spec(provisioner, name="gpu-a", placement_group=True)

        assert found["placementGroupSelector"] == {"name": "${PLACEMENT_GROUP_GPU_A}"}

    @each_provisioner
    def test_efa_alone_brings_no_placement_group(self, provisioner: str) -> None:
        assert "placementGroupSelector" not in spec(provisioner, **EFA)


class TestReservation:
    @each_provisioner
    @pytest.mark.parametrize(
        ("cell", "term"),
        [
            ("odcr", {"id": "cr-0123456789abcdef0"}),
            ("odcr by tags", {"tags": {"team": "inference"}}),
            ("block", {"id": "cr-0123456789abcdef0"}),
            ("block by tags", {"tags": {"purpose": "pretraining"}}),
        ],
    )
    def test_the_class_selects_the_reservation_of_the_file(
        self, provisioner: str, cell: str, term: Mapping[str, object]
    ) -> None:
        assert spec(provisioner, **CELLS[cell])["capacityReservationSelectorTerms"] == [term]

    @each_provisioner
    @pytest.mark.parametrize("cell", ["on-demand", "spot", "spot with fallback"])
    def test_nothing_else_selects_one(self, provisioner: str, cell: str) -> None:
        # On EKS Auto Mode a term on any class turns open matching off for all.
        assert "capacityReservationSelectorTerms" not in spec(provisioner, **CELLS[cell])


class TestNode:
    def test_the_role_is_that_of_the_cluster_in_its_region(self) -> None:
        assert spec()["role"] == spec("auto-mode")["role"] == "research-node-us-west-2"

    def test_karpenter_takes_a_profile_that_is_there_where_iam_is_out_of_reach(
        self, karpenter: CrdSet
    ) -> None:
        closed = planned(network=CLOSED).node_class
        auto_mode = planned("auto-mode", network=CLOSED).node_class

        assert karpenter.validate(node_class_manifest(closed)) == []
        assert ec2_node_class_spec(closed)["instanceProfile"] == "research-node-us-west-2"
        assert "role" not in ec2_node_class_spec(closed)
        assert node_class_spec(auto_mode)["role"] == "research-node-us-west-2"

    def test_the_ami_is_pinned(self) -> None:
        ((term,),) = [spec()["amiSelectorTerms"]]

        assert term["alias"].startswith("al2023@v2")

    def test_pods_do_not_reach_the_credentials_of_the_node(self) -> None:
        assert spec()["metadataOptions"] == {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        }

    def test_the_root_volume_is_encrypted(self) -> None:
        (mapping,) = spec()["blockDeviceMappings"]

        assert mapping["ebs"]["encrypted"] is True
        assert mapping["ebs"]["volumeType"] == "gp3"
        assert mapping["ebs"]["volumeSize"] == "100Gi"

    def test_the_nvme_disks_become_one_volume_where_there_are_any(self) -> None:
        assert spec(**EFA)["instanceStorePolicy"] == "RAID0"
        assert "instanceStorePolicy" not in spec(**CPU)

    def test_the_kubelet_takes_no_more_pods_than_there_are_addresses(self) -> None:
        plans = planned()

        assert spec()["kubelet"] == {"maxPods": plans.pools[-1].max_pods}

    def test_large_images_are_pulled_in_parallel(self) -> None:
        config = yaml.safe_load(spec(**EFA)["userData"])

        assert config == {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {"featureGates": {"FastImagePull": True}},
        }
        assert "userData" not in spec(**CPU)

    def test_auto_mode_keeps_images_and_pods_on_the_nvme_disks(self) -> None:
        # It does so where the volume is smaller than the disks.
        assert spec("auto-mode", **EFA)["ephemeralStorage"]["size"] == "100Gi"

    @each_provisioner
    def test_tags_of_the_pool_reach_its_instances(self, provisioner: str) -> None:
        assert spec(provisioner, tags={"team": "ml"})["tags"] == {"team": "ml"}

    @each_provisioner
    def test_without_tags_the_field_is_absent(self, provisioner: str) -> None:
        # On EKS Auto Mode tags ask for more permissions.
        assert "tags" not in spec(provisioner, purchase=ON_DEMAND)


def test_each_kind_has_a_spec_of_its_own() -> None:
    plans: Planned = planned(purchase=ODCR)

    assert node_class_manifest(plans.node_class)["spec"] == ec2_node_class_spec(plans.node_class)
