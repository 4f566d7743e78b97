"""Access to AWS: an account, typed requests to it, and the reasons of missing answers."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultrascale.account.account import Account, Session, connect, connect_to_owner
    from ultrascale.account.answers import is_passing
    from ultrascale.account.outputs import bucket_of_stack

__all__ = ["Account", "Session", "bucket_of_stack", "connect", "connect_to_owner", "is_passing"]

_MODULES = {"is_passing": "answers", "bucket_of_stack": "outputs"}


def __getattr__(name: str) -> object:
    """Return a public name; it is imported only when used, as boto3 takes a tenth of a second."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_MODULES.get(name, 'account')}")
    return getattr(module, name)
