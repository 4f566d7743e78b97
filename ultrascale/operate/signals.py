"""Signals that end a program, and leave it time to clean up."""

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def ends_as_by_ctrl_c() -> Generator[None]:
    """Let this program clean up too when it is ended, or its terminal closed.

    What is ignored stays so, such as the end of the terminal by `nohup`.
    """
    ending = (signal.SIGTERM, signal.SIGHUP)
    signals = [each for each in ending if signal.getsignal(each) != signal.SIG_IGN]
    before = [signal.signal(each, signal.default_int_handler) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
