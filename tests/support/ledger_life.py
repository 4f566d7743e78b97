"""The life of a cluster with a Capacity Block, second by second, and who had its accelerators."""

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

import yaml
from hypothesis import strategies as st

from tests.support.fleet import node, pod, pool
from tests.support.folders import ROOT
from tests.support.ledger_aws import BUCKET
from tests.support.observability_plans import of, planned
from tests.support.stub_api_server import Object, StubApiServer

DOCUMENT: Object = {
    **yaml.safe_load((ROOT / "clusters" / "mixed-capacity.yaml").read_text()),
    "observability": {"ledger": {}},
    "scheduling": {},
}
PLAN = planned(DOCUMENT)
EVENT: Object = json.loads(json.dumps({**of(PLAN).fleet_metrics.input, "exporters": None}))
EVENT["ledger"]["bucket"] = BUCKET
(_OWN,) = (own for own in EVENT["ledger"]["reserved"] if own["pool"] == "gpu-block-mng")
# Short enough for a life of twenty minutes; nodes of a block drain 40 minutes before its end.
assert _OWN["lead"] == 2_400
_OWN["lead"] = LEAD = 400
BLOCK, RESERVATION = pool(PLAN, "gpu-block-mng"), "cr-0bbbbbbbbbbbbbbb2"
GPUS, EVERY, DAY = 8, 60, 86_400
MIDNIGHT = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
START, END = MIDNIGHT - 600, MIDNIGHT + 600
FEE_CENTS, EXTENSION_CENTS = 100_001, 33_337
_TEAMS = ("training", "notebooks")

Span = tuple[int, int]


@dataclass(frozen=True)
class Work:
    """A pod."""

    node: int
    span: Span
    gpus: int
    namespace: str
    starting: int  # Seconds until it runs


@dataclass(frozen=True)
class Life:
    """Events, in seconds since 1970; a node is broken or cordoned for a while."""

    bought: int
    window: Span
    nodes: tuple[Span, ...]
    broken: tuple[Span, ...]
    cordoned: tuple[Span, ...]
    work: tuple[Work, ...]
    waits: Span
    extension: Span | None = None  # Its purchase, and the end then
    missed: frozenset[int] = field(default_factory=frozenset[int])
    calls: tuple[int, ...] = tuple(range(START, END + 1, EVERY))

    @property
    def paid(self) -> Span:
        """The time of the reservation with its extension."""
        return self.window[0], self.window[1] if self.extension is None else self.extension[1]

    @property
    def samples(self) -> list[int]:
        """The times of the calls; the last one is the end."""
        return [at for at in self.calls if at not in self.missed]

    def seconds(self, work: Work) -> int:
        """Return how long a pod had its accelerators."""
        start, end = zip(work.span, self.nodes[work.node], strict=True)
        return max(0, min(end) - max(start))

    def owners(self, seen: int, now: int) -> Counter[tuple[str, ...]]:
        """Return who has the accelerators at ``now``, as far as a look at ``seen`` shows it.

        Times of the reservation are known to the second.
        """
        found: Counter[tuple[str, ...]] = Counter()
        there = [i for i, span in enumerate(self.nodes) if _within(seen, span)]
        paid, drained = _within(now, self.paid), now >= self.paid[1] - LEAD
        if paid:
            came = any(
                _within(at, span) for span in self.nodes for at in self.samples if at <= seen
            )
            reason = "drain" if drained else "missing" if came else "window start"
            found[RESERVATION, reason] += max(self.bought - len(there), 0) * GPUS
        for place, i in enumerate(there):
            pays = RESERVATION if paid and place < self.bought else ""
            left = GPUS
            for work in self.work:
                if work.node == i and _within(seen, work.span):
                    found[pays, work.namespace] += work.gpus
                    left -= work.gpus
            reason = "job waits" if _within(seen, self.waits) else "no job"
            reason = "cordoned" if _within(seen, self.cordoned[i]) else reason
            reason = "unhealthy" if _within(seen, self.broken[i]) else reason
            found[pays, "drain" if drained and pays else reason] += left
        return found

    def show(self, server: StubApiServer, now: int) -> None:
        """Let an API server have what is there."""
        server.objects.clear()
        for i, span in enumerate(self.nodes):
            if _within(now, span):
                made = node(f"n{i}", BLOCK, ready=not _within(now, self.broken[i]))
                made["spec"] = {
                    "providerID": f"aws:///us-east-2c/i-{i:08x}",
                    "unschedulable": _within(now, self.cordoned[i]),
                }
                server.put(f"/api/v1/nodes/n{i}", made)
        for number, work in enumerate(self.work):
            if _within(now, work.span) and _within(now, self.nodes[work.node]):
                runs = now >= work.span[0] + work.starting
                made = pod(
                    f"p{number}",
                    f"n{work.node}",
                    asks=str(work.gpus),
                    namespace=work.namespace,
                    job=f"job-{number}",
                    phase="Running" if runs else "Pending",
                )
                server.put(f"/api/v1/namespaces/{work.namespace}/pods/p{number}", made)
        if _within(now, self.waits):
            server.put("/api/v1/namespaces/training/pods/w", pod("w", asks="1"))

    def reservation(self, now: int = 0) -> Object:
        """Return the reservation as EC2 describes it."""
        window = self.paid if self.extensions(now) else self.window
        start, end = map(_text, window)
        return {
            "capacityReservationId": RESERVATION,
            "reservationType": "capacity-block",
            "instanceType": "p5.48xlarge",
            "totalInstanceCount": self.bought,
            "availableInstanceCount": 0,
            "state": "active",
            "startDate": start,
            "endDate": end,
        }

    def extensions(self, now: int) -> list[Object]:
        """Return the extensions that EC2 tells."""
        if self.extension is None or now < self.extension[0]:
            return []
        own = {
            "capacityReservationId": RESERVATION,
            "capacityBlockExtensionStatus": "payment-succeeded",
            "capacityBlockExtensionStartDate": _text(self.window[1]),
            "capacityBlockExtensionEndDate": _text(self.extension[1]),
            "upfrontFee": f"{EXTENSION_CENTS / 100:.2f}",
        }
        return [own]


