"""Images and charts that a mirror has to hold, from the files of a synthesis."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

import yaml
from msgspec.structs import replace

from ultrascale.catalog.registries import chart_images
from ultrascale.core.table import all_parts
from ultrascale.documents import JsonObject, mapping, text
from ultrascale.errors import CatalogError, ConfigError, UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.jobs.preparation import JobCluster, prepare, stated_parts
from ultrascale.parts.mirror.tools import untagged
from ultrascale.plan.model import CopiesPlan, GitChartPlan, ImagesPlan, published
from ultrascale.sbom.images import base_images, container_images
from ultrascale.synthesis import read_json, read_stacks_of

_CHART = "Custom::AWSCDK-EKS-HelmChart"
_OCI = "oci://"
# Any version: the cluster's own images, which have it in their names, need no copy.
_SOME_ACCOUNT = "0" * 12


class Copy(Frozen):
    """An image or a chart, and its copy."""

    source: str  # Whole reference by its publisher; a chart's begins ``oci://``
    target: str  # Its reference in the mirror, without a digest of the record
    used_by: tuple[str, ...]  # Objects, stacks, builds and jobs that pull it

    @property
    def kind(self) -> str:
        """Its kind: ``chart`` or ``image``."""
        return "chart" if self.source.startswith(_OCI) else "image"


class _Pull(Frozen, kw_only=False):
    reference: str
    used_by: str


def list_copies(cluster: JobCluster, *, assembly: Path, manifests: Path) -> tuple[Copy, ...]:
    """Return the needed contents of a cluster's mirror, each once, charts last.

    Args:
        cluster: The cluster; its file names a mirror.
        assembly: Assembly of the file.
        manifests: Folder of the manifests.

    Raises:
        UltrascaleError: The file names no mirror; or nothing is synthesized there, it is another
            cluster, or it names a copy that no list explains.
        CatalogError: A chart is unknown, whose images nobody has listed.
    """
    plan = cluster.plan
    mirror = mirror_of(plan.copies)
    deployed = [
        *_from_manifests(manifests),
        *_from_templates(read_stacks_of(plan, assembly), mirror),
    ]
    pulls = [
        *deployed,
        *_from_git_charts(plan.git_charts),
        *_from_builds(plan.images),
        *_from_jobs(cluster),
    ]
    copies: dict[str, Copy] = {}
    for pull in pulls:
        source = mirror.published(published(pull.reference))
        if not mirror.needs_copy(source.removeprefix(_OCI)):
            continue
        chart = source.startswith(_OCI)
        target = mirror.chart(source) if chart else mirror.copy(source)
        copy = copies.setdefault(source, Copy(source=source, target=target, used_by=()))
        copies[source] = replace(copy, used_by=tuple(sorted({*copy.used_by, pull.used_by})))
    copied = [chart.copy for chart in plan.git_charts if chart.copy is not None]
    unused = {name for copy in copied for name in copy.renamed.values()}
    _refuse_missing(copies.values(), mirror, [assembly, manifests], unused)
    return tuple(sorted(copies.values(), key=lambda copy: (copy.kind == "chart", copy.source)))


def mirror_of(copies: CopiesPlan | None) -> CopiesPlan:
    """Return the mirror of a cluster.

    Raises:
        UltrascaleError: The file names none.
    """
    if copies is None:
        raise UltrascaleError(
            "images.mirror: missing; name the registry and a prefix in it that hold the copies"
        )
    return copies


def _from_manifests(folder: Path) -> Iterator[_Pull]:
    files = sorted(folder.glob("*.k8s.yaml"))
    if not files:
        raise UltrascaleError(f"{folder}: no manifests here; run `ultrascale synth FILE`")
    for file in files:
        documents = yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for document in documents:
            yield from _from_object(mapping(document))


def _from_object(document: JsonObject) -> Iterator[_Pull]:
    metadata = mapping(document, "metadata")
    namespace = text(metadata, "namespace")
    name = f"{namespace}/{text(metadata, 'name')}" if namespace else text(metadata, "name")
    for reference in container_images(document):
        yield _Pull(reference, f"{text(document, 'kind')} {name}")


def _from_templates(stacks: Mapping[str, Path], mirror: CopiesPlan) -> Iterator[_Pull]:
    for stack, file in stacks.items():
        for body in mapping(read_json(file), "Resources").values():
            if text(body, "Type") == _CHART:
                chart = mirror.published(text(body, "Properties", "Repository"))
                version = text(body, "Properties", "Version")
                yield _Pull(f"{chart}:{version}", stack)
                for image in _known_images(chart, version):
                    yield _Pull(image, f"chart {chart.rpartition('/')[2]}")


def _known_images(chart: str, version: str) -> tuple[str, ...]:
    try:
        return chart_images(chart, version)
    except CatalogError as error:
        todo = "where images.mirror has changed since, run `ultrascale synth FILE`"
        raise CatalogError(f"{error}; {todo}") from None


def _from_git_charts(charts: Iterable[GitChartPlan]) -> Iterator[_Pull]:
    for chart in charts:
        if (copy := chart.copy) is not None:
            yield _Pull(f"{copy.repository}:{copy.version}", f"release {chart.release}")
            for image in copy.images:
                yield _Pull(image, f"chart {copy.repository.rpartition('/')[2]}")


def _from_builds(images: ImagesPlan) -> Iterator[_Pull]:
    for build in images.builds:
        for image in base_images(build):
            yield _Pull(image, f"build of {build.repository}")


def _from_jobs(cluster: JobCluster) -> Iterator[_Pull]:
    for name in cluster.cluster.jobs:
        for image in _images_of_job(cluster, name):
            yield _Pull(image, f"job {name}")
    for pool in cluster.plan.pools:
        if pool.accelerator is None:
            continue
        for part in all_parts():
            images = part.images_of_checks(cluster.cluster, pool.accelerator)
            for check, image in images.items():
                yield _Pull(image, f"{check} check of {pool.name}")


def _images_of_job(cluster: JobCluster, name: str) -> Iterator[str]:
    """Yield the images of a template's pods, and of the checks before it.

    Where the template leaves open what a submission adds, they are the images that it names.
    """
    try:
        prepared = prepare(cluster, name, account=_SOME_ACCOUNT)
    except ConfigError:
        parts = stated_parts(cluster, name, account=_SOME_ACCOUNT)
        yield from filter(None, (text(part, "image") for part in parts))
        return
    for objects in (prepared.objects, *(check.job.objects for check in prepared.checks)):
        yield from container_images(objects)


def _refuse_missing(
    copies: Iterable[Copy], mirror: CopiesPlan, folders: Iterable[Path], unused: Set[str]
) -> None:
    """Refuse a list that lacks a copy in a file of the synthesis: the cluster would pull it."""
    listed = {untagged(copy.target.removeprefix(_OCI)) for copy in copies} | unused
    pattern = re.compile(re.escape(f"{mirror.location}/") + r"[a-z0-9._/-]*[a-z0-9]")
    for folder in folders:
        for file in sorted((*folder.glob("*.template.json"), *folder.glob("*.k8s.yaml"))):
            for reference in pattern.findall(file.read_text(encoding="utf-8")):
                if reference not in listed and mirror.published(reference) != reference:
                    message = f"{file}: names {reference}, which no list of the mirror explains"
                    raise UltrascaleError(f"{message}; please report this")
