"""Pools: interfaces, pods, disks, labels and taints.

`data/efa_layouts.json` holds the launch-template layouts of the EC2 user guide of 2026-04-13,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html: the variant that spends
one IP address per node.
"""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.cases import for_each
from tests.support.folders import DATA
from tests.support.pools import ON_DEMAND, make_pool
from ultrascale import config
from ultrascale.catalog import INSTANCE_TYPES, InstanceType, eks, lookup, versions
from ultrascale.errors import CatalogError
from ultrascale.plan.model import NetworkInterface, PoolPlan, RootDisk, Taint
from ultrascale.plan.pools.pool import facts_are_known, max_pods, network_interfaces, plan_pool

LAYOUTS: dict[str, list[dict[str, Any]]] = json.loads(
    (DATA / "efa_layouts.json").read_text(encoding="utf-8")
)
# No source states the maximum of this type; the guide's layout has one on each of four cards.
EFA_MAXIMUM_UNSTATED = {"p6e-gb200.36xlarge": 4}
ENA = NetworkInterface(card=0, device=0, kind="interface")
EFA_ON_CARD_0 = NetworkInterface(card=0, device=1, kind="efa-only")

# Taken as they are: a copy of the model is not checked again, so that each fact stands alone.
POOL = make_pool()
each_layout = for_each([*LAYOUTS])


def planned(**changes: object) -> PoolPlan:
    return plan_pool(POOL.model_copy(update=changes), kubernetes_version="1.35")


def of_type(*instance_types: str, **changes: object) -> PoolPlan:
    return planned(instance_types=instance_types, **changes)


def without_prefixes(spec: InstanceType) -> InstanceType:
    return InstanceType(spec.instance_type, {**spec.cells, "prefix_delegation": "no"})


class TestInterfaces:
    """A wrong place fails the launch, a missing card costs bandwidth without a word."""

    @each_layout
    def test_layout_is_that_of_the_ec2_user_guide(self, instance_type: str) -> None:
        interfaces = network_interfaces(lookup(instance_type))
        laid_out = [(nic.card, nic.device, nic.kind) for nic in interfaces]

        keys = ("NetworkCardIndex", "DeviceIndex", "InterfaceType")
        assert laid_out == [tuple(nic[key] for key in keys) for nic in LAYOUTS[instance_type]]

    @each_layout
    def test_every_efa_interface_that_the_type_takes_is_there(self, instance_type: str) -> None:
        kinds = [nic.kind for nic in network_interfaces(lookup(instance_type))]

        most = EFA_MAXIMUM_UNSTATED.get(instance_type)
        assert kinds.count("efa-only") == (most or lookup(instance_type).max_efa_interfaces)

    @each_layout
    def test_primary_comes_first_and_no_place_is_taken_twice(self, instance_type: str) -> None:
        interfaces = network_interfaces(lookup(instance_type))
        places = [(nic.card, nic.device) for nic in interfaces]

        assert interfaces[0] == ENA
        assert len(set(places)) == len(places)

    def test_card_0_of_p6_b300_carries_no_efa(self) -> None:
        assert EFA_ON_CARD_0 not in network_interfaces(lookup("p6-b300.48xlarge"))


class TestPods:
    """More pods than addresses leaves them pending on a node that looks free."""

    @pytest.mark.parametrize(
        ("instance_type", "expected"),
        [
            ("p5.48xlarge", 250),
            ("trn1.32xlarge", 250),
            ("p6-b300.48xlarge", 250),
            ("m7g.2xlarge", 110),
            ("m7g.8xlarge", 250),
        ],
    )
    def test_prefixes_carry_what_eks_advises(self, instance_type: str, expected: int) -> None:
        spec = lookup(instance_type)

        assert max_pods(spec, network_interfaces(spec) if spec.accelerator else ()) == expected

    @for_each(
        {name: spec for name, spec in INSTANCE_TYPES.items() if spec.knows("max_pods_secondary_ip")}
    )
    def test_without_prefixes_it_is_what_the_cni_publishes(self, spec: InstanceType) -> None:
        cap = eks.advised_max_pods(spec.vcpus)

        assert max_pods(without_prefixes(spec), ()) == min(spec.max_pods_secondary_ip, cap)

    @pytest.mark.parametrize("instance_type", ["p5.48xlarge", "p5e.48xlarge", "trn2.48xlarge"])
    def test_efa_on_card_0_takes_half_of_the_addresses(self, instance_type: str) -> None:
        spec = without_prefixes(lookup(instance_type))

        assert max_pods(spec, ()) == 100
        assert max_pods(spec, (ENA, EFA_ON_CARD_0)) == 51

    def test_efa_on_other_cards_takes_no_address(self) -> None:
        spec = without_prefixes(lookup("p6-b300.48xlarge"))
        elsewhere = NetworkInterface(card=1, device=0, kind="efa-only")

        assert max_pods(spec, (ENA, elsewhere)) == max_pods(spec, ())

    def test_a_pool_of_several_types_promises_what_its_smallest_carries(self) -> None:
        plan = of_type("m7g.8xlarge", "m7g.2xlarge")

        assert plan.max_pods == 110


