"""Handling of signals that end this program and its child commands."""

import signal
from collections.abc import Generator
from contextlib import contextmanager

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ends_as_by_ctrl_c() -> Generator[None]:
    """Turn SIGTERM and SIGHUP into KeyboardInterrupt, so that this program cleans up.

    A signal that is ignored stays ignored, such as SIGHUP under `nohup`.
    """
    signals = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def command_takes_ctrl_c() -> Generator[None]:
    """Let Ctrl-C reach only the command in the terminal, as a shell does."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def signals_held_back() -> Generator[None]:
    """Hold SIGTERM and SIGHUP back to the end of the block, then raise KeyboardInterrupt.

    Between the start of a program and the assignment of its handle, a signal would leave the
    program running.
    """
    missed: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: missed.append(number))
        for number in _ENDING
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if missed:
        raise KeyboardInterrupt
