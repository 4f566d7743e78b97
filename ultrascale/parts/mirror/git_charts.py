"""Charts of Git repositories as artefacts of a registry: packed with all of their dependencies.

Their publishers have them in no registry. Git fetches the pinned commit, Helm
the dependencies; both run where the copies are made, which has a way out.
"""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ultrascale.errors import UltrascaleError
from ultrascale.parts.mirror import helm
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.copying import Pusher
from ultrascale.plan.model import CopiesPlan, GitChartPlan


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
    helm.require(copy, "git", "helm")
    version = copy.target.rpartition(":")[2]
    with TemporaryDirectory(prefix="ultrascale-") as name:
        root = Path(name, "source")
        _fetch(chart, root, environment)
        folder = root / chart.folder
        helm.run(["helm", "dependency", "update", str(folder)], environment)
        _refuse_other_archives(chart, folder)
        packed = ["helm", "package", str(folder), "--version", version, "--destination", name]
        helm.run(packed, environment)
        (archive,) = Path(name).glob(f"*-{version}.tgz")
        helm.push(archive, copy, environment)


def _fetch(chart: GitChartPlan, folder: Path, environment: Mapping[str, str]) -> None:
    """Fetch the commit: its id is a hash of its content, which Git computes anew."""
    git = ["git", "-C", str(folder)]
    folder.mkdir()
    helm.run([*git, "init", "--quiet"], environment)
    helm.run([*git, "config", "fetch.fsckObjects", "true"], environment)
    helm.run(
        [*git, "fetch", "--quiet", "--depth", "1", chart.repository, chart.commit], environment
    )
    helm.run([*git, "checkout", "--quiet", "--detach", chart.commit], environment)


def _refuse_other_archives(chart: GitChartPlan, folder: Path) -> None:
    """Refuse dependencies that differ from the pinned ones."""
    for remote in chart.remote_charts:
        version = remote.version.removeprefix("v")
        names = [f"{remote.name}-{version}.tgz", f"{remote.name}-v{version}.tgz"]
        archives = [file for name in names if (file := folder / "charts" / name).exists()]
        if not archives:
            raise UltrascaleError(f"{remote.name} {remote.version}: Helm fetched no archive of it")
        digest = helm.digest(archives[0])
        if remote.sha256 not in (None, digest):
            wrong = f"sha256 {digest}, pinned is {remote.sha256}"
            raise UltrascaleError(f"{remote.name} {remote.version}: {wrong}")
