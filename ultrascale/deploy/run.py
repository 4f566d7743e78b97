"""Parallel execution of a program for each stack, in the order of the stacks' dependencies."""

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Literal, Protocol

from ultrascale.frozen import Frozen

State = Literal["deployed", "unchanged", "failed", "interrupted", "not started"]

_KEPT_LINES = 40
# Seconds from asking programs to end until killing them.
_GRACE = 10.0
_NO_CHANGES = "(no changes)"


class Outcome(Frozen):
    """Outcome of a stack's deployment."""

    stack: str  # Its name
    state: State  # ``interrupted``: CloudFormation goes on without its program
    seconds: float = 0.0  # Duration
    said: tuple[str, ...] = ()  # The last lines of its program
    waited_for: tuple[str, ...] = ()  # Failed stacks that kept it from being started


class Program(Protocol):
    """A program that deploys one stack."""

    def lines(self) -> Iterator[str]:
        """Yield the lines that the program prints, until it ends."""
        ...

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit status."""
        ...

    def stop(self) -> None:
        """Ask the program to end."""
        ...

    def kill(self) -> None:
        """Kill the program."""
        ...


class Watcher(Protocol):
    """An observer of a deployment."""

    def started(self, stack: str) -> None:
        """Note the start of a stack."""
        ...

    def said(self, stack: str, line: str) -> None:
        """Note a line of a stack's program."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """Note the outcome of a stack."""
        ...


Launch = Callable[[str], Program]
# A stack, and a line or the exit status of its program; None for a signal to this process.
_Message = tuple[str, str | int] | None


def run_stacks(
    waits_for: Mapping[str, frozenset[str]],
    launch: Launch,
    watcher: Watcher,
    *,
    concurrency: int,
) -> tuple[Outcome, ...]:
    """Deploy each stack once the stacks that it waits for are deployed.

    A failed stack stops only the stacks that wait for it. Ctrl-C, SIGTERM or SIGHUP ends the
    running programs, and no further program starts; a second signal kills them. Call the function
    in the main thread: Python delivers signals only there.

    Args:
        waits_for: The stacks that each stack waits for, in an order of deployment. Stacks start in
            this order.
        launch: Starts the program of a stack.
        watcher: Observer of the deployment.
        concurrency: Most programs at the same time.

    Returns:
        The outcome of each stack, in the order of ``waits_for``.
    """
    return _Run(waits_for, launch, watcher, concurrency).outcomes()


class _Run:
    def __init__(
        self,
        waits_for: Mapping[str, frozenset[str]],
        launch: Launch,
        watcher: Watcher,
        concurrency: int,
    ) -> None:
        self._waits_for = waits_for
        self._launch = launch
        self._watcher = watcher
        self._concurrency = concurrency
        self._programs: dict[str, Program] = {}
        self._began: dict[str, float] = {}
        self._said: dict[str, deque[str]] = {}
        self._unchanged: set[str] = set()
        self._outcomes: dict[str, Outcome] = {}
        self._messages: SimpleQueue[_Message] = SimpleQueue()

    def outcomes(self) -> tuple[Outcome, ...]:
        with self._queued_signals():
            self._start()
            while self._programs:
                message = self._messages.get()
                if message is None:
                    self._interrupt()
                    break
                self._take(*message)
                if not isinstance(message[1], str):
                    self._start()
        return tuple(self._outcomes[stack] for stack in self._waits_for)

    @contextmanager
    def _queued_signals(self) -> Generator[None]:
        # A handler that raises could interrupt between the start of a program and our record of it.
        def tell(*_: object) -> None:
            self._messages.put(None)

        heard = [signal.SIGINT, signal.SIGTERM]
        # With `nohup`, the command goes on after its terminal has closed.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            heard.append(signal.SIGHUP)
        before = {number: signal.signal(number, tell) for number in heard}
        try:
            yield
        finally:
            # After an error of ours, no program goes on.
            for program in self._programs.values():
                program.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self) -> None:
        """Start the stacks that can start, and give up stacks that wait for a failed stack."""
        for stack, earlier in self._waits_for.items():
            if stack in self._outcomes or stack in self._programs:
                continue
            if lost := self._failed_stacks(earlier):
                self._end(Outcome(stack=stack, state="not started", waited_for=lost))
            elif len(self._programs) < self._concurrency and earlier <= self._outcomes.keys():
                self._watcher.started(stack)
                self._begin(stack)

    def _begin(self, stack: str) -> None:
        self._said[stack] = deque(maxlen=_KEPT_LINES)
        self._began[stack] = time.monotonic()
        program = self._programs[stack] = self._launch(stack)
        threading.Thread(target=self._follow, args=(stack, program), daemon=True).start()

    def _failed_stacks(self, stacks: frozenset[str]) -> tuple[str, ...]:
        """Return the failed stacks among ``stacks``, and among the stacks that these waited for."""
        failed: list[str] = []
        for stack in sorted(stacks & self._outcomes.keys()):
            outcome = self._outcomes[stack]
            if outcome.state == "failed":
                failed.append(stack)
            failed += outcome.waited_for
        return tuple(dict.fromkeys(failed))

    def _follow(self, stack: str, program: Program) -> None:
        for line in program.lines():
            self._messages.put((stack, line))
        self._messages.put((stack, program.wait()))

    def _take(self, stack: str, message: str | int) -> None:
        if isinstance(message, str):
            self._said[stack].append(message)
            # The stack's outputs follow this line.
            if message.endswith(_NO_CHANGES):
                self._unchanged.add(stack)
            self._watcher.said(stack, message)
            return
        unchanged = stack in self._unchanged
        self._finish(stack, "failed" if message else "unchanged" if unchanged else "deployed")

    def _finish(self, stack: str, state: State) -> None:
        del self._programs[stack]
        seconds = time.monotonic() - self._began[stack]
        said = tuple(self._said[stack])
        self._end(Outcome(stack=stack, state=state, seconds=seconds, said=said))

    def _end(self, outcome: Outcome) -> None:
        self._outcomes[outcome.stack] = outcome
        self._watcher.ended(outcome)

    def _interrupt(self) -> None:
        for program in self._programs.values():
            program.stop()
        ends = time.monotonic() + _GRACE
        while self._programs:
            try:
                message = self._messages.get(timeout=max(ends - time.monotonic(), 0))
            except Empty:
                break
            if message is None:
                break
            stack, said = message
            # A program that succeeded before the signal counts as done.
            if said == 0:
                self._take(stack, said)
            elif isinstance(said, int):
                self._finish(stack, "interrupted")
        for stack, program in [*self._programs.items()]:
            program.kill()
            self._finish(stack, "interrupted")
        for stack in self._waits_for:
            if stack not in self._outcomes:
                self._end(Outcome(stack=stack, state="not started"))
