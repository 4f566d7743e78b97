import inspect
from collections.abc import Callable
from typing import cast

import botocore.session
import pytest

from tests.support.cases import for_each
from ultrascale import catalog
from ultrascale.catalog import INSTANCE_TYPES, Accelerator, InstanceType, UltraServer
from ultrascale.errors import CatalogError

# Types with EFA by the number of EFA interfaces in the EC2 user guide's layout, one for each card
# that takes one. P6e-GB200 is laid out with 4 although it takes more.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
EFA_INTERFACES: dict[int, str] = {
    1: """
        p5.4xlarge trn2.3xlarge g5.8xlarge g5.12xlarge g5.16xlarge g5.24xlarge g5.48xlarge
        g6.8xlarge g6.12xlarge g6.16xlarge g6.24xlarge g6.48xlarge g6e.8xlarge g6e.12xlarge
        g6e.16xlarge gr6.8xlarge g7.8xlarge g7.12xlarge g7.24xlarge g7e.8xlarge g7e.12xlarge
        m7g.16xlarge m7g.metal m8g.24xlarge m8g.48xlarge m8g.metal-24xl m8g.metal-48xl
        m9g.48xlarge m9g.metal-48xl c7g.16xlarge c7g.metal c8g.24xlarge c8g.48xlarge
        c8g.metal-24xl c8g.metal-48xl c9g.48xlarge c9g.metal-48xl r7g.16xlarge r7g.metal
        r8g.24xlarge r8g.48xlarge r8g.metal-24xl r8g.metal-48xl
        m7i.48xlarge m7i.metal-48xl c7i.48xlarge c7i.metal-48xl r7i.48xlarge r7i.metal-48xl
        c6a.48xlarge c6a.metal c6i.32xlarge c6i.metal c7a.48xlarge c7a.metal-48xl g4dn.8xlarge
        g4dn.12xlarge g4dn.16xlarge g4dn.metal i3en.12xlarge i3en.24xlarge i3en.metal i4i.32xlarge
        i4i.metal m6a.48xlarge m6a.metal m6i.32xlarge m6i.metal m7a.48xlarge m7a.metal-48xl
        r6a.48xlarge r6a.metal r6i.32xlarge r6i.metal r7a.48xlarge r7a.metal-48xl
    """,
    2: "g6e.24xlarge g7.48xlarge g7e.24xlarge",
    4: "p4d.24xlarge p4de.24xlarge g6e.48xlarge g7e.48xlarge p6e-gb200.36xlarge",
    8: "p6-b200.48xlarge trn1.32xlarge",
    16: "p5en.48xlarge p6-b300.48xlarge trn1n.32xlarge trn2.48xlarge trn2u.48xlarge",
    32: "p5.48xlarge p5e.48xlarge",
}

each_entry = for_each(INSTANCE_TYPES)


