"""Components behind the resources of CloudFormation templates."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ultrascale.catalog import AmiType, versions
from ultrascale.catalog.chart_images import chart_images
from ultrascale.documents import JsonObject, mapping, text
from ultrascale.sbom.images import Publishers
from ultrascale.sbom.model import Component

_Reader = Callable[[JsonObject, Publishers], Iterator[Component]]

# The CDK describes its layers as `/opt/kubectl/kubectl 1.35.2; /opt/helm/helm 4.1.3`.
_LAYER = re.compile(r"/opt/(\w+)/\S+?(?: (\d[\w.]*))?(?:;|$)")


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
    # A layer with another description by a later CDK is listed as well.
    for name, release in _LAYER.findall(description) or [(description, "")]:
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
    # The instances of an Aurora cluster have the cluster's version.
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
