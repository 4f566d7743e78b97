"""Copies images and charts into a mirror, and records the digest of each."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.tools import CopyTool, pinned, tagged

State = Literal["copied", "there", "failed"]
Pusher = Callable[[Copy], None]
_OCI = "oci://"


class Outcome(Frozen):
    """The end of one copy."""

    copy: Copy  # The image or chart
    state: State  # Whether it was copied now, was there already, or failed
    digest: str | None = None  # Its digest; None where it failed
    why: str = ""  # Reason of a failure; empty otherwise


def copy_all(
    copies: Iterable[Copy],
    digests: Mapping[str, str],
    tool: CopyTool,
    *,
    renew: bool = False,
    packed: Mapping[str, Pusher] | None = None,
) -> Iterable[Outcome]:
    """Yield the outcome of each copy, one after the other.

    A recorded source is copied by its digest, whatever the tag means by now.

    Args:
        copies: Images and charts.
        digests: Recorded digest of each source.
        tool: The program that copies.
        renew: Take the tags' contents of now, in place of the recorded digests.
        packed: Function that pushes a chart from outside all registries, by source.
    """
    for copy in copies:
        known = copy.source.partition("@")[2] or (None if renew else digests.get(copy.source))
        try:
            push = (packed or {}).get(copy.source)
            yield _copy(copy, known, tool) if push is None else _push(copy, known, tool, push)
        except UltrascaleError as error:
            yield Outcome(copy=copy, state="failed", why=str(error))


def _copy(copy: Copy, known: str | None, tool: CopyTool) -> Outcome:
    source, target = (name.removeprefix(_OCI) for name in (copy.source, copy.target))
    there = tool.digest(tagged(target))
    wanted = known or tool.digest(source)
    if wanted is None:
        raise UltrascaleError(f"{source}: its registry has no such {copy.kind}")
    if there == wanted:
        return Outcome(copy=copy, state="there", digest=wanted)
    tool.copy(pinned(source, wanted), tagged(target))
    return _outcome(copy, wanted, tool)


def _push(copy: Copy, known: str | None, tool: CopyTool, push: Pusher) -> Outcome:
    """Push a chart that is packed here: each packing makes another archive."""
    target = copy.target.removeprefix(_OCI)
    there = tool.digest(target)
    if there is None:
        push(copy)
        return _outcome(copy, tool.digest(target) or "", tool)
    if known not in (None, there):
        todo = "run it with --renew to record the one that is there"
        raise UltrascaleError(f"{target}: has {there}, and {known} is recorded; {todo}")
    return Outcome(copy=copy, state="there", digest=there)


def _outcome(copy: Copy, wanted: str, tool: CopyTool) -> Outcome:
    target = tagged(copy.target.removeprefix(_OCI))
    digest = tool.digest(target)
    if digest is None or digest != wanted:
        raise UltrascaleError(f"{target}: has {digest or 'nothing'} after the copy of {wanted}")
    return Outcome(copy=copy, state="copied", digest=wanted)
