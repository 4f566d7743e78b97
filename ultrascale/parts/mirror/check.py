"""Compares a mirror with the list of a cluster's pulls, and with the record of digests."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.tools import CopyTool, tagged

State = Literal["there", "missing", "unrecorded", "different", "unknown"]


class Finding(Frozen):
    """State of one copy in the mirror."""

    copy: Copy  # The image or chart
    # ``there``; ``missing`` in the mirror; ``unrecorded`` there, without a digest in the record;
    # ``different`` from the record; ``unknown``: the registry cannot be asked.
    state: State
    why: str = ""  # Reason, with what to do; empty for ``there``


def check_copies(
    copies: Iterable[Copy], digests: Mapping[str, str], tool: CopyTool
) -> Iterator[Finding]:
    """Yield the state of each copy in the mirror.

    Args:
        copies: Images and charts.
        digests: Recorded digest of each source.
        tool: The program that asks the registry.
    """
    for copy in copies:
        try:
            yield _finding(copy, digests, tool)
        except UltrascaleError as error:
            yield Finding(copy=copy, state="unknown", why=str(error))


def _finding(copy: Copy, digests: Mapping[str, str], tool: CopyTool) -> Finding:
    todo = "run `ultrascale mirror FILE copy`"
    there = tool.digest(tagged(copy.target.removeprefix("oci://")))
    wanted = copy.source.partition("@")[2] or digests.get(copy.source)
    if there is None:
        return Finding(copy=copy, state="missing", why=f"not in the mirror; {todo}")
    if wanted is None:
        return Finding(copy=copy, state="unrecorded", why=f"no digest in mirror.lock; {todo}")
    if there != wanted:
        why = f"the mirror has {there}, recorded is {wanted}; {todo}, or restore mirror.lock"
        return Finding(copy=copy, state="different", why=why)
    return Finding(copy=copy, state="there")
