"""A roll takes days: what ends it, and what somebody wants it to outlive."""

import signal

import pytest

from ultrascale.operate.tunnel import ends_as_by_ctrl_c


@pytest.mark.parametrize("ignored", [True, False])
def test_nohup_keeps_a_roll_from_ending_with_its_terminal(ignored: bool) -> None:
    handler = signal.SIG_IGN if ignored else signal.SIG_DFL
    before = signal.signal(signal.SIGHUP, handler)
    try:
        with ends_as_by_ctrl_c():
            within = signal.getsignal(signal.SIGHUP)
        after = signal.getsignal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)

    assert within == (signal.SIG_IGN if ignored else signal.default_int_handler)
    assert after == handler
