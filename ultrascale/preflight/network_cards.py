"""Instance types: EC2's facts compared with the catalog's facts, and network cards with the plan's.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ultrascale import catalog, config
from ultrascale.findings import Difference, Finding, as_text
from ultrascale.preflight.model import Check, Context, WholePool, whole_pools

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef
    from mypy_boto3_ec2.type_defs import InstanceTypeInfoTypeDef as TypeInfo
    from mypy_boto3_ec2.type_defs import NetworkCardInfoTypeDef as CardInfo
    from mypy_boto3_ec2.type_defs import NetworkInfoTypeDef as NetworkInfo

_ACTION = "ec2:DescribeInstanceTypes"
_CARDS, _TYPES = "network-cards", "instance-types"
# EC2's usage class of a purchase option.
_USAGE = {"spot": "spot", "capacity-block": "capacity-block"}
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}
_REPORT = "report it, with this line, to whoever keeps ultrascale/catalog/instances.csv"


def _run_cards(context: Context) -> Iterator[Finding]:
    pools = [pool for pool in whole_pools(context.plan.all_pools) if pool.in_account]
    types = _described_types(context, pools)
    for pool in pools:
        for name in pool.plan.instance_types:
            if name in types and pool.plan.network_interfaces:
                yield layout_finding(pool, name, types[name])


def _run_types(context: Context) -> Iterator[Finding]:
    pools = whole_pools(context.plan.all_pools)
    types = _described_types(context, pools)
    for name in dict.fromkeys(name for pool in pools for name in pool.plan.instance_types):
        users = [pool for pool in pools if name in pool.plan.instance_types]
        if name in types:
            yield type_finding(users[0].plan.recorded.spec(name), types[name])
            yield from usage_findings(users, name, types[name])
        else:
            yield _missing_type_finding(name, users, context.plan.region)


def layout_finding(pool: WholePool, name: str, answer: "TypeInfo") -> Finding:
    """Compare the interfaces of a pool's nodes with the network cards of an instance type.

    Args:
        pool: The pool, with EFA.
        name: The type.
        answer: The type, as EC2 describes it.
    """
    subject = f"{pool.name}: {name}"
    network = answer.get("NetworkInfo", {})
    cards = {card["NetworkCardIndex"]: card for card in network.get("NetworkCards", ())}
    unsaid = [
        str(nic.card)
        for nic in pool.plan.network_interfaces
        if nic.card in cards and not cards[nic.card].get("InterfaceTypes")
    ]
    wrong = [*_card_mistakes(pool, cards), *_efa_mistakes(pool, network)]
    if wrong:
        return Finding(
            check=_CARDS,
            subject=subject,
            state="fail",
            evidence="; ".join(wrong),
            fix=f"set efa: none for the pool, choose another type, or {_REPORT}",
        )
    if unsaid:
        return Finding(
            check=_CARDS,
            subject=subject,
            state="unknown",
            evidence=f"EC2 does not say which interfaces these cards take: {', '.join(unsaid)}",
            fix=f"launch one {name} with the pool's launch template before the pool grows",
        )
    efa = pool.plan.efa_interfaces
    evidence = f"each of {len(cards)} cards takes what the plan puts on it, {efa} with EFA"
    return Finding(check=_CARDS, subject=subject, state="pass", evidence=evidence)


def _card_mistakes(pool: WholePool, cards: "Mapping[int, CardInfo]") -> Iterator[str]:
    """Yield the interfaces that a network card does not support."""
    planned = Counter(nic.card for nic in pool.plan.network_interfaces)
    for nic in pool.plan.network_interfaces:
        card = cards.get(nic.card)
        if card is None:
            known = _card_span(cards)
            yield f"the plan puts an interface on card {nic.card}, EC2 knows cards {known}"
        elif card.get("InterfaceTypes") and nic.kind not in card["InterfaceTypes"]:
            takes = ", ".join(card["InterfaceTypes"])
            yield f"card {nic.card} takes {takes}, the plan puts {nic.kind} on it"
    for index, count in planned.items():
        most = cards.get(index, {}).get("MaximumNetworkInterfaces")
        if most is not None and count > most:
            yield f"card {index} takes {most} interfaces, the plan puts {count} on it"


def _efa_mistakes(pool: WholePool, network: "NetworkInfo") -> Iterator[str]:
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    if not network.get("EfaSupported"):
        yield "EfaSupported is false"
    elif pool.plan.efa_interfaces > most:
        yield f"MaximumEfaInterfaces is {most}, the plan has {pool.plan.efa_interfaces}"


def type_finding(spec: catalog.InstanceType, answer: "TypeInfo") -> Finding:
    """Return the finding whether EC2's facts of an instance type equal those of the plan."""
    name = spec.instance_type
    differences = tuple(catalog_differences(spec, answer))
    unsaid = [
        field for field, fact, found in _numbers(answer) if found is None and spec.knows(fact)
    ]
    if not differences and unsaid:
        return Finding(
            check=_TYPES,
            subject=name,
            state="unknown",
            evidence=f"EC2 does not say {', '.join(unsaid)}",
            fix=f"`aws ec2 describe-instance-types --instance-types {name}` says what EC2 has",
        )
    if not differences:
        return Finding(
            check=_TYPES, subject=name, state="pass", evidence="EC2 says what the plan counts with"
        )
    # With fewer than planned, pods find no room or no address; other differences only change sums.
    fatal = any(
        difference.field in _FATAL and float(difference.found) < float(difference.wanted)
        for difference in differences
    )
    return Finding(
        check=_TYPES,
        subject=name,
        state="fail" if fatal else "warn",
        evidence=as_text(differences, ours="the plan", theirs="EC2"),
        fix=f"{config.RECORD_FACTS}: the plan counts with EC2's then; {_REPORT}",
    )


