"""Interfaces that no card takes fail every launch; facts that are wrong make every sum wrong."""

import gzip
import json
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Any, cast

import pytest

from tests.support.pools import HYPERPOD_POOL, SPOT, pool_document
from tests.support.preflight_context import file_plan, found, pools_plan, states
from ultrascale import catalog
from ultrascale.catalog import matrix
from ultrascale.findings import Finding
from ultrascale.plan.pools.pool import network_interfaces
from ultrascale.preflight.model import Check
from ultrascale.preflight.network_cards import INSTANCE_TYPES, NETWORK_CARDS, catalog_differences


@cache
def recorded_types() -> dict[str, dict[str, Any]]:
    """Return an answer of DescribeInstanceTypes for each type, by name."""
    packed = files("moto") / "ec2" / "resources" / "instance_types.json.gz"
    return cast("dict[str, dict[str, Any]]", json.loads(gzip.decompress(packed.read_bytes())))


ACTION = "ec2:DescribeInstanceTypes"
P5, B300, TRN2 = "p5.48xlarge", "p6-b300.48xlarge", "trn2.48xlarge"


def recorded(request: dict[str, Any]) -> dict[str, Any]:
    """Answer as EC2 does."""
    (asked,) = request["Filters"]
    assert asked["Name"] == "instance-type"
    there = recorded_types()
    return {"InstanceTypes": [there[name] for name in asked["Values"] if name in there]}


def changed(name: str, path: str, value: object) -> dict[str, Any]:
    """Return EC2's answer of a type with one field otherwise; None removes it."""
    answer = deepcopy(recorded_types()[name])
    *keys, last = (int(key) if key.isdigit() else key for key in path.split("."))
    part: Any = answer
    for key in keys:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return answer


def told(check: Check, name: str, path: str, value: object) -> Finding:
    """Return what ``check`` finds of a pool of one type, a field of which EC2 has otherwise."""
    system = recorded_types()["m7g.8xlarge"]
    answer = {"InstanceTypes": [system, changed(name, path, value)]}
    findings = found(check, pools_plan(pool_document(instance_types=[name])), {ACTION: answer})
    (one,) = [each for each in findings if each.subject.endswith(name)]
    return one


@pytest.mark.parametrize("name", ["trainium-bert", "mixed-capacity", "auto-mode", "ultra-100k"])
def test_the_layouts_of_our_own_files_fit_the_cards_that_ec2_has_recorded(name: str) -> None:
    findings = found(NETWORK_CARDS, file_plan(name), {ACTION: recorded})
    assert findings
    assert {each.state for each in findings} == {"pass"}


# EC2 and Neuron's documentation differ in the memory of Trainium2; of trn2u EC2 names no devices.
def test_the_catalog_says_of_each_type_what_ec2_has_recorded() -> None:
    there: Any = recorded_types()
    differences = {
        name: [*catalog_differences(catalog.lookup(name), there[name])]
        for name in catalog.INSTANCE_TYPES
        if name in there
    }
    assert len(differences) > 150
    assert {name: each for name, each in differences.items() if each} == {}


def test_each_layout_of_the_catalog_is_one_that_ec2_takes() -> None:
    """On each card that takes an EFA-only interface there is one, and on no other."""
    there = recorded_types()
    for name, spec in catalog.INSTANCE_TYPES.items():
        if name in there and matrix.can_be_planned(spec) and spec.efa_cards:
            cards = there[name]["NetworkInfo"]["NetworkCards"]
            able = {c["NetworkCardIndex"] for c in cards if "efa-only" in c["InterfaceTypes"]}
            planned = network_interfaces(spec)
            assert {nic.card for nic in planned if nic.kind == "efa-only"} == able, name


def test_shards_of_a_pool_are_one_line() -> None:
    pool = pool_document(
        purchase={"option": "odcr", "reservation_tags": {"fleet": "p5"}},
        provisioner="karpenter",
        role="reserved",
        nodes={"static": 3},
        shards=4,
    )

    findings = found(NETWORK_CARDS, pools_plan(pool), {ACTION: recorded})

    assert states(findings) == {f"train: {P5}": "pass"}


CARDS = "NetworkInfo.NetworkCards"


