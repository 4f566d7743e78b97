"""An AWS account as commands see it: who asks, and each answer or why there is none."""

from ultrascale.account._account import Account, Session, connect

__all__ = ["Account", "Session", "connect"]
