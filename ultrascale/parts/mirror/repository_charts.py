"""Charts of Helm repositories as artefacts of a registry: their publishers use none.

Helm fetches the archive where the copies are made, which has a way out, and pushes it as it is.

Source: https://helm.sh/docs/topics/registries/
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ultrascale.core.table import all_parts
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.parts.mirror import helm
from ultrascale.parts.mirror.contents import Copy
from ultrascale.parts.mirror.copying import Pusher
from ultrascale.plan.model import CopiesPlan


class RepositoryChart(Frozen):
    """A chart of a Helm repository."""

    repository: str  # URL of the repository
    name: str  # Name of the chart
    version: str  # Its version
    sha256: str | None  # Hash of its archive; None where no source states it


def repository_pushers(
    copies: CopiesPlan | None, environment: Mapping[str, str]
) -> Mapping[str, Pusher]:
    """Return the pusher of each chart of a Helm repository, by its source.

    Args:
        copies: Copies of images and charts, if there are any.
        environment: Environment variables of the programs beside those of this process.
    """
    return {
        source: pusher_of(chart, {**os.environ, **environment}) for source, chart in _charts(copies)
    }


def pusher_of(chart: RepositoryChart, environment: Mapping[str, str]) -> Pusher:
    """Return the function that fetches and pushes a chart.

    It raises `UltrascaleError` where Helm is missing or fails, or the archive is not the pinned
    one.
    """

    def push(copy: Copy) -> None:
        helm.require(copy, "helm")
        with TemporaryDirectory(prefix="ultrascale-") as folder:
            fetch = ["helm", "pull", chart.name, "--repo", chart.repository]
            helm.run([*fetch, "--version", chart.version, "--destination", folder], environment)
            (archive,) = Path(folder).glob("*.tgz")
            digest = helm.digest(archive)
            if chart.sha256 not in (None, digest):
                wrong = f"sha256 {digest}, pinned is {chart.sha256}"
                raise UltrascaleError(f"{chart.name} {chart.version}: {wrong}")
            helm.push(archive, copy, environment)

    return push


def _charts(copies: CopiesPlan | None) -> Iterator[tuple[str, RepositoryChart]]:
    mirror = copies
    if mirror is None:
        return
    for chart in (chart for part in all_parts() for chart in part.charts):
        if not chart.location.startswith("oci://"):
            source = mirror.published(mirror.chart(chart.location))
            yield _chart_at(source, chart.location, chart.version, chart.sha256)


def _chart_at(
    source: str, location: str, version: str, sha256: str | None
) -> tuple[str, RepositoryChart]:
    """Return a chart by its source, from the URL of its repository and its name."""
    repository, _, name = location.rpartition("/")
    chart = RepositoryChart(repository=repository, name=name, version=version, sha256=sha256)
    return f"{source}:{version}", chart
