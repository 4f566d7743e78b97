"""Components of the resources of CloudFormation templates."""

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from ultrascale.catalog import AmiType, versions
from ultrascale.catalog.chart_images import chart_images
from ultrascale.documents import JsonObject, mapping, text
from ultrascale.plan import ClusterPlan
from ultrascale.sbom.images import pulled_image
from ultrascale.sbom.model import Component

_Reader = Callable[[JsonObject, ClusterPlan], Iterator[Component]]

_IMAGE_PARAMETER = re.compile(r"(amazon-eks-node-[a-z0-9_.-]+)-(v\d{8})/image_id")
# The CDK describes its layers as `/opt/kubectl/kubectl 1.35.2; /opt/helm/helm 4.1.3`.
_LAYER = re.compile(r"/opt/(\w+)/\S+?(?: (\d[\w.]*))?(?:;|$)")


def components_of(body: JsonObject, plan: ClusterPlan, *, stack: str) -> Iterator[Component]:
    """Yield the components of a resource; nothing for a resource without software.

    Args:
        body: The resource.
        plan: The cluster.
        stack: Name of its stack.
    """
    reader = _READERS.get(str(body.get("Type")))
    if reader is not None:
        for component in reader(mapping(body.get("Properties")), plan):
            yield replace(component, used_by=(stack,))


def _cluster(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    # EKS picks the patch release.
    yield Component(kind="service", name="amazon-eks", version=_text(properties, "Version"))


def _addon(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    name, stated = str(properties["AddonName"]), _text(properties, "AddonVersion")
    yield Component(kind="EKS add-on", name=name, version=stated)


def _node_group(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    pinned = versions.ami_release(plan.control_plane.version)
    stated = _text(properties, "ReleaseVersion")
    if stated is None:
        yield Component(kind="machine image", name="amazon-eks-node-al2023", version=None)
        return
    release = pinned if pinned.version == stated else replace(pinned, version=stated)
    ami_type: AmiType = properties["AmiType"]  # pyright: ignore[reportAssignmentType]
    yield from machine_images(release.image_parameter(ami_type), source=pinned.source)


def _launch_template(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    image = mapping(properties.get("LaunchTemplateData")).get("ImageId")
    if isinstance(image, str):
        source = versions.ami_release(plan.control_plane.version).source
        yield from machine_images(image, source=source)


def machine_images(parameter: str, *, source: str) -> Iterator[Component]:
    """Yield the image of a public parameter of Systems Manager; nothing for other parameters.

    Args:
        parameter: Name of the parameter, of a template or plan.
        source: Page that states the release.
    """
    for name, release in _IMAGE_PARAMETER.findall(parameter):
        yield Component(kind="machine image", name=name, version=release, source=source)


def _sagemaker_cluster(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    yield Component(kind="machine image", name="sagemaker-hyperpod-eks-node", version=None)


def _function(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    runtime = _text(properties, "Runtime")
    if runtime is None:
        image = str(mapping(properties.get("Code")).get("ImageUri"))
        yield Component(kind="container image", name=image, version=None)
    else:
        language, release = re.findall(r"^([a-z]+)(.*)$", runtime)[0]
        yield Component(kind="Lambda runtime", name=language, version=release)


def _layer(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    description = _text(properties, "Description") or "without a description"
    # A layer with another description by a later CDK is listed as well.
    for name, release in _LAYER.findall(description) or [(description, "")]:
        yield Component(kind="Lambda layer", name=name, version=release or None)


def _helm_chart(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    version, location = text(properties, "Version"), text(properties, "Repository")
    if not location.startswith("oci://"):
        location = f"{location}/{text(properties, 'Chart')}"
    elif plan.copies is not None:
        location = plan.copies.published(location)
    for image in chart_images(location, version):
        yield pulled_image(image, plan, used_by="")
    yield Component(
        kind="Helm chart", name=str(properties["Chart"]), version=version, source=location
    )


def _build_project(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    name, _, release = str(mapping(properties["Environment"])["Image"]).partition(":")
    # CodeBuild publishes patched images under the same tag, in no registry that others read.
    yield Component(kind="container image", name=name, version=release or None)


def _database(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    # The instances of an Aurora cluster have the cluster's version.
    if "EngineVersion" in properties:
        version = _text(properties, "EngineVersion")
        yield Component(kind="service", name=str(properties["Engine"]), version=version)


def _file_system(properties: JsonObject, plan: ClusterPlan) -> Iterator[Component]:
    version = _text(properties, "FileSystemTypeVersion")
    name = f"amazon-fsx-{str(properties['FileSystemType']).lower()}"
    yield Component(kind="service", name=name, version=version)


def _text(properties: JsonObject, key: str) -> str | None:
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
        "AWS::RDS::DBCluster": _database,
        "AWS::RDS::DBInstance": _database,
        "AWS::FSx::FileSystem": _file_system,
    }
)
