"""Other projects' charts that the product installs, and the objects that Helm makes of them.

`python -m tests.support.charts` pulls them at the pinned versions into `.make/charts`. Tests read
the archives there, or in the folder that ULTRASCALE_CHARTS names, as `helm package` names them.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from tests.support.assembly import Assembly
from tests.support.cell_parts import text
from tests.support.chart_values import Values, refused_limits
from tests.support.crd_schemas import CrdSet
from tests.support.folders import CHARTS, ROOT
from tests.support.helm_tools import HELM, KUBECTL, unpack_tools
from tests.support.kubernetes_schemas import Document, containers, is_core, named, validate_core
from ultrascale import plan
from ultrascale.catalog import karpenter
from ultrascale.core.part import HelmChart
from ultrascale.core.table import all_parts
from ultrascale.errors import UltrascaleError
from ultrascale.parts.hyperpod.chart_facts import ARTEFACT, ARTEFACT_VERSION
from ultrascale.parts.hyperpod.model import Plan as HyperPodPlan
from ultrascale.parts.mirror.charts import pack_chart, pull_chart
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.hyperpod.chart import kustomization

_HYBRID = ROOT / "clusters" / "hybrid-hyperpod.yaml"


@dataclass(frozen=True, kw_only=True)
class Release:
    """A chart that a cluster installs."""

    release: str  # Name of the release
    chart: str  # Name of the chart
    version: str  # Its version
    namespace: str  # Namespace of the release
    values: Values  # Values of ours
    placement: Mapping[str, object] | None = None  # Kustomization of its objects

    @property
    def archive(self) -> Path:
        """The packed chart."""
        return CHARTS / f"{self.chart}-{self.version}.tgz"


def releases(assembly: Assembly, *, order: Callable[[str], int] = lambda _: 0) -> list[Release]:
    """Return the charts of a cluster file, HyperPod's last.

    Args:
        assembly: The file.
        order: Place of a stack, by its name.
    """
    found = sorted(
        assembly.resources("Custom::AWSCDK-EKS-HelmChart"), key=lambda each: order(each[0])
    )
    installed = [
        Release(
            release=properties["Release"],
            chart=properties["Chart"],
            version=properties["Version"],
            namespace=properties["Namespace"],
            values=json.loads(text(properties["Values"])),
        )
        for _, body in found
        for properties in [body["Properties"]]
    ]
    return [*installed, *_hyperpod(assembly.plan)]


def _hyperpod(cluster: ClusterPlan) -> Iterator[Release]:
    if (hyperpod := cluster.part(HyperPodPlan)) is not None:
        chart = hyperpod.chart_release
        yield Release(
            release=chart.release,
            chart=ARTEFACT.rpartition("/")[2],
            version=ARTEFACT_VERSION,
            namespace=chart.namespace,
            values=chart.values,
            placement=kustomization(chart),
        )


class Helm:
    """Helm and kubectl of the kubectl layer, which see no cluster and nothing of the user's."""

    def __init__(self, folder: Path) -> None:
        self._tools = unpack_tools(folder)

    def objects(self, chart: Path, release: Release, minor: str) -> list[Document]:
        """Return the objects that a release makes in a cluster of a Kubernetes minor.

        Raises:
            AssertionError: Helm refuses the values, or a template fails.
        """
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "values.json").write_text(json.dumps(release.values))
            rendered = self._run(
                *(HELM, "template", release.release, chart, "--namespace", release.namespace),
                *("--values", folder / "values.json", "--include-crds", "--kube-version", minor),
            )
            if release.placement is not None:
                (folder / "rendered.yaml").write_text(rendered)
                (folder / "kustomization.yaml").write_text(json.dumps(release.placement))
                rendered = self._run(KUBECTL, "kustomize", folder)
        return [each for each in yaml.load_all(rendered, yaml.CSafeLoader) if each]

    def values(self, chart: Path) -> Values:
        """Return the values of a chart itself."""
        return yaml.load(self._run(HELM, "show", "values", chart), yaml.CSafeLoader) or {}

    def _run(self, program: str, *arguments: str | Path) -> str:
        environment = {"HOME": str(self._tools), "PATH": os.defpath}
        command = [self._tools / program, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def definitions(documents: Iterable[Document]) -> CrdSet:
    """Return the kinds that CustomResourceDefinitions among ``documents`` bring."""
    return CrdSet.from_documents(d for d in documents if d["kind"] == "CustomResourceDefinition")


def findings(documents: Iterable[Document], minor: str, known: CrdSet) -> list[str]:
    """Return why an API server with strict field validation refuses objects.

    Args:
        documents: The objects.
        minor: Kubernetes minor of the server.
        known: Kinds beside Kubernetes' own.
    """
    return [why for document in documents for why in _findings(document, minor, known)]


def _findings(document: Document, minor: str, known: CrdSet) -> Iterator[str]:
    kind = (document["apiVersion"], document["kind"])
    if is_core(document) and kind not in known.kinds:
        yield from validate_core(document, minor)
    else:
        yield from (f"{named(document)}: {why}" for why in known.validate(document))
    for container in containers(document):
        for why in refused_limits(container.get("resources") or {}):
            yield f"{named(document)}: {container['name']}: {why}"


# --- The archives ---------------------------------------------------------------------------------


def pinned() -> Sequence[HelmChart]:
    """Return the charts of registries and repositories that the product may install."""
    return [
        *(chart for part in all_parts() for chart in part.charts),
        *(
            HelmChart(location=location, version=version, images=())
            for location in (karpenter.CRD_CHART, karpenter.CHART)
            for version in (karpenter.NEWEST_VERSION, karpenter.LONG_TERM_VERSION)
        ),
    ]


def _pulls(environment: Mapping[str, str]) -> Iterator[tuple[str, str, Callable[[Path], Path]]]:
    """Yield name and version of each chart, and what writes its archive into an empty folder."""

    for chart in pinned():
        yield (
            chart.location.rpartition("/")[2],
            chart.version,
            lambda folder, chart=chart: pull_chart(chart, folder, environment),
        )
    for chart in plan.load(_HYBRID).git_charts:
        yield (
            ARTEFACT.rpartition("/")[2],
            ARTEFACT_VERSION,
            lambda folder, chart=chart: pack_chart(chart, ARTEFACT_VERSION, folder, environment),
        )


def main() -> None:
    """Pull the charts that are not in the folder."""
    CHARTS.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []
    with TemporaryDirectory() as name:
        tools = unpack_tools(Path(name))
        path = f"{(tools / HELM).parent}{os.pathsep}{os.environ['PATH']}"
        for chart, version, pull in _pulls({**os.environ, "PATH": path}):
            if (archive := CHARTS / f"{chart}-{version}.tgz").exists():
                continue
            with TemporaryDirectory() as folder:
                try:
                    shutil.move(pull(Path(folder)), archive)
                except UltrascaleError as error:
                    missing.append(f"{chart} {version}: {error}")
    if missing:
        print(*missing, sep="\n")
        sys.exit(
            f"{len(missing)} charts were not pulled: this machine may not reach their registries; "
            "ULTRASCALE_CHARTS names a folder that has them"
        )


if __name__ == "__main__":
    main()
