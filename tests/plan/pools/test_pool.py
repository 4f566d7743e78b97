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
from ultrascale.catalog import INSTANCE_TYPES, InstanceType, eks, lookup
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


@each_layout
def test_interfaces_are_those_of_the_ec2_user_guide(instance_type: str) -> None:
    """A wrong place fails the launch, a missing card costs bandwidth without a word."""
    interfaces = network_interfaces(lookup(instance_type))
    laid_out = [(nic.card, nic.device, nic.kind) for nic in interfaces]
    keys = ("NetworkCardIndex", "DeviceIndex", "InterfaceType")
    assert laid_out == [tuple(nic[key] for key in keys) for nic in LAYOUTS[instance_type]]
    # The primary comes first, and no place is taken twice.
    assert interfaces[0] == ENA
    assert len({place[:2] for place in laid_out}) == len(laid_out)
    # Every EFA interface that the type takes is there; card 0 of p6-b300 carries none.
    most = EFA_MAXIMUM_UNSTATED.get(instance_type)
    kinds = [nic.kind for nic in interfaces]
    assert kinds.count("efa-only") == (most or lookup(instance_type).max_efa_interfaces)
    assert instance_type != "p6-b300.48xlarge" or EFA_ON_CARD_0 not in interfaces


class TestPods:
    """More pods than addresses leaves them pending on a node that looks free."""

    @pytest.mark.parametrize(
        ("instance_type", "expected"),
        [
            *(("p5.48xlarge", 250), ("trn1.32xlarge", 250), ("p6-b300.48xlarge", 250)),
            *(("m7g.2xlarge", 110), ("m7g.8xlarge", 250)),
        ],
    )
    def test_prefixes_carry_what_eks_advises(self, instance_type: str, expected: int) -> None:
        spec = lookup(instance_type)
        assert max_pods(spec, network_interfaces(spec) if spec.accelerator else ()) == expected
        # A pool of several types promises what its smallest carries.
        assert of_type("m7g.8xlarge", "m7g.2xlarge").max_pods == 110

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
        # On other cards it takes no address.
        other = without_prefixes(lookup("p6-b300.48xlarge"))
        elsewhere = NetworkInterface(card=1, device=0, kind="efa-only")
        assert max_pods(other, (ENA, elsewhere)) == max_pods(other, ())


class TestEfa:
    """EFA that is missing without a word makes a fleet an order of magnitude slower."""

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"efa": "none"}, "efa: none"),
            ({"instance_types": ("m7i.48xlarge",)}, "no accelerator"),
            ({"instance_types": ("g6.xlarge",)}, "not on these types"),
            ({"instance_types": ("g6.24xlarge", "g6.48xlarge")}, "several types"),
            ({"zones": ("us-west-2a", "us-west-2b")}, "several zones"),
        ],
    )
    def test_a_pool_without_efa_says_why(self, changes: dict[str, object], reason: str) -> None:
        plan = planned(**changes)
        assert (plan.without_efa, plan.network_interfaces) == (reason, ())
        assert "ultrascale.dev/efa" not in plan.labels

    def test_efa_takes_every_card_also_without_an_accelerator_where_all_are_asked_for(self) -> None:
        auto, every = of_type("p5.48xlarge", efa="auto"), of_type("m7i.48xlarge", efa="all")
        assert (auto.efa_interfaces, auto.without_efa) == (32, None)
        assert every.efa_interfaces == lookup("m7i.48xlarge").max_efa_interfaces
        assert every.without_efa is None
        # The plugin is called only where it finds an interface.
        assert auto.labels["ultrascale.dev/efa"] == "true"


# Jobs find their nodes by labels; taints keep everything else off them.
def test_every_node_names_its_pool_role_and_capacity_and_the_files_labels_come_on_top() -> None:
    own = {"node-type": "h100", "team": "research"}
    common = {
        "ultrascale.dev/pool": "train",
        "ultrascale.dev/role": "burst",
        "ultrascale.dev/capacity": ON_DEMAND["option"],
    }
    assert planned().labels.items() >= (common | {"node-type": "train"}).items()
    assert planned(labels=own).labels.items() >= (common | own).items()


@pytest.mark.parametrize(
    ("instance_type", "present", "key"),
    [
        ("p5.48xlarge", "true", "nvidia.com/gpu"),
        ("trn1.32xlarge", None, "aws.amazon.com/neuron"),
        # Controllers are welcome on CPU nodes.
        ("m7g.2xlarge", None, None),
    ],
)
def test_pods_that_ask_for_no_accelerator_stay_off(
    instance_type: str, present: str | None, key: str | None
) -> None:
    plan = of_type(instance_type)
    taints = () if key is None else (Taint(key=key, value="true", effect="NoSchedule"),)
    assert plan.taints == taints
    assert plan.labels.get("nvidia.com/gpu.present") == present


# Images of tens of gigabytes fill a small root disk, or unpack for an hour on a slow one.
@pytest.mark.parametrize(
    ("types", "raid0", "size", "iops", "throughput", "parallel"),
    [
        (["p5.48xlarge"], True, 100, 3000, 125, True),
        (["inf2.48xlarge"], False, 500, 16000, 1000, True),
        # One type without NVMe keeps the whole pool on root disks.
        (["trn1.32xlarge", "inf2.48xlarge"], False, 500, 16000, 1000, True),
        (["m7g.2xlarge"], False, 100, 3000, 125, False),
    ],
)
def test_nvme_disks_hold_the_images_and_nodes_without_get_a_fast_root_disk(
    types: list[str], raid0: bool, size: int, iops: int, throughput: int, parallel: bool
) -> None:
    plan = of_type(*types)
    disk = RootDisk(size_gib=size, iops=iops, throughput_mibps=throughput)
    assert (plan.raid0, plan.root_disk) == (raid0, disk)
    assert plan.parallel_image_pull is parallel


@pytest.mark.parametrize(
    ("instance_type", "role", "expected"),
    [
        ("p5.48xlarge", "burst", True),
        ("m7g.2xlarge", "reserved", True),
        ("m7g.2xlarge", "system", False),
    ],
)
def test_scarce_capacity_is_never_asked_for_twice_in_an_update(
    instance_type: str, role: str, expected: bool
) -> None:
    assert of_type(instance_type, role=role).replace_before_launch is expected


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
