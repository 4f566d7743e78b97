"""Files of a ledger, written as the function writes them, for days of a small cluster's life."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import cast

from ultrascale import plan
from ultrascale.account import Account
from ultrascale.catalog.prices import Price, PriceList, catalog_prices
from ultrascale.lambdas.ledger import DAY, NodeRow, ReservationRow, Row, day_of, file_key
from ultrascale.lambdas.ledger_state import State, advance
from ultrascale.ledger.showback import Ledger, Showback
from ultrascale.plan import ClusterPlan

TYPE, POOL, BLOCK = "p5en.48xlarge", "gpu-reserved-block", "cr-0aaaaaaaaaaaaaaa1"
FILE = Path(__file__).parents[2] / "clusters" / "mixed-capacity.yaml"
SIZE = 8
_TIMES = {"v", "from", "to"}


def utc(text: str) -> int:
    """Return a time of UTC, such as ``2026-12-03`` or ``2026-12-03T11:30``, since the epoch."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@cache
def cluster() -> ClusterPlan:
    return plan.load(FILE)


def reservation(
    start: int, end: int, window: Sequence[int] | None, bought: int = 2, **own: object
) -> ReservationRow:
    row = {
        **{"v": 1, "kind": "reservation", "from": start, "to": end, "reservation": BLOCK},
        **{"pool": POOL, "type": TYPE, "purchase": "capacity-block", "accelerators": SIZE},
        **{"bought": bought, "available": 0, "state": "active", "started": True, "fees": []},
        **{"window": window and list(window), "usable": window and window[1] - 2400, **own},
    }
    return cast("ReservationRow", row)


def node(
    start: int, end: int, number: int, parts: Sequence[Mapping[str, object]], **own: object
) -> NodeRow:
    row = {
        **{"v": 1, "kind": "node", "from": start, "to": end, "node": f"ip-10-0-0-{number}"},
        **{"instance": f"i-{number:017x}", "type": TYPE, "pool": POOL, "zone": "us-east-2b"},
        **{"purchase": "capacity-block", "reservation": BLOCK, "accelerators": SIZE},
        **{"parts": list(parts), **own},
    }
    return cast("NodeRow", row)


def next_state(
    state: State | None, rows: Iterable[Row], now: int, every: int, used: Mapping[str, float]
) -> State:
    """Return a state after a measurement of ``rows``, and of the use of pools."""
    values = {
        f"{row['kind']}/{number}": json.dumps({k: row[k] for k in row if k not in _TIMES})
        for number, row in enumerate(rows)
    }
    head = {"cluster": "mixed-capacity", "region": "us-east-2", "account": ""}
    after = advance(state, values.items(), now, every, head)
    assert after is not None
    return after.with_use(used)


def busy(team: str, n: int = SIZE, job: str = "train", queue: str = "") -> Mapping[str, object]:
    names = {"namespace": f"ns-{team}", "team": team, "queue": queue or team, "job": job}
    return {"n": n, "state": "running", **names}


def idle(reason: str = "no job", n: int = SIZE) -> Mapping[str, object]:
    return {"n": n, "state": "idle", "reason": reason}


def write(folder: Path, rows: Iterable[Row], name: str = "mixed-capacity", v: int = 1) -> Path:
    """Write rows, cut at midnight, as the ledger of a cluster into a folder."""
    days: dict[str, list[Row]] = {}
    for row in rows:
        for start in range(row["from"] - row["from"] % DAY, row["to"], DAY):
            low, high = max(row["from"], start), min(row["to"], start + DAY)
            days.setdefault(day_of(start), []).append(cast("Row", {**row, "from": low, "to": high}))
    for seq, (day, own) in enumerate(sorted(days.items())):
        head = {"v": v, "kind": "file", "cluster": name, "region": "us-east-2", "every": 60}
        file = folder / file_key(day, seq)
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [{**head, "account": "", "day": day, "seq": seq}, *own]
        file.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return folder


def price_list(fee: str | None = None, **rates: float) -> PriceList:
    """Return prices: a fee of the block, and rates of its type by service with ``_`` for ``-``."""
    items = [(name.replace("_", "-"), TYPE, "hour", usd) for name, usd in rates.items()]
    if fee is not None:
        items.append(("ec2-capacity-block", BLOCK, "fee", float(fee)))
    own = (
        Price(
            region="us-east-2",
            service=service,
            item=item,
            unit=unit,
            price=usd,
            currency="USD",
            valid_on=date(2026, 12, 1),
            source="contract",
        )
        for service, item, unit, usd in items
    )
    return catalog_prices().under(PriceList(own))


def ledger(
    folder: Path, prices: PriceList, fees: Mapping[str, Mapping[int | None, Decimal]] | None = None
) -> Ledger:
    """Return the ledger in a folder; ``fees`` are the file's, by reservation or pool."""

    def no_account() -> Account:
        raise AssertionError("a folder needs no account")

    return Ledger(cluster(), str(folder), no_account, prices, fees or {}, {"a": "4711"}, {})


def priced(folder: Path, first: str, last: str, prices: PriceList) -> Showback:
    return ledger(folder, prices).showback(utc(first), utc(last))
