"""Purchases, tried as pools of a cluster file before they are paid."""

import re
from collections.abc import Mapping
from datetime import datetime

from ultrascale import config
from ultrascale.catalog import eks, matrix, regions
from ultrascale.catalog.matrix import PurchaseOption
from ultrascale.catalog.provisioners import NODE_GROUPS, PROVISIONERS, Provisioner
from ultrascale.documents import mapping, sequence
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.advice.fragment import PLACEHOLDER_ACCOUNT, Entry
from ultrascale.plan.advice.model import Question
from ultrascale.plan.advice.trial import attempt
from ultrascale.plan.cluster import assemble
from ultrascale.plan.mistakes import all_mistakes

_POOL = "bought"
# In `attempt` the system pool comes first.
_PLACE = re.compile(r"^pools\.1\.")
_COUNTS = ("nodes", "shards")


class Purchase(Frozen):
    """Reserved capacity of one window, as AWS offers it."""

    option: PurchaseOption  # Purchase option
    region: str  # AWS Region
    instance_type: str  # EC2 name
    count: int  # Nodes
    zones: tuple[str, ...]  # Names or ids of its zones; empty where AWS does not name them
    starts: datetime  # Start of the window, in UTC
    ends: datetime  # End of the window, in UTC


class PoolOfFile(Frozen):
    """The pool of a cluster file that a purchase is for."""

    reading: config.Reading  # The file
    pool: str  # Name of the pool


def why_not_planned(purchase: Purchase) -> tuple[str, ...]:
    """Return why no pool of any provisioner can have ``purchase``; empty where one can."""
    reasons: dict[Provisioner, tuple[str, ...]] = {}
    for provisioner in PROVISIONERS:
        if not matrix.cell(provisioner, purchase.option).works:
            continue
        refused = _refused(purchase, provisioner)
        if not refused:
            return ()
        reasons[provisioner] = refused
    common = [
        line
        for line in next(iter(reasons.values()), ())
        if all(line in lines for lines in reasons.values())
    ]
    if common:
        return tuple(common)
    return tuple(
        f"{provisioner}: {line}" for provisioner, lines in reasons.items() for line in lines
    )


def why_not_in(place: PoolOfFile, purchase: Purchase) -> tuple[str, ...]:
    """Return why the pool of a cluster file cannot have ``purchase``; empty where it can.

    Args:
        place: The file, which has no mistakes, and the name of one of its pools.
        purchase: The purchase for the pool.
    """
    document = place.reading.document.value
    entries: list[Mapping[str, object]] = [mapping(entry) for entry in sequence(document, "pools")]
    (index,) = (number for number, entry in enumerate(entries) if entry["name"] == place.pool)
    entries[index] = _with_purchase(entries[index], purchase)
    reading = config.reads(config.dump({**document, "pools": entries}), source="")
    mistakes = reading.in_order(all_mistakes(reading))
    lines = [mistake.line(reading.document) for mistake in mistakes]
    if not lines and reading.cluster is not None:
        try:
            assemble(reading.cluster, place.reading.own_images)
        except CatalogError as error:
            lines = [str(error)]
    named = f"{config.named(document, ('pools', index))}."
    return tuple(f"pool {place.pool}: {line.removeprefix(named)}" for line in lines)


def _refused(purchase: Purchase, provisioner: Provisioner) -> tuple[str, ...]:
    counted = "max" if provisioner in NODE_GROUPS else "static"
    zones = _zones(purchase)
    entry: Entry = {
        "name": _POOL,
        "role": "reserved",
        "instance_types": [purchase.instance_type],
        "provisioner": provisioner,
        "purchase": _keys(purchase),
        "zones": list(zones),
        "nodes": {counted: purchase.count},
    }
    question = Question(
        workload="pre-training",
        instance_types=(purchase.instance_type,),
        nodes=purchase.count,
        region=purchase.region,
        zones=zones,
        at=purchase.starts,
        starts=purchase.starts,
        until=None,
        days=None,
        tolerance="checkpoint",
        coupled=False,
        kubernetes_version=eks.DEFAULT_VERSION,
    )
    return tuple(_PLACE.sub("", reason.text) for reason in attempt(question, [entry]).refused)


def _zones(purchase: Purchase) -> tuple[str, ...]:
    """Return the zones of a purchase; one of the Region where AWS does not name them."""
    return purchase.zones or (f"{purchase.region}a",)


def _with_purchase(entry: Mapping[str, object], purchase: Purchase) -> Entry:
    counted = "static" if "static" in mapping(entry, "nodes") else "max"
    rest = {key: value for key, value in entry.items() if key not in _COUNTS}
    # A burst pool becomes a reserved one with the purchase; a system pool is refused.
    role = entry.get("role", "reserved")
    return rest | {
        "role": role if role == "system" else "reserved",
        "instance_types": [purchase.instance_type],
        "purchase": _keys(purchase),
        "zones": list(_zones(purchase)),
        "nodes": {counted: purchase.count},
    }


def _keys(purchase: Purchase) -> Entry:
    keys: Entry = {
        "option": purchase.option,
        "starts": f"{purchase.starts:%Y-%m-%dT%H:%M:%SZ}",
        "ends": f"{purchase.ends:%Y-%m-%dT%H:%M:%SZ}",
    }
    if purchase.option == "training-plan":
        partition = regions.lookup_region(purchase.region).partition
        where = f"{purchase.region}:{PLACEHOLDER_ACCOUNT}"
        return keys | {"plan": f"arn:{partition}:sagemaker:{where}:training-plan/{_POOL}"}
    # No pool of a file has this id.
    return keys | {"reservation": "cr-" + "0" * 17}
