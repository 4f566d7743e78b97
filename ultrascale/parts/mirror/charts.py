"""Charts of Git and Helm repositories as artefacts of a registry: their publishers have none."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from ultrascale import processes
from ultrascale.core.part import HelmChart
from ultrascale.core.table import all_parts
from ultrascale.errors import UltrascaleError
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.copying import Pusher
from ultrascale.parts.mirror.tools import is_local
from ultrascale.plan.model import CopiesPlan, GitChartPlan

# --- Helm and Git, which pack and push charts from outside all registries -----------------


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program to its end.

    Raises:
        UltrascaleError: It fails; the message has what it printed.
    """
    answer = processes.run(command, environment=environment)
    if answer.returncode:
        printed = answer.stdout.strip() or f"status {answer.returncode}"
        raise UltrascaleError(f"`{' '.join(command)}` failed: {printed}")


def require(copy: Copy, *programs: str) -> None:
    """Refuse to pack a chart without a needed program.

    Raises:
        UltrascaleError: A program is not on PATH.
    """
    for program in programs:
        if shutil.which(program) is None:
            raise UltrascaleError(f"{program}: not on PATH, which packs {copy.source}; install it")


def push_archive(archive: Path, copy: Copy, environment: Mapping[str, str]) -> None:
    """Push an archive, whose name and version are those of the copy.

    Raises:
        UltrascaleError: Helm fails.
    """
    folder = copy.target.rpartition(":")[0].rpartition("/")[0]
    local = is_local(copy.target.removeprefix("oci://"))
    plain = ["--plain-http"] if local else []
    run_program(["helm", "push", str(archive), folder, *plain], environment)


def digest_of(archive: Path) -> str:
    """Return the SHA-256 of an archive, as indexes of Helm repositories have it."""
    return sha256(archive.read_bytes()).hexdigest()


# --- Charts of Git repositories as artefacts of a registry: packed with all of their dependencies
# Their publishers have them in no registry. Git fetches the pinned commit, Helm
# the dependencies; both run where the copies are made, which has a way out.


def chart_pushers(
    mirror: CopiesPlan, charts: Iterable[GitChartPlan], environment: Mapping[str, str]
) -> Mapping[str, Pusher]:
    """Return what packs and pushes each chart that comes from no registry, by its source.

    Args:
        mirror: The mirror.
        charts: Releases of charts that are in no registry.
        environment: Environment variables of the programs beside those of this process.
    """
    whole = {**os.environ, **environment}
    return {
        f"{mirror.published(chart.copy.repository)}:{chart.copy.version}": partial(
            _pack_and_push, chart, environment=whole
        )
        for chart in charts
        if chart.copy is not None
    }


def _pack_and_push(chart: GitChartPlan, copy: Copy, environment: Mapping[str, str]) -> None:
    require(copy, "git", "helm")
    with TemporaryDirectory(prefix="ultrascale-") as folder:
        archive = pack_chart(chart, copy.target.rpartition(":")[2], Path(folder), environment)
        push_archive(archive, copy, environment)


def pack_chart(
    chart: GitChartPlan, version: str, folder: Path, environment: Mapping[str, str]
) -> Path:
    """Pack a commit's chart with all of its dependencies into an empty folder.

    Raises:
        UltrascaleError: Git or Helm fails, or a dependency is not the pinned one.
    """
    _fetch(chart, folder / "source", environment)
    source = folder / "source" / chart.folder
    run_program(["helm", "dependency", "update", str(source)], environment)
    _refuse_other_archives(chart, source)
    packed = ["helm", "package", str(source), "--version", version, "--destination", str(folder)]
    run_program(packed, environment)
    (archive,) = folder.glob(f"*-{version}.tgz")
    return archive


def _fetch(chart: GitChartPlan, folder: Path, environment: Mapping[str, str]) -> None:
    """Fetch the commit: its id is a hash of its content, which Git computes anew."""
    git = ["git", "-C", str(folder)]
    folder.mkdir()
    run_program([*git, "init", "--quiet"], environment)
    run_program([*git, "config", "fetch.fsckObjects", "true"], environment)
    run_program(
        [*git, "fetch", "--quiet", "--depth", "1", chart.repository, chart.commit], environment
    )
    run_program([*git, "checkout", "--quiet", "--detach", chart.commit], environment)


def _refuse_other_archives(chart: GitChartPlan, folder: Path) -> None:
    """Refuse dependencies that differ from the pinned ones."""
    for remote in chart.remote_charts:
        version = remote.version.removeprefix("v")
        names = [f"{remote.name}-{version}.tgz", f"{remote.name}-v{version}.tgz"]
        archives = [file for name in names if (file := folder / "charts" / name).exists()]
        if not archives:
            raise UltrascaleError(f"{remote.name} {remote.version}: Helm fetched no archive of it")
        digest = digest_of(archives[0])
        if remote.sha256 not in (None, digest):
            wrong = f"sha256 {digest}, pinned is {remote.sha256}"
            raise UltrascaleError(f"{remote.name} {remote.version}: {wrong}")


# --- Charts of Helm repositories as artefacts of a registry: their publishers use none ------------
# Helm fetches the archive where the copies are made, which has a way out, and pushes it as it is.
#
# Source: https://helm.sh/docs/topics/registries/


def repository_pushers(
    copies: CopiesPlan | None, environment: Mapping[str, str]
) -> Mapping[str, Pusher]:
    """Return the pusher of each chart of a Helm repository, by its source.

    Args:
        copies: Copies of images and charts, if there are any.
        environment: Environment variables of the programs beside those of this process.
    """
    whole = {**os.environ, **environment}
    return {
        f"{copies.published(copies.chart(chart.location))}:{chart.version}": partial(
            pull_and_push, chart, environment=whole
        )
        for part in all_parts()
        for chart in part.charts
        if copies is not None and not chart.location.startswith("oci://")
    }


def pull_and_push(chart: HelmChart, copy: Copy, environment: Mapping[str, str]) -> None:
    """Copy a chart; it fails where Helm is missing or fails, or the archive is not the pinned."""
    require(copy, "helm")
    with TemporaryDirectory(prefix="ultrascale-") as folder:
        push_archive(pull_chart(chart, Path(folder), environment), copy, environment)


def pull_chart(chart: HelmChart, folder: Path, environment: Mapping[str, str]) -> Path:
    """Pull a chart's archive into an empty folder.

    Raises:
        UltrascaleError: Helm fails, or the archive is not the pinned one.
    """
    repository, _, name = chart.location.rpartition("/")
    in_registry = chart.location.startswith("oci://")
    named = [chart.location] if in_registry else [name, "--repo", repository]
    options = ["--version", chart.version, "--destination", str(folder)]
    run_program(["helm", "pull", *named, *options], environment)
    (archive,) = folder.glob("*.tgz")
    if chart.sha256 not in (None, digest := digest_of(archive)):
        wrong = f"sha256 {digest}, pinned is {chart.sha256}"
        raise UltrascaleError(f"{name} {chart.version}: {wrong}")
    return archive
