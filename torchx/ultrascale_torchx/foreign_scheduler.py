"""Refusal by the components of `lib/` of TorchX's own scheduler for Kubernetes.

That scheduler knows no pool, claim or queue of the cluster file: it would build an image by a local
Docker, and its pods would wait forever.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

from torchx.runner import config as torchx_config

NAME = "ultrascale"
"""Name under which the scheduler of this package is registered."""

_FOREIGN = "kubernetes"


def mistakes(argv: Sequence[str] | None = None) -> Iterator[str]:
    """Yield a line if `torchx run` chooses TorchX's own scheduler for Kubernetes.

    TorchX does not tell a component its scheduler; only the command line names it.

    Args:
        argv: The command line; None for the command line of this process.
    """
    words = [*(sys.argv if argv is None else argv)]
    if "run" not in words:
        return
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-s", "--scheduler", default=_configured_value("scheduler"))
    parser.add_argument("--workspace", default=_configured_value("workspace"))
    stated, _ = parser.parse_known_args(words[words.index("run") + 1 :])
    if stated.scheduler != _FOREIGN:
        return
    todo = f"write -s {NAME}"
    if stated.workspace:
        todo += f', and leave out --workspace={stated.workspace}: write --workspace="" and '
        todo += "run an image that has your code"
    wrong = "TorchX's own, which knows no pool and no claim of the cluster file"
    yield f"scheduler: {wrong}, got '{_FOREIGN}'; {todo}"


def _configured_value(key: str) -> str | None:
    """Return a value that `.torchxconfig` sets for `torchx run`."""
    return torchx_config.get_config(prefix="cli", name="run", key=key)
