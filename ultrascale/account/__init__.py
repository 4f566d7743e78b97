"""An AWS account as commands see it: who asks, and each answer or why there is none."""

from ultrascale.account._account import Account, Session, connect
from ultrascale.account._answers import is_passing

__all__ = ["Account", "Session", "connect", "is_passing"]