def each_entry_that_knows(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Check the entries that know all of ``names``."""
    return for_each({n: spec for n, spec in INSTANCE_TYPES.items() if all(map(spec.knows, names))})


each_efa_type = for_each(
    (name, number) for number, names in EFA_INTERFACES.items() for name in names.split()
)


def sdk_enum(service: str, shape: str) -> set[str]:
    """Return the values that the AWS SDK allows for a string."""
    model = botocore.session.get_session().get_service_model(service)
    return set(cast("dict[str, list[str]]", model.shape_for(shape).metadata)["enum"])


def accelerator_of(instance_type: str) -> Accelerator:
    accelerator = catalog.lookup(instance_type).accelerator
    assert accelerator is not None
    return accelerator


@each_efa_type
def test_every_efa_card_gets_its_interface_as_far_as_ec2_allows(
    instance_type: str, interfaces: int
) -> None:
    spec = catalog.lookup(instance_type)
    assert len(spec.efa_cards) == interfaces
    if spec.knows("max_efa_interfaces"):
        assert spec.max_efa_interfaces == interfaces
    else:
        assert instance_type == "p6e-gb200.36xlarge"


def test_no_other_type_is_given_efa() -> None:
    listed = {name for names in EFA_INTERFACES.values() for name in names.split()}
    with_efa = {
        name for name, spec in INSTANCE_TYPES.items() if spec.knows("efa_cards") and spec.efa_cards
    }

    assert with_efa == listed


@each_entry_that_knows("efa_cards", "network_cards")
def test_efa_cards_are_cards_of_the_instance(spec: InstanceType) -> None:
    assert set(spec.efa_cards) <= set(range(spec.network_cards))
    if spec.instance_type == "p6-b300.48xlarge":
        assert (spec.network_cards, spec.efa_cards) == (17, tuple(range(1, 17)))


@each_entry
def test_every_value_that_is_known_can_be_read(spec: InstanceType) -> None:
    for name in spec.accelerator.facts() if spec.accelerator else ():
        if spec.accelerator and spec.accelerator.knows(name):
            assert getattr(spec.accelerator, name)
    for name in (*spec.facts(), "ami_type"):
        if spec.knows(name):
            assert getattr(spec, name) is not None
        else:
            with pytest.raises(CatalogError, match="is not known; no source states it"):
                getattr(spec, name)


@each_entry
def test_every_value_that_is_known_has_a_source(spec: InstanceType) -> None:
    for name in (*spec.facts(), "ami_type"):
        assert bool(spec.sources_of(name)) == spec.knows(name), name
    if spec.accelerator is not None:
        for name in spec.accelerator.facts():
            assert bool(spec.accelerator.sources_of(name)) == spec.accelerator.knows(name), name


@each_entry_that_knows("max_pods_secondary_ip", "enis_card0", "ipv4_per_eni")
def test_pods_follow_from_the_interfaces_of_card_0(spec: InstanceType) -> None:
    assert spec.max_pods_secondary_ip == spec.enis_card0 * (spec.ipv4_per_eni - 1) + 2


@each_entry_that_knows("nvme_disks", "nvme_total_gb")
def test_disks_add_up(spec: InstanceType) -> None:
    disks = spec.nvme_disks

    # EC2 rounds the total: 2 disks of 470 GB are listed as 940, one of 474 as 474.
    assert disks.count * disks.gb_each == pytest.approx(spec.nvme_total_gb, rel=0.02)


@each_entry_that_knows("network_gbps", "network_baseline_gbps")
def test_network_is_no_slower_at_its_peak(spec: InstanceType) -> None:
    assert spec.network_gbps >= spec.network_baseline_gbps > 0


def test_every_source_can_be_visited() -> None:
    sources = {
        s for spec in INSTANCE_TYPES.values() for n in spec.facts() for s in spec.sources_of(n)
    }

    assert sources
    assert all(source.url.startswith("https://") and source.title for source in sources)


def test_preview_names_are_marked_and_know_nothing_of_their_hardware() -> None:
    previews = [spec for spec in INSTANCE_TYPES.values() if not spec.announced]

    assert len(previews) == 7
    assert not any(spec.knows("vcpus") or spec.knows("ami_type") for spec in previews)


def test_announced_types_and_ami_types_are_in_the_sdk() -> None:
    announced = {name for name, spec in INSTANCE_TYPES.items() if spec.announced}
    ami_types = {spec.ami_type for spec in INSTANCE_TYPES.values() if spec.knows("ami_type")}
    assert announced <= sdk_enum("ec2", "InstanceType")
    assert ami_types <= sdk_enum("eks", "AMITypes")


@pytest.mark.parametrize(
    ("instance_type", "ami_type"),
    [
        ("m7i.4xlarge", "AL2023_x86_64_STANDARD"),
        ("m8g.4xlarge", "AL2023_ARM_64_STANDARD"),
        ("p5.48xlarge", "AL2023_x86_64_NVIDIA"),
        ("p6e-gb200.36xlarge", "AL2023_ARM_64_NVIDIA"),
        ("trn2.48xlarge", "AL2023_x86_64_NEURON"),
    ],
)
def test_nodes_boot_an_image_with_their_drivers(instance_type: str, ami_type: str) -> None:
    assert catalog.lookup(instance_type).ami_type == ami_type


def test_value_that_no_source_states_is_never_guessed() -> None:
    with pytest.raises(
        CatalogError, match=r"^p6e-gb300\.36xlarge: vcpus is not known; no source states it$"
    ):
        _ = catalog.lookup("p6e-gb300.36xlarge").vcpus
    with pytest.raises(AttributeError, match="InstanceType has no fact 'vcpu'"):
        catalog.lookup("p5.48xlarge").knows("vcpu")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("p5.48xlrage", "did you mean p5.48xlarge?"),
        ("ml.p5.48xlarge", "did you mean p5.48xlarge?"),
        ("p6-b30.48xlarge", "did you mean p6-b300.48xlarge?"),
        ("?", "`ultrascale types` lists the known ones"),
    ],
)
def test_misspelt_instance_type_is_answered_with_its_neighbour(asked: str, hint: str) -> None:
    with pytest.raises(CatalogError) as raised:
        catalog.lookup(asked)

    assert str(raised.value) == f"unknown instance type {asked!r}; {hint}"


def test_part_of_a_gpu_counts_as_no_known_number_of_gpus() -> None:
    for name in ("g6f.large", "gr6f.4xlarge"):
        assert accelerator_of(name).kind == "nvidia"
        assert not accelerator_of(name).knows("count")
        assert "of a GPU" in catalog.lookup(name).notes


def test_accelerators_and_ultraservers_are_counted_in_what_kubernetes_and_ec2_call_one() -> None:
    trainium = accelerator_of("trn2.48xlarge")
    assert (trainium.name, trainium.resource_name) == ("AWS Trainium2", "aws.amazon.com/neuron")
    assert (trainium.count, trainium.memory_mib_total) == (16, 1_572_864)
    assert (trainium.neuron_cores_physical, trainium.neuron_lnc_default) == (128, 2)
    assert trainium.neuron_cores_logical == 64
    gpus = accelerator_of("p5.48xlarge")
    assert (gpus.count, gpus.resource_name) == (8, "nvidia.com/gpu")
    with pytest.raises(
        CatalogError, match="only neuron accelerators have neuron_lnc_default, got 'nvidia'"
    ):
        _ = gpus.neuron_lnc_default
    assert catalog.lookup("m7i.4xlarge").accelerator is None
    of_trainium = (UltraServer(name="u-trn2x64", instances=4),)
    gb200 = catalog.lookup("p6e-gb200.36xlarge")
    assert catalog.lookup("trn2u.48xlarge").ultraserver == of_trainium
    assert gb200.ultraserver[0].instances == 18
    # One EFA interface for each physical one.
    assert gb200.efa_cards == (1, 5, 9, 13)


@pytest.mark.parametrize(("family", "mib_per_vcpu"), [("m7i", 4096), ("c7i", 2048), ("r7i", 8192)])
def test_intel_system_nodes_come_in_every_size(family: str, mib_per_vcpu: int) -> None:
    sizes = (
        "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge metal-24xl metal-48xl"
    )
    for size in sizes.split():
        spec = catalog.lookup(f"{family}.{size}")

        assert spec.memory_mib == spec.vcpus * mib_per_vcpu
        assert spec.hypervisor == ("none" if size.startswith("metal") else "nitro")
        assert spec.on_demand_quota_code == "L-1216C47A"
        assert spec.nvme_total_gb == 0
        assert not spec.capacity_block


def test_entries_cannot_be_changed() -> None:
    spec = catalog.lookup("p5.48xlarge")

    with pytest.raises(AttributeError):
        spec.vcpus = 1  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        INSTANCE_TYPES["x"] = spec  # pyright: ignore[reportIndexIssue]


def test_every_attribute_is_documented() -> None:
    for entry in (InstanceType, Accelerator):
        lines = inspect.getsource(entry).splitlines()
        for name in entry.facts():
            (number,) = (n for n, line in enumerate(lines) if line.startswith(f"    {name} = "))
            assert "  # " in lines[number] or lines[number - 1].startswith("    # "), name