@pytest.mark.parametrize(
    ("name", "path", "value", "state", "evidence"),
    [
        (
            *(P5, f"{CARDS}.3.InterfaceTypes", ["interface"], "fail"),
            "card 3 takes interface, the plan puts efa-only on it",
        ),
        (
            *(P5, f"{CARDS}.0.MaximumNetworkInterfaces", 1, "fail"),
            "card 0 takes 1 interfaces, the plan puts 2 on it",
        ),
        (
            *(P5, f"{CARDS}.31", None, "fail"),
            "the plan puts an interface on card 31, EC2 knows cards 0 to 30",
        ),
        (
            *(B300, "NetworkInfo.EfaInfo.MaximumEfaInterfaces", 15, "fail"),
            "MaximumEfaInterfaces is 15, the plan has 16",
        ),
        (B300, "NetworkInfo.EfaSupported", False, "fail", "EfaSupported is false"),
        (
            *(TRN2, f"{CARDS}.5.InterfaceTypes", None, "unknown"),
            "EC2 does not say which interfaces these cards take: 5",
        ),
    ],
)
def test_an_interface_that_its_card_does_not_take_is_named(
    name: str, path: str, value: object, state: str, evidence: str
) -> None:
    finding = told(NETWORK_CARDS, name, path, value)
    assert (finding.state, finding.evidence) == (state, evidence)
    assert finding.fix is not None


@pytest.mark.parametrize(
    ("name", "path", "value", "state", "evidence"),
    [
        (P5, "VCpuInfo.DefaultVCpus", 96, "warn", "DefaultVCpus is 96 in EC2, 192 in the plan"),
        (P5, "MemoryInfo.SizeInMiB", 1, "warn", "MemoryInfo.SizeInMiB is 1 in EC2"),
        (P5, "GpuInfo.Gpus.0.Count", 4, "fail", "GpuInfo.Gpus[].Count is 4 in EC2, 8 in"),
        (P5, "GpuInfo.Gpus.0.Count", 16, "warn", "GpuInfo.Gpus[].Count is 16 in EC2, 8 in"),
        (P5, "GpuInfo.TotalGpuMemoryInMiB", 1, "warn", "TotalGpuMemoryInMiB is 1 in EC2"),
        (P5, "NetworkInfo.Ipv4AddressesPerInterface", 10, "fail", "is 10 in EC2, 50 in"),
        (P5, "NetworkInfo.MaximumNetworkInterfaces", 63, "warn", "is 63 in EC2, 64 in"),
        (P5, "NetworkInfo.MaximumNetworkCards", 31, "warn", "MaximumNetworkCards is 31 in EC2"),
        (P5, "NetworkInfo.EfaInfo.MaximumEfaInterfaces", 31, "warn", "is 31 in EC2, 32 in"),
        (P5, "ProcessorInfo.SupportedArchitectures", ["arm64"], "warn", "is arm64 in EC2, x86_64"),
        (TRN2, "NeuronInfo.NeuronDevices.0.Count", 8, "fail", "Count is 8 in EC2, 16 in"),
        (TRN2, "NeuronInfo.NeuronDevices.0.CoreInfo.Count", 4, "warn", "is 64 in EC2, 128 in"),
        (TRN2, "NeuronInfo.TotalNeuronDeviceMemoryInMiB", 1, "pass", "EC2 says what the plan"),
    ],
)
def test_a_fact_that_ec2_has_otherwise_is_named_with_both_values(
    name: str, path: str, value: object, state: str, evidence: str
) -> None:
    finding = told(INSTANCE_TYPES, name, path, value)
    assert finding.state == state
    assert evidence in finding.evidence


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("VCpuInfo", "DefaultVCpus"),
        ("NetworkInfo", "MaximumNetworkCards"),
        ("NetworkInfo.Ipv4AddressesPerInterface", "Ipv4AddressesPerInterface"),
    ],
)
def test_a_fact_that_ec2_leaves_out_is_not_what_the_catalog_says(path: str, field: str) -> None:
    finding = told(INSTANCE_TYPES, P5, path, None)
    assert finding.state == "unknown"
    assert field in finding.evidence


def test_a_purchase_that_ec2_does_not_sell_of_a_type_is_found() -> None:
    types = ["g6.12xlarge", "g6.24xlarge", "g6.48xlarge"]
    plan = pools_plan(pool_document(instance_types=types, purchase=SPOT, efa="none"))
    answers = recorded({"Filters": [{"Name": "instance-type", "Values": [*types, "m7g.8xlarge"]}]})
    answers["InstanceTypes"][0] = changed(types[0], "SupportedUsageClasses", ["on-demand"])
    findings = found(INSTANCE_TYPES, plan, {ACTION: answers})
    assert states(findings)[f"train: {types[0]}"] == "fail"
    assert f"train: {types[1]}" not in states(findings)


def test_a_type_that_the_region_has_not_is_found_and_of_sagemakers_nothing_is_told() -> None:
    system = {"InstanceTypes": [recorded_types()["m7g.8xlarge"]]}
    ec2 = states(found(INSTANCE_TYPES, pools_plan(pool_document()), {ACTION: system}))
    hyperpod = states(found(INSTANCE_TYPES, pools_plan(HYPERPOD_POOL), {ACTION: system}))
    assert ec2 == {"m7g.8xlarge": "pass", P5: "fail"}
    assert hyperpod == {"m7g.8xlarge": "pass", P5: "warn"}
