"""The nodes of a reserved pool, renewed some at a time: each ends before its successor starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ultrascale.errors import AccountError, ClusterError
from ultrascale.operate.clock import Clock, wait
from ultrascale.operate.drain import Drain
from ultrascale.operate.fleets import Fleet, Old

_LOOK_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast nodes are renewed, and how long each step may take.

    Attributes:
        batch: Nodes at a time.
        until: No batch begins later, and no drain lasts longer; None sets no end.
        drain_minutes: For the pods of a batch to leave.
        broken: How many of the other nodes may be missing or take no work: of thousands some do.
        join_minutes: For old nodes to be gone, and again for new ones to take work.
    """

    batch: int
    until: datetime | None
    drain_minutes: float
    join_minutes: float
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Roll:
    """One renewal of a pool's nodes.

    Attributes:
        fleet: The nodes.
        drain: What empties them.
        pace: How fast.
        clock: The clock.
        say: Is told of each step.
    """

    fleet: Fleet
    drain: Drain
    pace: Pace
    clock: Clock
    say: Callable[[str], None]

    def run(self, agreed: Sequence[Old]) -> Sequence[Old]:
        """Renew nodes on an older template, and return those that the time was too short for.

        It can be repeated at any time: nodes that are new are left alone, and what a run that was
        broken off has begun is finished first.

        Args:
            agreed: The nodes. No other is touched, whatever drifts meanwhile.

        Raises:
            ClusterError: A step failed or took too long; nothing after it was begun.
        """
        self._until_whole(agreed)
        while left := self._still_old(agreed):
            if self.pace.until is not None and self.clock.now() >= self.pace.until:
                return left
            batch, rest = left[: self.pace.batch], left[self.pace.batch :]
            self._renew(batch, rest)
            self.say(f"{len(batch)} renewed, {len(rest)} to go")
        return ()

    def _still_old(self, agreed: Sequence[Old]) -> Sequence[Old]:
        """Return those that nobody else has renewed or ended meanwhile."""
        found: list[Old] = []

        def look() -> str:
            found[:] = self.fleet.old()
            return ""

        self._wait(look, self.pace.join_minutes)
        old = {each.id: each for each in found}
        return [old[each.id] for each in agreed if each.id in old]

    def _renew(self, batch: Sequence[Old], rest: Sequence[Old]) -> None:
        nodes = [each.node for each in batch if each.node]
        self.say(f"renewing {', '.join(each.id for each in batch)}")
        try:
            self._wait(lambda: self._cordoned(nodes), self.pace.join_minutes)
            self._wait(lambda: self.drain.waiting_for(nodes), self._drain_minutes())
            self._wait(lambda: self._ended(batch), self.pace.join_minutes)
        except KeyboardInterrupt:
            if nodes:
                self.say(_stay_cordoned(nodes))
            raise
        except (AccountError, ClusterError) as error:
            if not nodes:
                raise
            raise ClusterError(f"{error}; {_stay_cordoned(nodes)}") from error
        self._wait(lambda: self.fleet.waiting_for_end(batch), self.pace.join_minutes)
        if self.fleet.pause_seconds:
            self.clock.sleep(self.fleet.pause_seconds)
        self._until_whole(rest)

    def _cordoned(self, nodes: Sequence[str]) -> str:
        for node in nodes:
            self.drain.cordon(node)
        return ""

    def _ended(self, batch: Sequence[Old]) -> str:
        for each in batch:
            self.fleet.end(each)
        return ""

    def _until_whole(self, old: Sequence[Old]) -> None:
        """Return once all nodes but ``old`` are new and take work, as far as they have to."""
        self._wait(
            lambda: self.fleet.waiting_for_rest(old, broken=self.pace.broken),
            self.pace.join_minutes,
        )

    def _drain_minutes(self) -> float:
        if self.pace.until is None:
            return self.pace.drain_minutes
        left = (self.pace.until - self.clock.now()).total_seconds() / 60
        return max(0.0, min(self.pace.drain_minutes, left))

    def _wait(self, look: Callable[[], str], minutes: float) -> None:
        wait(
            self.clock,
            look,
            minutes=minutes,
            every=_LOOK_SECONDS,
            say=self.say,
            stuck=self.fleet.trouble,
        )


def _stay_cordoned(nodes: Sequence[str]) -> str:
    return (
        f"{', '.join(nodes)} stay cordoned and paid for, unless they have ended: run this again, "
        f"or `kubectl uncordon {' '.join(nodes)}`"
    )
