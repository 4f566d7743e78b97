"""Vote of all workers, once a step, on whether to stop; all workers get the same answer.

The workers form a tree: the first worker of each node collects the votes of its node and of at most
`FANOUT` other nodes, and passes the answer down. So a worker has one connection, or two dozen if
it collects; in a full mesh of gloo it would have a connection to each other worker. The answer to a
vote is read `lag` votes later, when it has long arrived, so no worker waits for it.

The same connections show which worker is lost, which worker hangs, and how long each node works.
"""

import hmac
import json
import os
import secrets
import selectors
import socket
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from threading import Condition, Thread
from typing import NamedTuple, TypeVar, cast

import torch.distributed as dist

from ultrascale_training.errors import VoteLost
from ultrascale_training.hangs import Hang, Suspect
from ultrascale_training.vote_wire import Peer, family, own_address

# 4,369 nodes are at most three hops from the first node, 69,905 at most four.
FANOUT = 16
# Votes between two reports of the nodes' working times.
REPORT_EVERY = 10
# Longest wait for answers of workers below in the search for a hanging worker; each level waits for
# less than the level above.
_PROBE_SECONDS = 8.0
_PROBE_SHARE = 0.6
_POLL_SECONDS = 0.5
# Time for workers that arrive after another has gone: they would take this worker for the lost one.
_LATE_SECONDS = 5.0
_T = TypeVar("_T")
# Number of votes that `join` has begun in this process; all workers begin their votes in the same
# order.
_VOTES = count()


@dataclass(frozen=True, kw_only=True)
class Place:
    """Place of a worker among nodes and on its node."""

    node: int  # Number of its node, from 0
    nodes: int  # Nodes of the job
    local_rank: int  # Number of the worker on its node, from 0
    local_world: int  # Workers of its node


class NodeTime(NamedTuple):
    """Seconds that a node's slowest worker works in a step, without waiting for other workers."""

    node: int
    rank: int
    seconds: float


