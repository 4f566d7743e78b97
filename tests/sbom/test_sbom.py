"""The bill of materials misses nothing that is deployed, and says nothing that is not known."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from msgspec.structs import replace

from tests.support.assembly import Assembly
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.kubernetes_schemas import containers, published
from ultrascale.errors import UltrascaleError
from ultrascale.own_images import OwnImage
from ultrascale.parts.kueue.model import Plan as KueuePlan
from ultrascale.plan import ClusterPlan
from ultrascale.sbom import Component, bill_of_materials, images, list_components
from ultrascale.sbom.components import components_of
from ultrascale.sbom.images import publishers_of


@pytest.fixture(params=["trainium", "mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    return request.getfixturevalue(request.param)


def own_images(plan: ClusterPlan) -> Iterator[Component]:
    return images.own_images(plan, publishers_of(plan))


LISTED: dict[Path, tuple[Component, ...]] = {}


def listed(assembly: Assembly) -> tuple[Component, ...]:
    return list_components(
        assembly.plan, assembly=assembly.folder / "cdk.out", manifests=assembly.folder / "dist"
    )


def components(assembly: Assembly) -> tuple[Component, ...]:
    """Return what `listed` does, which reads a whole assembly, once for each."""
    if assembly.folder not in LISTED:
        LISTED[assembly.folder] = listed(assembly)
    return LISTED[assembly.folder]


def bill(assembly: Assembly) -> dict[str, Any]:
    return {**bill_of_materials(assembly.plan.name, components(assembly))}


def serial(cluster: str, found: Sequence[Component]) -> str:
    return str(bill_of_materials(cluster, found)["serialNumber"])


def pairs(assembly: Assembly, kind: str) -> set[tuple[str, str | None]]:
    return {(each.name, each.version) for each in components(assembly) if each.kind == kind}


def properties(assembly: Assembly, kind: str, *keys: str) -> Iterator[tuple[str, ...]]:
    for _, body in assembly.resources(kind):
        yield tuple(body["Properties"][key] for key in keys)


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (each for each in document["components"] if each["name"] == name)
    return found


@pytest.mark.parametrize("assembly", ["ultra", "llm"], indirect=True)
def test_cyclonedx_accepts_the_bill(assembly: Assembly) -> None:
    text = json.dumps(bill(assembly))

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_cyclonedx_refuses_what_is_no_bill(auto: Assembly) -> None:
    broken = bill(auto)
    broken["components"][0]["type"] = "thing"

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(broken)) is not None


def test_every_image_of_a_pod_is_listed(assembly: Assembly) -> None:
    mirror = assembly.plan.copies
    copies = f"{mirror.location}/" if mirror else ""
    images = {
        published(container["image"].removeprefix(copies))
        for document in assembly.documents
        for container in containers(document)
    }
    found = {f"{name}:{version}" for name, version in pairs(assembly, "container image")}

    assert {image.partition("@")[0] for image in images} <= found


def test_every_addon_chart_and_runtime_is_listed_with_its_version(assembly: Assembly) -> None:
    addons = properties(assembly, "AWS::EKS::Addon", "AddonName", "AddonVersion")
    charts = properties(assembly, "Custom::AWSCDK-EKS-HelmChart", "Chart", "Version")
    runtimes = {runtime for (runtime,) in properties(assembly, "AWS::Lambda::Function", "Runtime")}
    assert pairs(assembly, "EKS add-on") == {*addons}
    assert {*charts} <= pairs(assembly, "Helm chart")
    assert {f"{n}{v}" for n, v in pairs(assembly, "Lambda runtime")} == runtimes


def test_the_programs_of_a_layer_have_the_versions_that_their_binaries_state(
    trainium: Assembly,
) -> None:
    layers = dict(pairs(trainium, "Lambda layer"))

    # The layer's description calls this one 4.1.3.
    assert layers["helm"] == "4.1.4"
    assert layers["kubectl"] == "1.35.2"


def test_controllers_are_listed_with_their_charts(llm: Assembly, mixed: Assembly) -> None:
    kueue = llm.plan.part(KueuePlan)
    assert kueue is not None
    images = {(kueue.image, kueue.version), (kueue.jobset_image, kueue.jobset_version)}
    listed_images = pairs(llm, "container image")
    assert {(image.partition(":")[0], f"v{version}") for image, version in images} <= listed_images
    assert {("kueue", kueue.version), ("jobset", kueue.jobset_version)} <= pairs(llm, "Helm chart")
    karpenter = mixed.plan.nodes.karpenter
    assert karpenter is not None
    controller = ("public.ecr.aws/karpenter/controller", karpenter.version)
    assert controller in pairs(mixed, "container image")


def test_every_reference_is_to_a_component_of_the_bill(assembly: Assembly) -> None:
    document = bill(assembly)
    refs = [each["bom-ref"] for each in document["components"]]
    linked = {to for entry in document["dependencies"] for to in entry.get("dependsOn", ())}
    (composition,) = document["compositions"]

    assert len({*refs}) == len(refs)
    assert linked == {*refs}
    assert {*composition["assemblies"]} <= {*refs}


@pytest.mark.parametrize("name", ["trainium", "mixed", "ultra"])
def test_machine_images_are_listed_by_release(name: str, request: pytest.FixtureRequest) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    found = dict(pairs(assembly, "machine image"))
    gpus = ["nvidia"] if name != "trainium" else []

    assert {*found.values()} == {"v20260930"}
    # Of Karpenter's nodes too, whose node classes name no variant.
    assert {each.split("-")[5] for each in found} == {"neuron", "standard", *gpus}


def test_what_aws_picks_has_no_version(auto: Assembly, hybrid: Assembly) -> None:
    assert ("eks-auto-mode-node", None) in pairs(auto, "machine image")
    assert ("sagemaker-hyperpod-eks-node", None) in pairs(hybrid, "machine image")
    assert "version" not in named(bill(auto), "eks-auto-mode-node")


def test_a_cached_image_is_its_publishers(ultra: Assembly) -> None:
    plugin = named(bill(ultra), "public.ecr.aws/neuron/neuron-device-plugin")

    assert plugin["purl"] == (
        "pkg:docker/neuron/neuron-device-plugin@2.32.0.0?repository_url=public.ecr.aws"
    )
    assert plugin["externalReferences"][0]["url"].startswith("https://github.com/aws-neuron/")


def test_hyperpods_chart_is_a_commit_with_charts_of_others(hybrid: Assembly) -> None:
    document = bill(hybrid)
    chart = named(document, "HyperPodHelmChart")
    (links,) = (e for e in document["dependencies"] if e["ref"] == chart["bom-ref"])

    assert re.fullmatch("[0-9a-f]{40}", chart["version"])
    assert len(links["dependsOn"]) == 3


def test_the_images_of_this_project_say_what_they_are_built_from(trainium: Assembly) -> None:
    document = bill(trainium)
    image = named(document, "trainium-bert/bert-pretrain")
    (links,) = (e for e in document["dependencies"] if e["ref"] == image["bom-ref"])
    package = named(document, "h5py")

    assert "pkg:pypi/h5py@3.16.0" in links["dependsOn"]
    assert any("pytorch-training-neuronx" in ref for ref in links["dependsOn"])
    (reference,) = package["externalReferences"]
    assert all(len(each["content"]) == 64 for each in reference["hashes"])


def test_every_pinned_package_of_an_image_of_ours_is_listed(trainium: Assembly) -> None:
    for image, build in zip(own_images(trainium.plan), trainium.plan.images.builds, strict=True):
        lines = (ROOT / "images" / build.dockerfile / "requirements.txt").read_text().splitlines()
        pinned = [line for line in lines if "==" in line and not line.startswith("#")]
        assert len(image.parts) == len(pinned) + 1
    # Nor is it taken for one of Docker Hub.
    here = replace(trainium.plan, account="111122223333")
    host = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
    assert {each.purl for each in own_images(replace(here, account=None))} == {None}
    for image in own_images(here):
        assert str(image.purl).endswith(f"&repository_url={host}")


def test_an_engine_is_listed_once(hybrid: Assembly) -> None:
    assert pairs(hybrid, "service") == {
        ("amazon-eks", "1.35"),
        ("amazon-fsx-lustre", "2.15"),
        ("aurora-postgresql", "17"),
    }


@pytest.mark.parametrize(
    ("reference", "purl"),
    [
        ("docker.io/volcanosh/vc-scheduler:v1", "pkg:docker/volcanosh/vc-scheduler@v1"),
        ("volcanosh/vc-scheduler:v1", "pkg:docker/volcanosh/vc-scheduler@v1"),
        ("busybox:1.37", "pkg:docker/library/busybox@1.37"),
        ("quay.io:443/a/b:1", "pkg:docker/a/b@1?repository_url=quay.io:443"),
        (
            f"nvcr.io/nvidia/plugin:v1@sha256:{'a' * 64}",
            f"pkg:oci/plugin@sha256:{'a' * 64}?repository_url=nvcr.io/nvidia/plugin&tag=v1",
        ),
    ],
)
def test_an_image_is_named_as_scanners_look_for_it(
    trainium: Assembly, reference: str, purl: str
) -> None:
    assert str(publishers_of(trainium.plan).image(reference, used_by="test").purl) == purl


def test_the_same_files_give_the_same_bytes_and_others_another_bill(mixed: Assembly) -> None:
    first, second = (
        json.dumps(bill_of_materials(mixed.plan.name, listed(mixed))) for _ in range(2)
    )
    assert first == second
    assert "timestamp" not in first
    every = components(mixed)
    serials = {serial("mixed", every), serial("mixed", every[1:]), serial("other", every)}
    assert len(serials) == 3


def test_a_bill_needs_no_more_than_the_file_and_what_was_synthesized(
    trainium: Assembly, ultrascale: Ultrascale
) -> None:
    file = ROOT / "clusters" / "trainium-bert.yaml"
    folders = ("--assembly", trainium.folder / "cdk.out", "--manifests", trainium.folder / "dist")

    printed = ultrascale("sbom", file, *folders)
    table = ultrascale("sbom", file, "--format", "table", *folders)

    assert json.loads(printed.stdout) == bill(trainium)
    rows = [line.split() for line in table.stdout.splitlines()]
    assert ["EKS", "add-on", "vpc-cni", "v1.23.1-eksbuild.1", "trainium-bert-node-addons"] in rows


def test_the_bill_of_another_cluster_is_refused(trainium: Assembly, ultrascale: Ultrascale) -> None:
    folder = trainium.folder / "cdk.out"

    answer = ultrascale("sbom", ROOT / "clusters" / "auto-mode.yaml", "--assembly", folder)

    assert answer.returncode == 1
    assert f"{folder}: not what the file of auto-mode becomes now: " in answer.stderr


def test_the_bill_of_what_the_file_was_before_is_refused(trainium: Assembly) -> None:
    plan = replace(trainium.plan, pools=trainium.plan.pools[:0])

    with pytest.raises(UltrascaleError, match="trainium-bert-trn1 is in one alone"):
        list_components(
            plan, assembly=trainium.folder / "cdk.out", manifests=trainium.folder / "dist"
        )


@pytest.mark.parametrize("left", ['{"Resources', None])
def test_an_assembly_that_was_broken_off_is_no_bill(
    auto: Assembly, tmp_path: Path, left: str | None
) -> None:
    for file in (auto.folder / "cdk.out").glob("*.json"):
        (tmp_path / file.name).symlink_to(file)
    broken = tmp_path / "auto-mode-cluster.template.json"
    broken.unlink()
    if left is not None:
        broken.write_text(left)

    with pytest.raises(
        UltrascaleError, match=r"auto-mode-cluster\.template\.json: .*ultrascale synth"
    ):
        list_components(auto.plan, assembly=tmp_path, manifests=auto.folder / "dist")


def test_a_layer_that_says_nothing_of_its_content_is_listed(trainium: Assembly) -> None:
    body = {"Type": "AWS::Lambda::LayerVersion", "Properties": {"Description": "something new"}}

    (layer,) = components_of(body, publishers_of(trainium.plan), stack="x")

    assert (layer.name, layer.version) == ("something new", None)


@pytest.mark.parametrize("missing", ["assembly", "manifests"])
def test_without_a_synthesis_there_is_no_bill(
    trainium: Assembly, tmp_path: Path, missing: str
) -> None:
    folders = {
        "assembly": trainium.folder / "cdk.out",
        "manifests": trainium.folder / "dist",
        missing: tmp_path,
    }

    with pytest.raises(UltrascaleError, match="run `ultrascale synth FILE`"):
        list_components(trainium.plan, **folders)


def test_images_without_their_sources_are_no_silent_gap(trainium: Assembly, tmp_path: Path) -> None:
    own = OwnImage(location=tmp_path, digest="", non_root=False)
    first, *_ = trainium.plan.images.builds
    images = replace(trainium.plan.images, builds=(replace(first, dockerfile="./mine", own=own),))
    plan = replace(trainium.plan, images=images)

    with pytest.raises(UltrascaleError, match="Dockerfile: cannot be read"):
        list(own_images(plan))

    (tmp_path / "Dockerfile").write_text("RUN true\n")
    with pytest.raises(UltrascaleError, match="no FROM; name the image to build on"):
        list(own_images(plan))

    (tmp_path / "Dockerfile").write_text("FROM docker.io/library/python:3.12.1\n")
    image, *_ = own_images(plan)
    assert [part.name for part in image.parts] == ["docker.io/library/python"]