class TestEfa:
    """EFA that is missing without a word makes a fleet an order of magnitude slower."""

    def test_auto_takes_every_card_of_one_type_in_one_zone(self) -> None:
        plan = of_type("p5.48xlarge", efa="auto")

        assert plan.efa_interfaces == 32
        assert plan.without_efa is None

    def test_all_takes_every_card_without_an_accelerator_too(self) -> None:
        plan = of_type("m7i.48xlarge", efa="all")

        assert plan.efa_interfaces == lookup("m7i.48xlarge").max_efa_interfaces
        assert plan.without_efa is None

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"efa": "none"}, "efa: none"),
            ({"instance_types": ("m7i.48xlarge",)}, "no accelerator"),
            ({"instance_types": ("g6.xlarge",)}, "not on these types"),
            ({"instance_types": ("g6.24xlarge", "g6.48xlarge")}, "several types"),
            ({"zones": ("us-west-2a", "us-west-2b")}, "several zones"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_pool_without_efa_says_why(self, changes: dict[str, object], reason: str) -> None:
        plan = planned(**changes)

        assert plan.without_efa == reason
        assert plan.network_interfaces == ()

    @pytest.mark.parametrize(("efa", "label"), [("auto", "true"), ("none", None)])
    def test_the_efa_plugin_is_called_only_where_it_finds_an_interface(
        self, efa: str, label: str | None
    ) -> None:
        assert of_type("p5.48xlarge", efa=efa).labels.get("ultrascale.dev/efa") == label


class TestLabelsAndTaints:
    """Jobs find their nodes by labels; taints keep everything else off them."""

    def test_every_node_names_its_pool_role_and_capacity(self) -> None:
        labels = planned().labels

        assert labels["node-type"] == "train"
        assert labels["ultrascale.dev/pool"] == "train"
        assert labels["ultrascale.dev/role"] == "burst"
        assert labels["ultrascale.dev/capacity"] == ON_DEMAND["option"]

    def test_labels_of_the_file_come_on_top(self) -> None:
        plan = planned(labels={"node-type": "h100", "team": "research"})

        assert plan.labels["node-type"] == "h100"
        assert plan.labels["team"] == "research"
        assert plan.labels["ultrascale.dev/pool"] == "train"

    @pytest.mark.parametrize(
        ("instance_type", "present"), [("p5.48xlarge", "true"), ("trn1.32xlarge", None)]
    )
    def test_nvidia_plugin_finds_nvidia_nodes_alone(
        self, instance_type: str, present: str | None
    ) -> None:
        assert of_type(instance_type).labels.get("nvidia.com/gpu.present") == present

    @pytest.mark.parametrize(
        ("instance_type", "key"),
        [("p5.48xlarge", "nvidia.com/gpu"), ("trn1.32xlarge", "aws.amazon.com/neuron")],
    )
    def test_pods_that_ask_for_no_accelerator_stay_off(self, instance_type: str, key: str) -> None:
        assert of_type(instance_type).taints == (Taint(key=key, value="true", effect="NoSchedule"),)

    def test_controllers_are_welcome_on_cpu_nodes(self) -> None:
        assert of_type("m7g.2xlarge").taints == ()


class TestDisks:
    """Images of tens of gigabytes fill a small root disk, or unpack for an hour on a slow one."""

    def test_nvme_disks_are_joined_and_hold_the_images(self) -> None:
        plan = of_type("p5.48xlarge")

        assert plan.raid0
        assert plan.root_disk == RootDisk(size_gib=100, iops=3000, throughput_mibps=125)

    def test_accelerated_nodes_without_nvme_get_a_fast_root_disk(self) -> None:
        plan = of_type("inf2.48xlarge")

        assert not plan.raid0
        assert plan.root_disk == RootDisk(size_gib=500, iops=16000, throughput_mibps=1000)

    def test_one_type_without_nvme_keeps_the_whole_pool_on_root_disks(self) -> None:
        plan = of_type("trn1.32xlarge", "inf2.48xlarge")

        assert not plan.raid0
        assert plan.root_disk.size_gib == 500

    @pytest.mark.parametrize(
        ("instance_type", "parallel"), [("p5.48xlarge", True), ("m7g.2xlarge", False)]
    )
    def test_large_images_are_pulled_in_parallel(self, instance_type: str, parallel: bool) -> None:
        assert of_type(instance_type).parallel_image_pull is parallel


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"instance_types": ("p5.48xlarge",)}, True),
        ({"instance_types": ("m7g.2xlarge",), "role": "reserved"}, True),
        ({"instance_types": ("m7g.2xlarge",), "role": "system"}, False),
    ],
    ids=["accelerated", "reserved", "system"],
)
def test_scarce_capacity_is_never_asked_for_twice_in_an_update(
    changes: dict[str, object], expected: bool
) -> None:
    assert planned(**changes).replace_before_launch is expected