_FATAL = frozenset(
    {
        "GpuInfo.Gpus[].Count",
        "NeuronInfo.NeuronDevices[].Count",
        "NetworkCards[0].MaximumNetworkInterfaces",
        "Ipv4AddressesPerInterface",
    }
)


def catalog_differences(spec: catalog.InstanceType, answer: "TypeInfo") -> Iterator[Difference]:
    """Yield the fields that EC2 and the catalog both know, with different values."""
    for field, fact, found in (*_numbers(answer), *_accelerator_numbers(spec, answer)):
        known = spec.accelerator if fact.startswith("accelerator.") else spec
        attribute = fact.removeprefix("accelerator.")
        if found is None or known is None or not known.knows(attribute):
            continue
        wanted = getattr(known, attribute)
        if found != wanted:
            yield Difference(field=field, found=str(found), wanted=str(wanted))
    found_types = answer.get("ProcessorInfo", {}).get("SupportedArchitectures", ())
    if spec.knows("architecture") and found_types:
        wanted = _ARCHITECTURES[spec.architecture]
        if wanted not in found_types:
            found = ", ".join(found_types)
            yield Difference(field="SupportedArchitectures", found=found, wanted=wanted)


def _numbers(answer: "TypeInfo") -> Iterator[tuple[str, str, int | None]]:
    """Yield EC2's name of each number, the catalog's name, and EC2's value."""
    network = answer.get("NetworkInfo", {})
    cards = network.get("NetworkCards", ())
    efa = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    yield "DefaultVCpus", "vcpus", answer.get("VCpuInfo", {}).get("DefaultVCpus")
    yield "MemoryInfo.SizeInMiB", "memory_mib", answer.get("MemoryInfo", {}).get("SizeInMiB")
    yield "MaximumNetworkCards", "network_cards", network.get("MaximumNetworkCards")
    yield "MaximumEfaInterfaces", "max_efa_interfaces", efa if network else None
    yield "MaximumNetworkInterfaces", "enis_total", network.get("MaximumNetworkInterfaces")
    first = cards[0].get("MaximumNetworkInterfaces") if cards else None
    yield "NetworkCards[0].MaximumNetworkInterfaces", "enis_card0", first
    yield "Ipv4AddressesPerInterface", "ipv4_per_eni", network.get("Ipv4AddressesPerInterface")


