"""The one door to AWS: an account, typed requests to it, and the reasons of missing answers."""

from ultrascale.account.account import Account, Session, connect
from ultrascale.account.answers import is_passing

__all__ = ["Account", "Session", "connect", "is_passing"]
