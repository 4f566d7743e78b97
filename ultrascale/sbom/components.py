"""Components of a cluster, read from its assembly and manifests."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from zipfile import ZipFile

import yaml
from msgspec.structs import replace
from packageurl import PackageURL

from ultrascale.catalog import AmiType, versions
from ultrascale.catalog.registries import chart_images
from ultrascale.documents import JsonObject, mapping, sequence, text
from ultrascale.errors import UltrascaleError
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import AppPlan, GitChartPlan, PoolPlan
from ultrascale.sbom.images import (
    Publishers,
    container_images,
    own_images,
    publishers_of,
    python_package,
)
from ultrascale.sbom.model import Component, merged
from ultrascale.synthesis import read_json, read_stacks, read_stacks_of, require_cdk

# --- Components behind the resources of CloudFormation templates ----------------------------------


_Reader = Callable[[JsonObject, Publishers], Iterator[Component]]

# The CDK describes its layers as `/opt/kubectl/kubectl 1.35.2; /opt/helm/helm 4.1.3`.
_PROGRAM = re.compile(r"/opt/(\w+)/\S+?(?: (\d[\w.]*))?(?:;|$)")


def components_of(body: JsonObject, publishers: Publishers, *, stack: str) -> Iterator[Component]:
    """Yield the components of a resource; nothing for a resource without software.

    Args:
        body: The resource.
        publishers: Publishers of the cluster's images and charts.
        stack: Name of its stack.
    """
    reader = _READERS.get(str(body.get("Type")))
    if reader is not None:
        for component in reader(mapping(body.get("Properties")), publishers):
            yield replace(component, used_by=(stack,))


def _cluster(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    # EKS picks the patch release.
    yield Component(
        kind="service", name="amazon-eks", version=_text_property(properties, "Version")
    )


def _addon(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    name, stated = str(properties["AddonName"]), _text_property(properties, "AddonVersion")
    yield Component(kind="EKS add-on", name=name, version=stated)


def _node_group(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    pinned = versions.ami_release(publishers.kubernetes)
    stated = _text_property(properties, "ReleaseVersion")
    if stated is None:
        yield Component(kind="machine image", name="amazon-eks-node-al2023", version=None)
        return
    release = pinned if pinned.version == stated else replace(pinned, version=stated)
    ami_type: AmiType = properties["AmiType"]  # pyright: ignore[reportAssignmentType]
    yield from publishers.machine_images(release.image_parameter(ami_type))


def _launch_template(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    image = mapping(properties.get("LaunchTemplateData")).get("ImageId")
    if isinstance(image, str):
        yield from publishers.machine_images(image)


def _sagemaker_cluster(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    yield Component(kind="machine image", name="sagemaker-hyperpod-eks-node", version=None)


def _function(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    runtime = _text_property(properties, "Runtime")
    if runtime is None:
        image = str(mapping(properties.get("Code")).get("ImageUri"))
        yield Component(kind="container image", name=image, version=None)
    else:
        language, release = re.findall(r"^([a-z]+)(.*)$", runtime)[0]
        yield Component(kind="Lambda runtime", name=language, version=release)


def _layer(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    description = _text_property(properties, "Description") or "without a description"
    # A layer whose description a later CDK changes is listed as well.
    for name, release in _PROGRAM.findall(description) or [(description, "")]:
        yield Component(kind="Lambda layer", name=name, version=release or None)


def _helm_chart(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    version, location = text(properties, "Version"), text(properties, "Repository")
    if not location.startswith("oci://"):
        location = f"{location}/{text(properties, 'Chart')}"
    elif publishers.copies is not None:
        location = publishers.copies.published(location)
    for image in chart_images(location, version):
        yield publishers.image(image, used_by="")
    yield Component(
        kind="Helm chart", name=str(properties["Chart"]), version=version, source=location
    )


def _build_project(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    name, _, release = str(mapping(properties["Environment"])["Image"]).partition(":")
    # CodeBuild publishes patched images under the same tag, in a registry that only AWS reads.
    yield Component(kind="container image", name=name, version=release or None)


def _database_components(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    # The cluster of an Aurora instance states the version.
    if "EngineVersion" in properties:
        version = _text_property(properties, "EngineVersion")
        yield Component(kind="service", name=str(properties["Engine"]), version=version)


def _file_system(properties: JsonObject, publishers: Publishers) -> Iterator[Component]:
    version = _text_property(properties, "FileSystemTypeVersion")
    name = f"amazon-fsx-{str(properties['FileSystemType']).lower()}"
    yield Component(kind="service", name=name, version=version)


def _text_property(properties: JsonObject, key: str) -> str | None:
    value = properties.get(key)
    return value if isinstance(value, str) else None


_READERS: Mapping[str, _Reader] = MappingProxyType(
    {
        "AWS::EKS::Cluster": _cluster,
        "AWS::EKS::Addon": _addon,
        "AWS::EKS::Nodegroup": _node_group,
        "AWS::EC2::LaunchTemplate": _launch_template,
        "AWS::SageMaker::Cluster": _sagemaker_cluster,
        "AWS::Lambda::Function": _function,
        "AWS::Lambda::LayerVersion": _layer,
        "Custom::AWSCDK-EKS-HelmChart": _helm_chart,
        "AWS::CodeBuild::Project": _build_project,
        "AWS::RDS::DBCluster": _database_components,
        "AWS::RDS::DBInstance": _database_components,
        "AWS::FSx::FileSystem": _file_system,
    }
)


# --- Components of a cluster, read from its assembly and manifests --------------------------------


_LAYER = "AWS::Lambda::LayerVersion"
# Libraries that write templates and manifests; a deployment brings the CDK's own functions.
_CDK = (
    "aws-cdk-lib",
    "aws-cdk.asset-awscli-v1",
    "aws-cdk.lambda-layer-kubectl-v35",
    "cdk8s",
    "cdk8s-plus-27",
    "constructs",
)


def list_components(plan: ClusterPlan, *, assembly: Path, manifests: Path) -> tuple[Component, ...]:
    """Return the components of a cluster's deployment, each once.

    Args:
        plan: The cluster.
        assembly: Folder that `cdk synth` wrote.
        manifests: Folder of the manifests.

    Raises:
        UltrascaleError: Nothing is synthesized there, or another cluster is.
    """
    return merged([*_libraries(), *_cluster_components(plan, assembly, manifests)])


def list_app(app: AppPlan, *, assembly: Path, manifests: Path) -> tuple[Component, ...]:
    """Return the components of the app of a part and of all of its stages, each once.

    Args:
        app: The app.
        assembly: Folder that `ultrascale synth --pipeline` wrote.
        manifests: Folder of the manifests, with a folder for each stage.

    Raises:
        UltrascaleError: Nothing is synthesized there, or it is another app.
    """
    if app.name not in read_stacks(assembly):
        message = (
            f"{assembly}: not the pipeline {app.name}; run `ultrascale synth --pipeline {app.file}`"
        )
        raise UltrascaleError(message)
    components = [*_libraries()]
    for stage in app.stages:
        folder = assembly / f"cluster-{stage.name}"
        components += _cluster_components(stage.cluster, folder, manifests / stage.name)
        for template in (assembly / f"assembly-{stage.name}").glob("*.template.json"):
            name = f"{app.name} ({stage.name})"
            components += _stack_components(template, publishers_of(stage.cluster), name)
    for name, template in read_stacks(assembly).items():
        components += _stack_components(template, publishers_of(app.stages[0].cluster), name)
    return merged(components)


def _cluster_components(plan: ClusterPlan, assembly: Path, manifests: Path) -> Iterator[Component]:
    publishers = publishers_of(plan)
    yield from own_images(plan, publishers)
    yield from map(_git_chart, plan.git_charts)
    for name, template in read_stacks_of(plan, assembly).items():
        yield from _stack_components(template, publishers, name)
    yield from _manifest_components(publishers, plan.all_pools, manifests)


def _libraries() -> Iterator[Component]:
    require_cdk()
    for name in _CDK:
        yield Component(
            kind="CDK library",
            name=name,
            version=version(name),
            purl=python_package(name, version(name)),
            used_by=("every stack",),
        )


def _stack_components(file: Path, publishers: Publishers, stack: str) -> Iterator[Component]:
    for resource in mapping(read_json(file), "Resources").values():
        body = mapping(resource)
        programs = [*programs_of(body, file.parent)] if text(body, "Type") == _LAYER else []
        for program in programs:
            yield replace(program, used_by=(stack,))
        if not programs:
            yield from components_of(body, publishers, stack=stack)


def _manifest_components(
    publishers: Publishers, pools: Sequence[PoolPlan], manifests: Path
) -> Iterator[Component]:
    files = sorted(manifests.glob("*.k8s.yaml"))
    if not files:
        raise UltrascaleError(f"{manifests}: no manifests here; run `ultrascale synth FILE`")
    for file in files:
        text = file.read_text(encoding="utf-8")
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            yield from _object_components(mapping(document), publishers, pools)


def _object_components(
    document: JsonObject, publishers: Publishers, pools: Sequence[PoolPlan]
) -> Iterator[Component]:
    metadata = mapping(document.get("metadata"))
    where = f"{metadata.get('namespace')}/" if "namespace" in metadata else ""
    used_by = f"{document.get('kind')} {where}{metadata.get('name')}"
    for reference in container_images(document):
        if not publishers.is_own(reference):
            yield publishers.image(reference, used_by=used_by)
    if document.get("kind") == "EC2NodeClass":
        yield from _node_class_images(document, publishers, pools, used_by)
    if document.get("kind") == "NodeClass":
        yield Component(
            kind="machine image", name="eks-auto-mode-node", version=None, used_by=(used_by,)
        )


def _node_class_images(
    document: JsonObject, publishers: Publishers, pools: Sequence[PoolPlan], used_by: str
) -> Iterator[Component]:
    """Yield a node class's images; for our own pools, only the variant of the pool's types."""
    name = mapping(document.get("metadata")).get("name")
    parameters = {(pool.name, pool.ami_alias): pool.ami_parameter for pool in pools}
    for term in sequence(mapping(document.get("spec")).get("amiSelectorTerms")):
        alias = str(mapping(term).get("alias"))
        family, _, release = alias.partition("@")
        image = Component(
            kind="machine image",
            name=f"amazon-eks-node-{family}-{publishers.kubernetes}",
            version=release,
        )
        exact = [*publishers.machine_images(parameters.get((str(name), alias), ""))]
        yield from (
            replace(release_image, used_by=(used_by,)) for release_image in exact or [image]
        )


def _git_chart(chart: GitChartPlan) -> Component:
    repository = chart.repository.removesuffix(".git")
    owner, _, project = repository.removeprefix("https://github.com/").partition("/")
    return Component(
        kind="Helm chart",
        name=chart.folder.rpartition("/")[2],
        version=chart.commit,
        purl=PackageURL("github", owner, project, chart.commit, subpath=chart.folder),
        source=f"{repository}/tree/{chart.commit}/{chart.folder}",
        sha256=() if chart.folder_sha256 is None else (chart.folder_sha256,),
        used_by=(f"release {chart.release}",),
        parts=tuple(
            Component(
                kind="Helm chart",
                name=remote.name,
                version=remote.version,
                sha256=() if remote.sha256 is None else (remote.sha256,),
                used_by=(f"release {chart.release}",),
            )
            for remote in chart.remote_charts
        ),
    )


_ELF = b"\x7fELF"
# The Go linker writes a program's package and its module's version into the program.
# Source: https://pkg.go.dev/runtime/debug#BuildInfo
_GO_MODULE = re.compile(rb"path\t[^\n]*?([^/\n]+)\nmod\t[^\t\n]+\tv(\d[^\t\n]*)[\t\n]")


def programs_of(body: JsonObject, folder: Path) -> Iterator[Component]:
    """Yield the Go programs in a Lambda layer; nothing if it has none or its archive is missing.

    The layer's own description of its programs is written by hand, and was wrong.

    Args:
        body: The resource, an ``AWS::Lambda::LayerVersion``.
        folder: Folder of its template and archive.
    """
    archive = folder / f"asset.{text(body, 'Properties', 'Content', 'S3Key')}"
    if archive.is_file():
        for name, version in _programs(archive):
            yield Component(kind="Lambda layer", name=name, version=version)


# Several stacks have the same layer, whose programs have 60 MB each.
@cache
def _programs(archive: Path) -> tuple[tuple[str, str], ...]:
    programs: list[tuple[str, str]] = []
    with ZipFile(archive) as files:
        for file in files.infolist():
            with files.open(file) as opened:
                if opened.read(len(_ELF)) != _ELF:
                    continue
                module = _GO_MODULE.search(opened.read())
            if module:
                name, version = (part.decode() for part in module.groups())
                programs.append((name, version))
    return tuple(programs)
