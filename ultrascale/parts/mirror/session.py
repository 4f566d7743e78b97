"""One run of `copy` or `check`: the login, the program, the record, and the comparison."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.parts.mirror.charts import chart_pushers, repository_pushers
from ultrascale.parts.mirror.contents import Copy, mirror_of
from ultrascale.parts.mirror.copying import Outcome, copy_all
from ultrascale.parts.mirror.ecr import ecr_mirror, logged_in
from ultrascale.parts.mirror.lock import FILE, lock_text, read_mirror_lock
from ultrascale.parts.mirror.tools import CopyTool, find_tool, tagged, untagged
from ultrascale.plan.model import ClusterPlan, CopiesPlan

# --- Compares a mirror with the list of a cluster's pulls, and with the record of digests ---------


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


# --- One run of `copy` or `check`: the login, the program, the record -----------------------------


def copy_into(
    file: Path,
    plan: ClusterPlan,
    copies: Iterable[Copy],
    *,
    profile: str | None = None,
    renew: bool = False,
) -> Iterator[Outcome]:
    """Copy images and charts into the mirror of a cluster, and yield the outcome of each.

    The record beside the file has each successful copy, also where others fail or the command is
    interrupted. Entries of other cluster files in the folder stay.

    Args:
        file: The cluster file.
        plan: The cluster.
        copies: Images and charts.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.
        renew: Take what the tags mean now, in place of the recorded digests.

    Raises:
        UltrascaleError: No program that copies is on PATH; or Amazon ECR cannot be asked.
    """
    copies, mirror = [*copies], mirror_of(plan.copies)
    registry = ecr_mirror(mirror.location, profile)
    lock, done = read_mirror_lock(file.parent), dict[str, str]()
    known = lock.known_to(mirror.location)
    with logged_in(registry) as environment:
        tool = find_tool(environment)
        if registry is not None:
            registry.make_repositories(
                images=map(_repository, (copy for copy in copies if copy.kind == "image")),
                charts=map(_repository, (copy for copy in copies if copy.kind == "chart")),
                key=plan.key("registry"),
            )
        packed = {
            **chart_pushers(mirror, plan.git_charts, environment),
            **repository_pushers(plan.copies, environment),
        }
        try:
            for outcome in copy_all(copies, known, tool, renew=renew, packed=packed):
                if outcome.digest is not None:
                    done[outcome.copy.source] = outcome.digest
                yield outcome
        finally:
            if done:
                text = lock_text(lock.with_copies(mirror.location, done))
                (file.parent / FILE).write_text(text, encoding="utf-8")


def check_in(
    copies_plan: CopiesPlan | None, copies: Iterable[Copy], *, profile: str | None = None
) -> Iterator[Finding]:
    """Yield the state of each copy in the mirror of a cluster.

    Args:
        copies_plan: Copies of images and charts, if there are any.
        copies: Images and charts.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.

    Raises:
        UltrascaleError: No program that asks a registry is on PATH; or Amazon ECR cannot be asked.
    """
    mirror = mirror_of(copies_plan)
    with logged_in(ecr_mirror(mirror.location, profile)) as environment:
        yield from check_copies(copies, mirror.digests, find_tool(environment))


def _repository(copy: Copy) -> str:
    return untagged(copy.target.removeprefix("oci://")).partition("/")[2]
