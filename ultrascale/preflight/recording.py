"""Answers of the account as rows of a cluster file's facts, and the age of the recorded ones.

Sources:
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeClusterVersions.html
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
    https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonVersions.html
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import to_builtins
from msgspec.structs import asdict

from ultrascale import catalog, config
from ultrascale.catalog import addons, eks, upgrades
from ultrascale.catalog.recorded import Card, card_cells
from ultrascale.errors import CatalogError
from ultrascale.findings import Finding, Issue, finding
from ultrascale.plan.facts import recorded_facts
from ultrascale.plan.model import AddonPlan
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.network_cards import catalog_differences
from ultrascale.preflight.reservation_fields import in_utc
from ultrascale.preflight.versions import LIMITS, offered_addons, offered_builds, offered_tiers

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeInfoTypeDef as TypeInfo

    from ultrascale.account import Account

Row = Mapping[str, object]
_NAME = "recorded-facts"
# Keys of ``hardware``, by EC2's names
_NUMBERS: Mapping[str, str] = {
    "MemoryInfo.SizeInMiB": "memory_mib",
    "GpuInfo.Gpus[].Count": "accelerator_count",
    "NeuronInfo.NeuronDevices[].Count": "accelerator_count",
    "GpuInfo.TotalGpuMemoryInMiB": "accelerator_memory_mib_total",
}


def version_rows(account: "Account", version: str) -> Iterator[Row]:
    """Yield limits of tiers and the end of support that EKS says otherwise than the catalog."""
    answers = account.ask_all(
        account.client("eks").describe_cluster_versions,
        lambda page: page["clusterVersions"],
        clusterVersions=[version],
    )
    for answer in (one for one in answers if one.get("clusterVersion") == version):
        ends = in_utc(answer.get("endOfStandardSupportDate"))
        if ends is not None and ends.date() != upgrades.STANDARD_SUPPORT_ENDS.get(version):
            yield {"fact": "end-of-support", "of": version, "value": ends.date()}
        for tier, offer in offered_tiers(answer).items():
            value = {name: offer.get(field) for field, name in LIMITS.items()}
            limits = eks.TIER_LIMITS.get(tier)
            if limits is not None and None not in value.values() and value != asdict(limits):
                yield {"fact": "tier", "of": tier, "kubernetes": version, "value": value}


def type_rows(account: "Account", types: Sequence[str]) -> Iterator[Row]:
    """Yield facts of types, also of those that the Region lacks, otherwise than the catalog's."""
    answers = account.ask_all(
        account.client("ec2").describe_instance_types,
        lambda page: page["InstanceTypes"],
        Filters=[{"Name": "instance-type", "Values": [*types]}],
        IncludeUnsupportedInRegion=True,
    )
    for answer in sorted(answers, key=lambda answer: answer["InstanceType"]):
        yield from rows_of_type(answer)


def rows_of_type(answer: "TypeInfo") -> Iterator[Row]:
    """Yield the rows of an instance type, as EC2 describes it."""
    entry = catalog.lookup(answer["InstanceType"])
    cards = [
        Card(
            card=card["NetworkCardIndex"],
            types=tuple(card.get("InterfaceTypes", ())),
            interfaces=card["MaximumNetworkInterfaces"],
        )
        for card in answer.get("NetworkInfo", {}).get("NetworkCards", ())
    ]
    cells = card_cells(cards)
    other = catalog.InstanceType(entry.instance_type, {**entry.cells, **cells})
    # Where EC2 leaves the types of a card out, it states no layout.
    if all(card.types for card in cards) and any(
        not entry.knows(column) or getattr(entry, column) != getattr(other, column)
        for column in (cells if cards else ())
    ):
        yield {"fact": "network-cards", "of": entry.instance_type, "value": to_builtins(cards)}
    numbers = {
        _NUMBERS[difference.field]: int(difference.found)
        for difference in catalog_differences(entry, answer)
        if difference.field in _NUMBERS
    }
    if numbers:
        yield {"fact": "hardware", "of": entry.instance_type, "value": numbers}


def addon_rows(account: "Account", planned: Sequence[AddonPlan], version: str) -> Iterator[Row]:
    """Yield the newest builds of EKS add-ons that the cluster takes, other than the catalog's."""
    for name in (addon.name for addon in planned):
        offered = offered_builds(name, version, offered_addons(account, name, version))
        builds = (build["addonVersion"] for build in offered)
        newest = next((build for build in builds if _is_taken(name, build, version)), None)
        if newest not in (None, addons.version(name, version).version):
            yield {"fact": "addon-build", "of": name, "kubernetes": version, "value": newest}


def _is_taken(name: str, build: str, version: str) -> bool:
    try:
        return bool(addons.chosen_version(name, build, version))
    except CatalogError:
        return False


def _run(context: Context) -> Iterator[Finding]:
    recorded = recorded_facts(context.plan)
    issues = [
        Issue(
            state="warn",
            evidence=f"{fact.kind} of {fact.name}, seen {fact.seen}, has expired {fact.expires}",
            fix=config.RECORD_FACTS,
        )
        for fact in recorded
        if fact.has_expired(context.at.date())
    ]
    if recorded:
        yield finding(_NAME, "facts", issues, fine=f"{len(recorded)}, and none has expired")


RECORDED_FACTS = Check(
    name=_NAME, title="recorded facts of the file are fresh", actions=(), run=_run
)