def _accelerator_numbers(
    spec: catalog.InstanceType, answer: "TypeInfo"
) -> Iterator[tuple[str, str, int | None]]:
    """Yield the numbers of a type's accelerators in the form of `_numbers`.

    The memory of Neuron devices is left out: EC2 and Neuron's documentation differ. EC2 may name no
    accelerators of a type that comes in UltraServers.
    """
    if spec.accelerator is None:
        return
    if spec.accelerator.kind == "nvidia":
        gpus = answer.get("GpuInfo", {})
        found = sum(each["Count"] for each in gpus.get("Gpus", ())) or None
        yield "GpuInfo.Gpus[].Count", "accelerator.count", found
        memory = gpus.get("TotalGpuMemoryInMiB")
        yield "GpuInfo.TotalGpuMemoryInMiB", "accelerator.memory_mib_total", memory
        return
    devices = answer.get("NeuronInfo", {}).get("NeuronDevices", ())
    found = sum(each["Count"] for each in devices) or None
    yield "NeuronInfo.NeuronDevices[].Count", "accelerator.count", found
    cores = sum(device["Count"] * device.get("CoreInfo", {}).get("Count", 0) for device in devices)
    yield "NeuronDevices[].CoreInfo.Count", "accelerator.neuron_cores_physical", cores or None


def usage_findings(pools: Sequence[WholePool], name: str, answer: "TypeInfo") -> Iterator[Finding]:
    """Yield a failure for each pool with a purchase option that EC2 does not sell for the type."""
    for pool in pools:
        if not pool.in_account:
            continue
        sold = answer["SupportedUsageClasses"]
        wanted = _USAGE.get(pool.plan.purchase, "on-demand")
        if wanted not in sold:
            yield Finding(
                check=_TYPES,
                subject=f"{pool.name}: {name}",
                state="fail",
                evidence=f"SupportedUsageClasses are {', '.join(sold)}, the pool needs {wanted}",
                fix="choose another purchase.option or another instance type",
            )


def _missing_type_finding(name: str, pools: Sequence[WholePool], region: str) -> Finding:
    evidence = f"EC2 knows no such type in {region}"
    if not any(pool.in_account for pool in pools):
        # Reason: SageMaker launches the instances, and cannot be asked for their types.
        return Finding(
            check=_TYPES,
            subject=name,
            state="warn",
            evidence=f"{evidence}; of HyperPod's ml.{name} SageMaker reports nothing",
            fix="hold what `ultrascale plan` says of it against AWS's page of the type",
        )
    command = f"aws ec2 describe-instance-types --region {region}"
    return Finding(
        check=_TYPES,
        subject=name,
        state="fail",
        evidence=evidence,
        fix=f"choose another type or Region; `{command}` lists them",
    )


def _described_types(context: Context, pools: Sequence[WholePool]) -> "Mapping[str, TypeInfo]":
    """Return EC2's description of the instance types that the Region has.

    EC2 refuses a request that names a type which the Region lacks; a filter ignores the name.
    """
    names = sorted({name for pool in pools for name in pool.plan.instance_types})
    if not names:
        return {}
    filters: list[FilterTypeDef] = [{"Name": "instance-type", "Values": names}]
    types = context.account.ask_all(
        context.account.client("ec2").describe_instance_types,
        lambda page: page["InstanceTypes"],
        Filters=filters,
    )
    return {type["InstanceType"]: type for type in types}


def _card_span(cards: "Mapping[int, CardInfo]") -> str:
    return f"0 to {max(cards)}" if cards else "none"


NETWORK_CARDS = Check(
    name=_CARDS,
    title="interfaces of nodes with EFA fit the network cards",
    actions=(_ACTION,),
    run=_run_cards,
)
INSTANCE_TYPES = Check(
    name=_TYPES,
    title="instance types are what the catalog says",
    actions=(_ACTION,),
    run=_run_types,
)