def expected(life: Life) -> Counter[tuple[str, ...]]:
    """Return accelerator-seconds until the last call: each call holds until the next one."""
    found: Counter[tuple[str, ...]] = Counter()
    for before, after in pairwise(life.samples):
        held = before + EVERY if after - before > 1.5 * EVERY else after
        for now in range(before, after):
            if now < held:
                found += life.owners(before, now)
            elif _within(now, life.paid):
                found[RESERVATION, "not measured"] += life.bought * GPUS
    return found


@st.composite
def lives(draw: st.DrawFn) -> Life:
    """Draw a life of twenty minutes around midnight."""
    moments = st.integers(START, END)

    def span() -> Span:
        first, last = sorted((draw(moments), draw(moments)))
        return first, last

    nodes = [span() for _ in range(draw(st.integers(0, 3)))]
    work: list[Work] = []
    for place, _ in enumerate(nodes):
        for _ in range(draw(st.integers(0, 2))):
            # Two pods of one node fit beside each other.
            asks, starting = draw(st.integers(1, GPUS // 2)), draw(st.integers(0, 120))
            work.append(Work(place, span(), asks, draw(st.sampled_from(_TEAMS)), starting))
    calls = range(START + EVERY, END, EVERY)
    first, last = sorted(draw(st.lists(moments, min_size=2, max_size=2, unique=True)))
    window, extension = (first, last), None
    # A call sees it before the nodes drain, though it misses four.
    latest = window[1] - LEAD - 6 * EVERY
    if latest > START and window[1] < END and draw(st.booleans()):
        extension = draw(st.integers(START, latest)), draw(st.integers(window[1] + 1, END))
    return Life(
        bought=draw(st.integers(1, 3)),
        window=window,
        extension=extension,
        nodes=tuple(nodes),
        broken=tuple(span() for _ in nodes),
        cordoned=tuple(span() for _ in nodes),
        work=tuple(work),
        waits=span(),
        missed=frozenset(draw(st.lists(st.sampled_from(calls), max_size=4))),
    )


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def _within(now: int, span: Span) -> bool:
    return span[0] <= now < span[1]