def join(
    timeout: timedelta,
    *,
    lag: int = 1,
    hang_seconds: float | None = None,
    on_hang: Callable[[Hang], None] | None = None,
    on_asked: Callable[[bool], None] | None = None,
    on_lost: Callable[[VoteLost], None] | None = None,
) -> "StopVote":
    """Return the vote of all workers of the default process group; torchrun states their places.

    Args:
        timeout: As for `StopVote`.
        lag: Votes between a vote and its answer.
        hang_seconds: Seconds without a step after which the search for the cause begins.
        on_hang: Called with the cause, on the first worker.
        on_asked: Called on each worker when a step hangs, with whether the worker is suspected.
        on_lost: Called with the error that `cast` will raise, as soon as a worker is lost.
    """
    rank, world = dist.get_rank(), dist.get_world_size()
    # The names of `TORCHELASTIC`: https://docs.pytorch.org/docs/stable/elastic/run.html
    numbers = [
        os.environ.get(name)
        for name in ("GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    ]
    place = None
    if None not in numbers:
        node, nodes, local_rank, local_world = (int(cast(str, number)) for number in numbers)
        place = Place(node=node, nodes=nodes, local_rank=local_rank, local_world=local_world)
    store = dist.distributed_c10d._get_default_store()  # pyright: ignore[reportPrivateUsage]
    return StopVote(
        dist.PrefixStore(f"ultrascale/vote/{next(_VOTES)}", store),
        rank=rank,
        world=world,
        timeout=timeout,
        place=place,
        lag=lag,
        hang_seconds=hang_seconds,
        on_hang=on_hang,
        on_asked=on_asked,
        on_lost=on_lost,
    )


class _Tally:
    """Votes of a step that a worker has received."""

    def __init__(self) -> None:
        self.votes = 0
        self.wishes = 0
        self.times: dict[int, tuple[int, float]] = {}

    def add(self, wishes: int, times: Sequence[NodeTime]) -> None:
        self.votes += 1
        self.wishes += wishes
        for node, rank, seconds in times:
            if seconds >= self.times.get(node, (0, -1.0))[1]:
                self.times[node] = (rank, seconds)


class _Probe:
    """Search for a hanging worker, among this worker and the workers below it."""

    def __init__(self, *, deadline: float, suspects: list[Suspect]) -> None:
        self.deadline = deadline
        self.suspects = suspects
        self.answered: set[int] = set()


class StopVote:
    """A worker's part in the vote.

    Args:
        store: Store of the job, with a prefix that no other vote of this start has.
        rank: Rank of this worker.
        world: Workers of the job.
        timeout: Longest time that `cast` and `close` wait for other workers.
        place: Place of this worker; with None, each worker counts as a node of its own.
        lag: Votes between a vote and its answer; 0 makes `cast` wait for all workers.
        hang_seconds: Time without a complete vote after which the first worker looks for the
            cause; None never does. It may be changed at any time.
        on_hang: Called with the cause, on the first worker.
        on_asked: Called on each worker when a step hangs, with whether the worker is suspected.
        on_lost: Called with the error that `cast` will raise, as soon as a worker is lost: this
            worker may be in a collective, and not call `cast` for minutes.
        address: Address at which other workers reach this one; with None, the address from which
            ``MASTER_ADDR`` is reached.
    """

    def __init__(
        self,
        store: dist.Store,
        *,
        rank: int,
        world: int,
        timeout: timedelta,
        place: Place | None = None,
        lag: int = 1,
        hang_seconds: float | None = None,
        on_hang: Callable[[Hang], None] | None = None,
        on_asked: Callable[[bool], None] | None = None,
        on_lost: Callable[[VoteLost], None] | None = None,
        address: str | None = None,
    ) -> None:
        place = place or Place(node=rank, nodes=world, local_rank=0, local_world=1)
        self._rank, self._place = rank, place
        self._timeout = timeout.total_seconds()
        self._lag = lag
        self.hang_seconds, self._on_hang = hang_seconds, on_hang
        self._resting = False
        self._on_asked, self._on_lost = on_asked, on_lost
        self._store = store
        self._name = os.environ.get("ULTRASCALE_NODE") or socket.gethostname()
        self._changed = Condition()
        self._tallies: dict[int, _Tally] = {}
        self._answers: dict[int, bool] = {}
        self._casts = 0
        self._complete, self._complete_at = -1, time.monotonic()
        self._lost: VoteLost | None = None
        self._lost_at = 0.0
        self._probe: _Probe | None = None
        self._probed = -2
        self._leaving = self._done = False
        self._working_since: float | None = None
        self._seconds = 0.0
        self._node_times: Sequence[NodeTime] = ()
        self._expected, self._parent = 0, None
        self._children: list[Peer] = []
        self._thread: Thread | None = None
        if world > 1:
            self._meet(address or own_address())

    def cast(self, stop: bool) -> bool:
        """Vote, and return whether any worker had voted to stop `lag` votes ago.

        Each worker calls this once a step, and gets the same answer at the same step.

        Args:
            stop: Whether this worker wants to stop.

        Raises:
            VoteLost: Another worker is lost, or has not voted within the timeout.
        """
        with self._changed:
            index, self._casts = self._casts, self._casts + 1
            times: list[NodeTime] = []
            if (index + 1) % REPORT_EVERY == 0:
                mean = self._seconds / REPORT_EVERY
                times.append(NodeTime(self._place.node, self._rank, mean))
                self._seconds = 0.0
            self._count(index, int(stop), times)
            wanted = index - self._lag
            if wanted < 0:
                return False
            self._wait(lambda: wanted in self._answers, f"vote {wanted}")
            return self._answers.pop(wanted)

    @contextmanager
    def working(self, *, timed: bool = True) -> Generator[None]:
        """Mark work that waits for no other worker, such as reading data or a forward pass.

        Args:
            timed: Whether the time counts; otherwise the caller measures it, and calls `add`.
        """
        start = self._working_since = time.monotonic()
        try:
            yield
        finally:
            self._working_since = None
            if timed:
                self._seconds += time.monotonic() - start

    @contextmanager
    def resting(self) -> Generator[None]:
        """Mark long work between two votes, such as a validation, as no hang."""
        self._resting = True
        try:
            yield
        finally:
            with self._changed:
                self._complete_at = time.monotonic()
                self._resting = False

    def add(self, seconds: float) -> None:
        """Count time that this worker has worked since the previous vote."""
        self._seconds += seconds

    def take_times(self) -> Sequence[NodeTime]:
        """Return a new report of all nodes' times; empty if there is no new report.

        Only the first worker gets reports, each after `REPORT_EVERY` votes.
        """
        with self._changed:
            times, self._node_times = self._node_times, ()
        return times

    def name_of(self, node: int) -> str:
        """Return the name of a node, by its number."""
        return str(json.loads(self._store.get(str(node)))[-1])

    def close(self) -> None:
        """Wait until all workers have called this, and leave the vote.

        Raises:
            VoteLost: Another worker is lost, or does not call this within the timeout.
        """
        with self._changed:
            self._leaving = True
            self._leave_upwards()
            self._wait(lambda: self._done, "the end of the run")
        if self._thread is not None:
            self._thread.join(self._timeout)

    def _count(self, index: int, wishes: int, times: Sequence[NodeTime]) -> None:
        tally = self._tallies.setdefault(index, _Tally())
        tally.add(wishes, times)
        if tally.votes <= self._expected:
            return
        del self._tallies[index]
        merged = [NodeTime(node, *slowest) for node, slowest in sorted(tally.times.items())]
        if self._parent is None:
            if merged:
                self._node_times = merged
            self._answer(index, tally.wishes)
        else:
            self._parent.send("vote", index, tally.wishes, merged)

    def _answer(self, index: int, wishes: int) -> None:
        # Sent to other workers first: this worker may end as soon as it has the answer.
        for child in self._children:
            child.send("answer", index, wishes)
        self._answers[index] = wishes > 0
        self._complete, self._complete_at = index, time.monotonic()
        self._changed.notify_all()

    def _wait(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._timeout
        while not reached():
            if self._lost is not None:
                raise self._lost
            left = deadline - time.monotonic()
            if left <= 0:
                raise VoteLost(
                    f"worker {self._rank} waits for {what} longer than {self._timeout:.0f} s; "
                    "raise --timeout-seconds if a step may take so long"
                )
            self._changed.wait(left)

    def _meet(self, address: str) -> None:
        """Connect to the worker above, and accept the workers below."""
        place = self._place
        leads = place.local_rank == 0
        if leads:
            first = place.node * FANOUT + 1
            below = len(range(first, min(first + FANOUT, place.nodes)))
            self._expected = place.local_world - 1 + below
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = None
        token = secrets.token_hex(16)
        if self._expected:
            self._listener = socket.create_server(
                (address, 0), family=family(address), backlog=self._expected
            )
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._token = token
        if leads:
            port = self._listener.getsockname()[1] if self._listener else 0
            entry = [address, port, token, self._rank, self._name]
            self._store.set(str(place.node), json.dumps(entry))
        if not (leads and place.node == 0):
            above = (place.node - 1) // FANOUT if leads else place.node
            host, port, token, rank, name = json.loads(self._store.get(str(above)))
            connection = socket.create_connection((host, port), timeout=self._timeout)
            connection.settimeout(None)
            self._parent = Peer(connection, rank=rank, node=name)
            self._parent.known = True
            self._parent.send("hello", token, self._rank, self._name)
            self._register(self._parent)
        self._thread = Thread(target=self._serve, name="vote", daemon=True)
        self._thread.start()

    def _register(self, peer: Peer) -> None:
        self._selector.register(peer.connection, selectors.EVENT_READ, peer)

    def _serve(self) -> None:
        try:
            while not self._done and not self._has_told():
                pause = _POLL_SECONDS
                if self._probe is not None:
                    pause = max(0.0, min(pause, self._probe.deadline - time.monotonic()))
                for key, _ in self._selector.select(pause):
                    if isinstance(key.data, Peer):
                        self._read(key.data)
                    else:
                        key.data()
                with self._changed:
                    self._look_for_hang()
        except Exception as error:
            with self._changed:
                self._lose(VoteLost(f"the vote of worker {self._rank} failed: {error!r}"))
        # All connected workers have the report by now, and each passes it on.
        for key in list(self._selector.get_map().values()):
            cast(socket.socket, key.fileobj).close()
        self._selector.close()

    def _has_told(self) -> bool:
        """Return whether every worker below has the report of the lost worker."""
        late = len(self._children) < self._expected
        return self._lost is not None and not (
            late and time.monotonic() < self._lost_at + _LATE_SECONDS
        )

    def _accept(self) -> None:
        assert self._listener is not None
        with suppress(OSError):
            self._register(Peer(self._listener.accept()[0]))

    def _read(self, peer: Peer) -> None:
        messages = peer.receive()
        with self._changed:
            if messages is None:
                self._selector.unregister(peer.connection)
                peer.connection.close()
                if peer.known and not peer.left:
                    lost = f"worker {peer.rank} on node {peer.node} has gone"
                    self._lose(VoteLost(lost, rank=peer.rank, node=peer.node))
                return
            for message in messages:
                if peer.known:
                    self._take(peer, message)
                else:
                    self._greet(peer, message)

    def _greet(self, peer: Peer, message: bytearray) -> None:
        """Accept a connection as a worker's only if its message holds the token in the store."""
        # Any program may connect and send anything.
        with suppress(ValueError, TypeError, RecursionError):
            kind, token, rank, name = json.loads(message)
            if kind == "hello" and hmac.compare_digest(str(token).encode(), self._token.encode()):
                peer.rank, peer.node, peer.known = rank, name, True
                self._children.append(peer)
                if self._lost is not None:
                    peer.send("lost", str(self._lost))

    def _take(self, peer: Peer, message: bytearray) -> None:
        match json.loads(message):
            case ["vote", index, wishes, times]:
                self._count(index, wishes, [NodeTime(*time) for time in times])
            case ["answer", index, wishes]:
                self._answer(index, wishes)
            case ["lost", text]:
                self._lose(VoteLost(text))
            case ["probe", reached, seconds]:
                self._begin_probe(reached, seconds=seconds)
            case ["suspects", suspects]:
                if self._probe is not None:
                    self._probe.answered.add(peer.rank)
                    self._probe.suspects += [Suspect(*suspect) for suspect in suspects]
            case ["bye"]:
                peer.left = True
                if peer is self._parent:
                    self._finish()
                else:
                    self._leave_upwards()
            case _:
                raise ValueError(f"a message of another release: {message!r}")

    def _lose(self, lost: VoteLost) -> None:
        if self._lost is None and not self._done:
            self._lost, self._lost_at = lost, time.monotonic()
            for peer in [*self._children, *([self._parent] if self._parent else [])]:
                peer.send("lost", str(lost))
            _begin(self._on_lost, lost)
            self._changed.notify_all()

    def _leave_upwards(self) -> None:
        if self._leaving and sum(child.left for child in self._children) == self._expected:
            if self._parent is None:
                self._finish()
            else:
                self._parent.send("bye")

    def _finish(self) -> None:
        for child in self._children:
            child.send("bye")
        self._done = True
        self._changed.notify_all()

    def _look_for_hang(self) -> None:
        now = time.monotonic()
        waited = now - self._complete_at
        if (
            self._parent is None
            and self.hang_seconds is not None
            and self._probe is None
            and self._casts > 0
            and not self._leaving
            and not self._resting
            and waited > self.hang_seconds
            and self._probed != self._complete
        ):
            self._probed = self._complete
            patience = min(_PROBE_SECONDS, self.hang_seconds)
            self._begin_probe(max(self._tallies, default=-1) + 1, seconds=patience)
        probe = self._probe
        if probe is None:
            return
        missing = [child for child in self._children if child.rank not in probe.answered]
        if missing and now < probe.deadline:
            return
        self._probe = None
        probe.suspects += [Suspect(child.rank, child.node, "silent") for child in missing]
        if self._parent is not None:
            self._parent.send("suspects", probe.suspects[:64])
        else:
            hang = Hang(vote=self._complete, seconds=waited, suspects=probe.suspects)
            _begin(self._on_hang, hang)

    def _begin_probe(self, reached: int, *, seconds: float) -> None:
        """Ask this worker and those below; ``reached`` is the vote that the others have reached."""
        suspects: list[Suspect] = []
        if self._casts < reached:
            suspects.append(Suspect(self._rank, self._name, "behind"))
        elif self._working_since is not None:
            suspects.append(Suspect(self._rank, self._name, "working"))
        self._probe = _Probe(deadline=time.monotonic() + seconds, suspects=suspects)
        for child in self._children:
            child.send("probe", reached, seconds * _PROBE_SHARE)
        _begin(self._on_asked, bool(suspects))


def _begin(call: Callable[[_T], None] | None, argument: _T) -> None:
    """Call a function in a thread of its own, so that it does not delay the vote."""
    if call is not None:
        Thread(target=call, args=(argument,), daemon=True).start()
