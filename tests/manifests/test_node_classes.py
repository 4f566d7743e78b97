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
    planned,
    planned_cluster,
)
from tests.support.pools import (
    CAPACITY_BLOCK,
    ON_DEMAND,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    pool_document,
)
from ultrascale.plan.model import NodeClassPlan
from ultrascale_k8s.node_pools import ec2_node_class_spec, node_class_manifest, node_class_spec

CPU: Mapping[str, Any] = {"instance_types": ["m7g.8xlarge"], "zones": None}
EFA: Mapping[str, Any] = {"purchase": CAPACITY_BLOCK, "instance_types": ["p5.48xlarge"]}
ZONES = ["us-west-2a", "us-west-2b", "us-west-2c"]
CLOSED = {"vpc_cidr": "10.0.0.0/16", "zones": ZONES, "egress": "none"}
POD_NETWORK = {"vpc_cidr": "10.0.0.0/16", "pod_cidrs": ["100.64.0.0/16"], "zones": ZONES}
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

        assert (node_class.named_by_id, node_class.role) == (True, "research-instance-us-west-2")


class TestValidity:
    @each_cell
    def test_karpenter_takes_the_class_of_every_cell(
        self, karpenter: CrdSet, cell: Mapping[str, Any]
    ) -> None:
        assert karpenter.validate(node_class_manifest(planned(**cell).node_class)) == []

    @for_each({name: (cell,) for name, cell in CELLS.items()})
    def test_auto_mode_knows_every_field_of_the_class_of_every_cell(
        self, cell: Mapping[str, Any]
    ) -> None:
        plan = planned("auto-mode", **cell).node_class
        assert AUTO_MODE.validate(node_class_manifest(plan)) == []

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
        assert "associatePublicIPAddress" not in str(found)

    def test_types_without_efa_need_no_list_and_auto_mode_brings_the_plugin_along(self) -> None:
        assert interfaces("karpenter", instance_types=["g6.xlarge"]) == []
        assert interfaces("auto-mode", instance_types=G_TYPES, purchase=SPOT) == []

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

    def test_an_accelerated_node_launches_with_the_addresses_of_its_pods(self) -> None:
        first, *others = interfaces("auto-mode", **EFA)

        assert first["secondaryIPv4PrefixCount"] == 2
        assert not [each for each in others if "secondaryIPv4PrefixCount" in each]
        assert spec(**EFA)["ipPrefixCount"] == 1

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
        shared = {"tags": {"aws:eks:cluster-name": "research"}}
        own = {"tags": {"karpenter.sh/discovery": "research", "ultrascale.dev/pool": "train"}}

        found = spec(provisioner, **EFA)
        assert found["securityGroupSelectorTerms"] == [shared, own]
        assert spec(provisioner, **CPU)["securityGroupSelectorTerms"] == [shared]
        # EFA alone brings no placement group.
        assert "placementGroupSelector" not in found

    @each_provisioner
    def test_a_placement_group_stands_as_a_placeholder_until_ec2_names_it(
        self, provisioner: str
    ) -> None:
        found = spec(provisioner, name="gpu-a", placement_group=True)

        assert found["placementGroupSelector"] == {"name": "${PLACEMENT_GROUP_GPU_A}"}


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
    def test_its_image_is_pinned_its_disk_encrypted_and_its_credentials_out_of_reach(self) -> None:
        found, auto = spec(**EFA), spec("auto-mode", **EFA)
        (mapping,) = found["blockDeviceMappings"]
        (term,) = found["amiSelectorTerms"]

        assert found["role"] == auto["role"] == "research-node-us-west-2"
        assert term["alias"].startswith("al2023@v2")
        assert found["metadataOptions"] == {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        }
        volume = {"encrypted": True, "volumeType": "gp3", "volumeSize": "100Gi"}
        assert volume.items() <= mapping["ebs"].items()
        # The NVMe disks become one volume where there are any; Auto Mode keeps images and pods
        # there where the volume is smaller.
        assert found["instanceStorePolicy"] == "RAID0"
        assert auto["ephemeralStorage"]["size"] == "100Gi"
        assert "instanceStorePolicy" not in spec(**CPU)
        # The kubelet takes no more pods than there are addresses.
        assert found["kubelet"] == {"maxPods": planned(**EFA).pools[-1].max_pods}

    @each_provisioner
    def test_tags_of_the_pool_reach_its_instances(self, provisioner: str) -> None:
        assert spec(provisioner, tags={"team": "ml"})["tags"] == {"team": "ml"}
        # On EKS Auto Mode tags ask for more permissions.
        assert "tags" not in spec(provisioner, purchase=ON_DEMAND)

    def test_karpenter_takes_a_profile_that_is_there_where_iam_is_out_of_reach(
        self, karpenter: CrdSet
    ) -> None:
        closed = planned(network=CLOSED).node_class
        auto_mode = planned("auto-mode", network=CLOSED).node_class

        assert karpenter.validate(node_class_manifest(closed)) == []
        assert ec2_node_class_spec(closed)["instanceProfile"] == "research-node-us-west-2"
        assert "role" not in ec2_node_class_spec(closed)
        assert node_class_spec(auto_mode)["role"] == "research-node-us-west-2"

    def test_large_images_are_pulled_in_parallel(self) -> None:
        config = yaml.safe_load(spec(**EFA)["userData"])

        assert (config["apiVersion"], config["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
        assert config["spec"] == {"featureGates": {"FastImagePull": True}}
        assert "userData" not in spec(**CPU)