@pytest.mark.parametrize("minor", eks.SUPPORTED_VERSIONS)
def test_nodes_run_the_release_pinned_for_their_minor(minor: str) -> None:
    plan = plan_pool(POOL, kubernetes_version=minor)

    assert plan.ami_release == versions.ami_release(minor).version


@for_each([*INSTANCE_TYPES])
def test_a_type_is_refused_only_for_a_value_that_no_source_states(instance_type: str) -> None:
    try:
        plan = of_type(instance_type)
    except CatalogError as error:
        message = str(error)
    else:
        message = ""
        assert plan.instance_types == (instance_type,)

    assert re.fullmatch(
        rf"(|{re.escape(instance_type)}: \S+ is not known; no source states it)", message
    )


@settings(deadline=None)
@given(
    instance_type=st.sampled_from([*INSTANCE_TYPES]),
    zones=st.sets(st.sampled_from("abc"), min_size=1),
    role=st.sampled_from(["system", "reserved", "burst"]),
    efa=st.sampled_from(["auto", "none"]),
    most=st.integers(min_value=1, max_value=100_000),
)
def test_every_pool_that_the_catalog_knows_is_consistent(
    instance_type: str, zones: set[str], role: str, efa: str, most: int
) -> None:
    changes = {
        "zones": tuple(f"us-west-2{zone}" for zone in sorted(zones)),
        "role": role,
        "efa": efa,
        "nodes": config.Nodes(max=most),
    }
    try:
        plan = of_type(instance_type, **changes)
    except CatalogError:
        assume(False)
        return
    spec = lookup(instance_type)

    assert 8 <= plan.max_pods <= 250
    assert (plan.without_efa is None) == (plan.efa_interfaces > 0)
    assert plan.efa_interfaces in {0, spec.max_efa_interfaces}
    assert plan.efa_interfaces == 0 or len(zones) == 1
    assert [taint.key for taint in plan.taints] == ([plan.accelerator] if plan.accelerator else [])
    assert plan.min_nodes <= plan.max_nodes == most
    assert plan.raid0 == (spec.nvme_total_gb > 0)
    assert plan.root_disk.iops <= 500 * plan.root_disk.size_gib
    assert plan.root_disk.throughput_mibps * 4 <= plan.root_disk.iops


@pytest.mark.parametrize("provisioner", ["karpenter", "auto-mode", "hyperpod"])
@pytest.mark.parametrize("efa", ["auto", "none"])
def test_the_rule_asks_for_the_facts_that_the_plan_of_a_pool_reads(
    provisioner: str, efa: str
) -> None:
    made, unknown = make_pool(), 0
    for name in INSTANCE_TYPES:
        changes = {"instance_types": (name,), "provisioner": provisioner, "efa": efa}
        pool = made.model_copy(update=changes)
        try:
            plan_pool(pool, kubernetes_version=eks.DEFAULT_VERSION)
        except CatalogError as error:
            unknown += 1
            with pytest.raises(CatalogError, match=re.escape(str(error))):
                next(facts_are_known(pool), None)
        else:
            assert [*facts_are_known(pool)] == []
    assert unknown > 0
