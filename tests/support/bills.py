"""Lines of CUR 2.0 for a ledger's rows, in each variant that AWS's pages leave open."""

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.support.ledgers import BLOCK, TYPE
from ultrascale.lambdas.ledger import Row

ARN = f"arn:aws:ec2:us-east-2:111122223333:capacity-reservation/{BLOCK}"
CR_ARN = "capacity_reservation_capacity_reservation_arn"
HOUR = 3600
Cur = dict[str, str]
COLUMNS = (
    "identity_line_item_id",
    "line_item_resource_id",
    "line_item_usage_type",
    "line_item_operation",
    "line_item_line_item_type",
    "line_item_usage_start_date",
    "line_item_usage_end_date",
    "line_item_usage_amount",
    "line_item_unblended_cost",
    "line_item_net_unblended_cost",
    "line_item_currency_code",
    "reservation_effective_cost",
    "savings_plan_savings_plan_effective_cost",
    CR_ARN,
    "capacity_reservation_capacity_reservation_type",
    "split_line_item_parent_resource_id",
    "resource_tags",
)


def line(
    start: int, usage: str, usd: float | str, *, hours: float = 1, item: str = "Usage", **own: str
) -> Cur:
    """Return a line of an hour; ``own`` has other columns, or their last words."""
    first, last = (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in (start, start + HOUR)
    )
    return {
        **dict.fromkeys(COLUMNS, ""),
        "line_item_usage_type": f"USE2-{usage}",
        "line_item_line_item_type": item,
        "line_item_usage_start_date": first,
        "line_item_usage_end_date": last,
        "line_item_usage_amount": f"{hours:.10f}",
        "line_item_unblended_cost": usd if isinstance(usd, str) else f"{usd:.10f}",
        "line_item_net_unblended_cost": usd if isinstance(usd, str) else f"{usd / 2:.10f}",
        "line_item_currency_code": "USD",
        **columns(own),
    }


def columns(own: Mapping[str, str]) -> Cur:
    short = {
        "resource": "line_item_resource_id",
        "operation": "line_item_operation",
        "parent": "split_line_item_parent_resource_id",
        "arn": CR_ARN,
        "tags": "resource_tags",
    }
    return {short.get(name, name): value for name, value in own.items()}


def fee_line(start: int, usd: str, *, arn: str = "", item: str = "Fee") -> Cur:
    return line(start, f"CapacityBlockFee:{TYPE}", usd, item=item, arn=arn)


def lines_of(
    rows: Iterable[Row], rate: float, *, amortized: float = 0, split: bool = False
) -> list[Cur]:
    """Return the hours of a ledger's instances: those in a block at $0, others at ``rate``.

    Args:
        rows: Rows.
        rate: US dollars of a node-hour.
        amortized: Part of the block's fee on each of its hours.
        split: Whether split cost data stands beside its parents.
    """
    seconds: dict[tuple[str, str, int], int] = defaultdict(int)
    for row in rows:
        if row["kind"] != "node":
            continue
        for hour in range(row["from"] - row["from"] % HOUR, row["to"], HOUR):
            overlap = min(row["to"], hour + HOUR) - max(row["from"], hour)
            seconds[row["instance"], row["purchase"], hour] += overlap
    made: list[Cur] = []
    tags = json.dumps({"aws_eks_cluster_name": "mixed-capacity"})
    for (instance, purchase, hour), held in sorted(seconds.items()):
        hours = held / HOUR
        block = purchase == "capacity-block"
        usage = "SpotUsage" if purchase == "spot" else "BoxUsage"
        usd = 0 if block else rate * hours
        own = {"resource": instance, "tags": tags}
        if block:
            own |= {"operation": "RunInstances:CB", "arn": ARN}
            own |= {"reservation_effective_cost": f"{amortized * hours}"}
        item = "DiscountedUsage" if block and amortized else "Usage"
        made.append({**line(hour, f"{usage}:{TYPE}", usd, hours=hours, item=item), **columns(own)})
        if split:
            pod = line(hour, "EKS-EC2-vCPU-Hours", usd / 2, operation="EKSPod-EC2", parent=instance)
            made.append(pod)
    return made


def write(file: Path, lines: Sequence[Cur], without: Sequence[str] = ()) -> Path:
    """Write lines, each with an id of its own unless it has one; gzip by the file's name."""
    names = [name for name in COLUMNS if name not in without]
    opened = gzip.open(file, "wt") if file.suffix == ".gz" else file.open("w")  # noqa: SIM115
    with opened as stream:
        writer = csv.DictWriter(stream, names, extrasaction="ignore")
        writer.writeheader()
        for number, item in enumerate(lines):
            own: Mapping[str, str] = {"identity_line_item_id": f"{file.name}-{number}"}
            writer.writerow({**item, **({} if item["identity_line_item_id"] else own)})
    return file
