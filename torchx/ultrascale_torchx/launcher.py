"""Command of an app's replicas, which TorchX would otherwise rewrite for each of them.

Pods of a job are alike, so each finds out its own index, and what TorchX promises of the first one:
that it is `localhost` to itself, and that the others wait for it no longer than they must.
"""

from collections.abc import Sequence

from ultrascale.plan.jobs.command import FIRST_INDEX, INDEXED_INDEX, RANK_ZERO_HOST

# Some node may still be pulling an image of tens of gigabytes.
_PATIENCE_SECONDS = 1800

REPLICA_ID = "@replica_id@"
"""Placeholder for the index of a pod in the arguments of `with_index`."""


def with_index(command: Sequence[str], *, port: int | None) -> list[str]:
    """Return ``command`` with the index of its pod in the place of `REPLICA_ID`.

    Args:
        command: Program and its arguments.
        port: TCP port of the first pod's store for which the others wait; None: they do not.
    """
    lines = [
        "set -eu",
        "trap 'exit 143' TERM",
        f"declare -i index=${{{FIRST_INDEX}:-0}}+${{VC_TASK_INDEX:-${{{INDEXED_INDEX}:-0}}}}",
        f'if [ "$index" = 0 ]; then\nexport {RANK_ZERO_HOST}=localhost\n{_waiting(port)}fi',
        f'exec "${{@//{REPLICA_ID}/$index}}"',
    ]
    return ["bash", "-c", "\n".join(lines), "bash", *command]


def _waiting(port: int | None) -> str:
    """Return what the others do: agents of torchrun give up on a store within a minute."""
    if port is None:
        return ""
    return (
        "else\n"
        f'until (: < "/dev/tcp/${RANK_ZERO_HOST}/{port}") 2> /dev/null & wait $!; do\n'
        f'  [ "$SECONDS" -lt {_PATIENCE_SECONDS} ] || '
        f'{{ echo "nobody answered at ${RANK_ZERO_HOST}:{port}" >&2; exit 1; }}\n'
        "  sleep 2 & wait $!\n"
        "done\n"
    )
