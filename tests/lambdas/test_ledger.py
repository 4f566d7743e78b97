"""The ledger of accelerators, by the real function against an API server and S3 over HTTP."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import date
from decimal import Decimal
from io import StringIO
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import assume, given, settings

from tests.support.ledger_aws import LedgerAws, reached_aws
from tests.support.ledger_call import call
from tests.support.ledger_life import (
    DAY,
    EVENT,
    EVERY,
    EXTENSION_CENTS,
    FEE_CENTS,
    GPUS,
    MIDNIGHT,
    RESERVATION,
    START,
    Life,
    Work,
    expected,
    lives,
)
from tests.support.ledgers import ledger, price_list, reservation
from tests.support.soak import cases
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import Object, Refusal, StubApiServer
from ultrascale.lambdas.kubernetes import KubernetesError
from ultrascale.lambdas.ledger import MEASURED, STATE, Row, Share, day_of, file_key, shares_of
from ultrascale.ledger.price import Line, group_by
from ultrascale.ledger.read import Blob


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[StubApiServer, LedgerAws]]:
    server = StubApiServer(token=None)
    with serve(server), reached_aws() as aws:
        yield server, aws


def rows(aws: LedgerAws) -> list[Row]:
    """Return all rows; fail if two of a node overlap."""
    found = aws.rows()
    nodes = [(row["node"], row["from"], row["to"]) for row in found if row["kind"] == "node"]
    for (name, _, end), (other, start, _) in pairwise(sorted(nodes)):
        assert name != other or end <= start
    return found


def shares(aws: LedgerAws) -> list[Share]:
    found = rows(aws)
    known = {row["reservation"]: row for row in found if row["kind"] == "reservation"}
    days = (MIDNIGHT - DAY, MIDNIGHT)
    return [share for day in days for share in shares_of(found, day, day + DAY, known)]


def owners(found: list[Share]) -> Counter[tuple[str, ...]]:
    sums: Counter[tuple[str, ...]] = Counter()
    for each in found:
        who = each.namespace or each.reason
        sums[each.reservation, who] += int(each.n) * (each.end - each.start)
    return +sums


def live(life: Life, server: StubApiServer, aws: LedgerAws, now: int, sent: Object = EVENT) -> None:
    life.show(server, now)
    aws.reservations, aws.extensions = [life.reservation(now)], life.extensions(now)
    call(sent, server.url, now)


def months(aws: LedgerAws, life: Life) -> Iterator[Sequence[Line]]:
    """Yield the priced lines of both months."""
    fee: dict[int | None, Decimal] = {life.window[1]: Decimal(FEE_CENTS) / 100}
    own = ledger(Path(), price_list(), {RESERVATION: fee})
    for start in (MIDNIGHT - DAY, MIDNIGHT):
        day = date.fromisoformat(day_of(start))
        own.kept[day] = [
            Blob(key, day, file) for key, file in aws.files().items() if str(day) in key
        ]
        month = own.showback(start, start + DAY)
        whole = sum(line.cents or 0 for line in month.lines)
        for name in ("team", "queue", "job", "pool", "type", "reservation", "reason"):
            groups = group_by(month.lines, attrgetter(name)).values()
            assert sum(group.total for group in groups) == whole
        yield month.lines


@settings(max_examples=cases(25, 250))
@given(life=lives())
def test_each_bought_second_has_one_owner_or_one_reason(
    servers: tuple[StubApiServer, LedgerAws], life: Life
) -> None:
    server, aws = servers
    aws.objects.clear()
    for now in life.samples:
        live(life, server, aws, now)

    found = shares(aws)
    sums = owners(found)
    assert sums == +expected(life)
    low, high = (min(max(at, START), life.samples[-1]) for at in life.paid)
    paid = sum(amount for (pays, _), amount in sums.items() if pays)
    assert paid == life.bought * GPUS * (high - low)
    for team in ("training", "notebooks"):
        own = [work for work in life.work if work.namespace == team]
        truth = sum(work.gpus * life.seconds(work) for work in own)
        had = sum(amount for (_, who), amount in sums.items() if who == team)
        unseen = len(life.missed) * EVERY
        assert abs(had - truth) <= sum(work.gpus * (2 * EVERY + unseen) for work in own)
    fee = FEE_CENTS + (EXTENSION_CENTS if life.extension else 0)
    lines = [line for month in months(aws, life) for line in month if line.key.reservation]
    assert sum(line.cents or 0 for line in lines) == fee
    charged = {line.key.namespace for line in lines if line.key.namespace and line.cents}
    assert charged <= {who for pays, who in sums if pays}


@settings(max_examples=cases(10, 100))
@given(life=lives())
def test_what_idles_is_priced_under_the_reason_that_the_ledger_has(
    servers: tuple[StubApiServer, LedgerAws], life: Life
) -> None:
    assume(len(life.nodes) <= life.bought)
    server, aws = servers
    aws.objects.clear()
    event = {**EVENT, "rates": {"gpu-block-mng": 80.0}}
    for now in life.samples:
        with redirect_stdout(StringIO()) as out:
            live(life, server, aws, now, event)
        events: list[Object] = [*map(json.loads, out.getvalue().splitlines())]
        shown = {
            each.get("Reason"): each["PaidIdlePerHour"]
            for each in events
            if "PaidIdlePerHour" in each
        }
        truth: Counter[str] = Counter()
        for (_, who), accelerators in life.owners(now, now).items():
            if who in MEASURED:
                truth[who] += 80 * accelerators // GPUS
        assert shown == {None: sum(truth.values()), **{name: truth[name] for name in MEASURED}}


# --- Calls that die, meet, or are refused ---------------------------------------------------------

# Something ends at each call.
_TIMES = [MIDNIGHT - 90 + EVERY * number for number in range(5)]
_SPANS = [(START, at + 1) for at in _TIMES]
BUSY = Life(
    bought=2,
    window=(_TIMES[0], MIDNIGHT + 3_600),
    nodes=((START, MIDNIGHT + 3_600), (START, MIDNIGHT + 3_600)),
    broken=((0, 0), (0, 0)),
    cordoned=((0, 0), (0, 0)),
    work=tuple(Work(number % 2, span, 1, "training", 0) for number, span in enumerate(_SPANS)),
    waits=(0, 0),
    calls=tuple(_TIMES),
)
_FILE = file_key("2026-12-31", _TIMES[1])


def child_call(server: StubApiServer, now: int) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.ledger_call"], stdin=subprocess.PIPE
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps({"event": EVENT, "url": server.url, "now": now}).encode())
    child.stdin.close()
    return child


def truth(*calls: int) -> Counter[tuple[str, ...]]:
    return expected(replace(BUSY, missed=frozenset(_TIMES[number] for number in calls)))


@pytest.mark.parametrize(
    ("when", "key", "lost"),
    [
        ("before", STATE, True),
        ("after", STATE, False),
        ("before", _FILE, False),
        ("after", _FILE, False),
    ],
)
def test_a_call_that_dies_loses_nothing_but_its_own_measurement(
    servers: tuple[StubApiServer, LedgerAws], when: str, key: str, lost: bool
) -> None:
    server, aws = servers
    aws.objects.clear()
    live(BUSY, server, aws, _TIMES[0])
    BUSY.show(server, _TIMES[1])
    child = child_call(server, _TIMES[1])

    def kill(method: str, written: str) -> int | None:
        if method == "GET" or not written.startswith(key):
            return None
        child.kill()
        child.wait()
        return 503

    if when == "before":
        aws.on_request = kill
    else:
        aws.on_written = lambda written: kill("PUT", written)
    assert child.wait(timeout=60) == -signal.SIGKILL
    aws.on_request, aws.on_written = _nothing, lambda _key: None
    for now in _TIMES[2:]:
        live(BUSY, server, aws, now)
    assert owners(shares(aws)) == truth(*([1] if lost else []))


def _nothing(_method: str, _key: str) -> int | None:
    return None


@pytest.mark.parametrize(
    ("method", "key", "status", "lost"),
    [
        ("PUT", STATE, 412, True),
        ("PUT", STATE, 503, True),
        ("PUT", _FILE, 503, False),
        ("GET", STATE, 0, True),
        ("GET", STATE, 503, True),
        ("POST", "DescribeCapacityReservations", 503, True),
    ],
)
def test_a_call_that_aws_refuses_loses_nothing_but_its_own_measurement(
    servers: tuple[StubApiServer, LedgerAws],
    capsys: pytest.CaptureFixture[str],
    method: str,
    key: str,
    status: int,
    lost: bool,
) -> None:
    server, aws = servers
    aws.objects.clear()
    for number, now in enumerate(_TIMES):
        if number == 1:
            aws.on_request = lambda asked, name: (
                status if (asked, name[: len(key)]) == (method, key) else None
            )
        live(BUSY, server, aws, now)
        aws.on_request = _nothing
        # The metrics do not stop; the alarm counts the calls that wrote the ledger.
        out = capsys.readouterr().out
        assert '"AcceleratorsInUse"' in out
        assert ('"LedgerRows"' in out) == (number != 1)
    assert owners(shares(aws)) == truth(*([1] if lost else []))


def test_two_calls_at_once_count_no_second_twice(servers: tuple[StubApiServer, LedgerAws]) -> None:
    server, aws = servers
    aws.objects.clear()
    live(BUSY, server, aws, _TIMES[0])
    BUSY.show(server, _TIMES[1])
    both = Barrier(2)

    def wait_for_both(method: str, key: str) -> None:
        if (method, key) == ("PUT", STATE):
            both.wait(60)

    aws.on_request = wait_for_both
    children = [child_call(server, _TIMES[1] + late) for late in (0, 3)]
    assert [child.wait(60) for child in children] == [0, 0]
    aws.on_request = _nothing
    for now in _TIMES[2:]:
        live(BUSY, server, aws, now)
    sums = owners(shares(aws))
    assert sum(sums.values()) == 2 * GPUS * (_TIMES[-1] - _TIMES[0])
    assert abs(sums[RESERVATION, "training"] - truth()[RESERVATION, "training"]) <= 3 * len(_TIMES)


def test_a_clock_that_goes_back_counts_no_second_twice(
    servers: tuple[StubApiServer, LedgerAws],
) -> None:
    server, aws = servers
    aws.objects.clear()
    for now in (*_TIMES[:3], _TIMES[1] + 7, *_TIMES[3:]):
        live(BUSY, server, aws, now)
    assert owners(shares(aws)) == truth()


def test_a_lost_state_costs_what_was_open_and_counts_no_second_twice(
    servers: tuple[StubApiServer, LedgerAws],
) -> None:
    server, aws = servers
    aws.objects.clear()
    for number, now in enumerate(_TIMES):
        if number == 3:
            del aws.objects[STATE]
        live(BUSY, server, aws, now)
    sums, whole = owners(shares(aws)), truth()
    assert sum(sums.values()) == 2 * GPUS * (_TIMES[-1] - _TIMES[0])
    assert sums[RESERVATION, "training"] < whole[RESERVATION, "training"]
    assert sums[RESERVATION, "not measured"] > whole[RESERVATION, "not measured"]


_WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"


@pytest.mark.parametrize(("refused", "lost"), [("/api/v1/pods", True), (_WORKLOADS, False)])
def test_a_cluster_that_refuses_its_pods_is_not_measured(
    servers: tuple[StubApiServer, LedgerAws], refused: str, *, lost: bool
) -> None:
    server, aws = servers
    aws.objects.clear()
    event = {**EVENT, "queues": _WORKLOADS}
    for number, now in enumerate(_TIMES):
        if number == 2:
            server.refuse("GET", f"{refused}$", Refusal(403, times=1))
            with pytest.raises(KubernetesError):
                live(BUSY, server, aws, now, event)
        else:
            live(BUSY, server, aws, now, event)
    assert owners(shares(aws)) == truth(*([2] if lost else []))


def test_a_gap_is_charged_to_the_reservations_that_were_there_beside_it() -> None:
    hour = 3_600
    kept, gone, new = (
        [reservation(a * hour, b * hour, None, reservation=name) for a, b in times]
        for name, times in (("kept", [(0, 9), (10, 24)]), ("gone", [(0, 8)]), ("new", [(12, 24)]))
    )
    gap: Row = {"v": 1, "kind": "gap", "from": 9 * hour, "to": 10 * hour}
    found = shares_of([*kept, *gone, *new, gap], 0, DAY)
    assert {share.reservation for share in found if share.reason == "not measured"} == {"kept"}
