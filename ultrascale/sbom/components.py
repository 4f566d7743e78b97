"""Every component of a cluster, read from what `cdk synth` wrote for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import cast

import yaml

from ultrascale.errors import UltrascaleError
from ultrascale.plan import ClusterPlan
from ultrascale.sbom.images import is_own, own_images, pulled_image, python_package
from ultrascale.sbom.model import Component, merged
from ultrascale.sbom.resources import components_of
from ultrascale.sbom.values import mapping, sequence

_STACK_ARTIFACT = "aws:cloudformation:stack"
# What writes the templates and manifests. The CDK's own functions and their layers are deployed.
_CDK = (
    "aws-cdk-lib",
    "aws-cdk.asset-awscli-v1",
    "aws-cdk.lambda-layer-kubectl-v35",
    "cdk8s",
    "cdk8s-plus-27",
    "constructs",
)


def list_components(plan: ClusterPlan, *, assembly: Path, manifests: Path) -> tuple[Component, ...]:
    """Return what a deploy of a cluster brings, each component once.

    Args:
        plan: The cluster.
        assembly: Folder that `cdk synth` wrote.
        manifests: Folder of the manifests.

    Raises:
        UltrascaleError: Nothing is synthesized there, or it is another cluster.
    """
    found = [
        *_libraries(),
        *own_images(plan),
        *_charts_of_hyperpod(plan),
        *_from_templates(plan, assembly),
        *_from_manifests(plan, manifests),
    ]
    return merged(found)


def _libraries() -> Iterator[Component]:
    for name in _CDK:
        yield Component(
            kind="CDK library",
            name=name,
            version=version(name),
            purl=python_package(name, version(name)),
            used_by=("every stack",),
        )


def _from_templates(plan: ClusterPlan, assembly: Path) -> Iterator[Component]:
    manifest = assembly / "manifest.json"
    if not manifest.exists():
        raise UltrascaleError(f"{assembly}: nothing is synthesized here; run `make synth`")
    artifacts = mapping(mapping(json.loads(manifest.read_text(encoding="utf-8")))["artifacts"])
    stacks = [name for name, each in artifacts.items() if mapping(each)["type"] == _STACK_ARTIFACT]
    if not stacks or any(not name.startswith(f"{plan.name}-") for name in stacks):
        message = (
            f"{assembly}: holds another cluster than {plan.name}; "
            "run `make synth` with CLUSTER set to its file"
        )
        raise UltrascaleError(message)
    for name in stacks:
        text = (assembly / f"{name}.template.json").read_text(encoding="utf-8")
        template = cast("Mapping[str, object]", json.loads(text))
        for body in mapping(template.get("Resources")).values():
            yield from components_of(mapping(body), plan, stack=name)


def _from_manifests(plan: ClusterPlan, manifests: Path) -> Iterator[Component]:
    files = sorted(manifests.glob("*.k8s.yaml"))
    if not files:
        raise UltrascaleError(f"{manifests}: no manifests here; run `make synth`")
    for file in files:
        text = file.read_text(encoding="utf-8")
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            yield from _from_object(mapping(document), plan)


def _from_object(document: Mapping[str, object], plan: ClusterPlan) -> Iterator[Component]:
    metadata = mapping(document.get("metadata"))
    where = f"{metadata.get('namespace')}/" if "namespace" in metadata else ""
    used_by = f"{document.get('kind')} {where}{metadata.get('name')}"
    for reference in _images(document):
        if not is_own(reference, plan):
            yield pulled_image(reference, plan, used_by=used_by)
    if document.get("kind") == "EC2NodeClass":
        for term in sequence(mapping(document.get("spec")).get("amiSelectorTerms")):
            family, _, release = str(mapping(term).get("alias")).partition("@")
            yield Component(
                kind="machine image",
                name=f"amazon-eks-node-{family}-{plan.control_plane.version}",
                version=release,
                used_by=(used_by,),
            )
    if document.get("kind") == "NodeClass":
        yield Component(
            kind="machine image", name="eks-auto-mode-node", version=None, used_by=(used_by,)
        )


def _images(value: object) -> Iterator[str]:
    """Yield the images of all containers in an object, wherever its pods stand."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, object]", value).items():
            if key in ("containers", "initContainers"):
                for container in sequence(item):
                    if isinstance(image := mapping(container).get("image"), str):
                        yield image
            else:
                yield from _images(item)
    elif isinstance(value, list):
        for item in cast("Sequence[object]", value):
            yield from _images(item)


def _charts_of_hyperpod(plan: ClusterPlan) -> Iterator[Component]:
    chart = plan.hyperpod_chart
    if chart is None:
        return
    repository = chart.repository.removesuffix(".git")
    path = repository.removeprefix("https://github.com/")
    yield Component(
        kind="Helm chart",
        name=chart.folder.rpartition("/")[2],
        version=chart.commit,
        purl=f"pkg:github/{path}@{chart.commit}#{chart.folder}",
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
