"""Rules that hold for everything a cluster file becomes."""

import json
import re
from collections.abc import Iterator
from typing import cast

import pytest

from tests.support.assembly import Assembly, Document, named_in, unneeded_acknowledgments
from tests.support.auto_mode_crd import AUTO_MODE as NODE_CLASSES
from tests.support.chart_rules import scale_findings
from tests.support.crd_schemas import CRD_FOLDERS, KARPENTER_FOLDERS, CrdSet, karpenter_documents
from tests.support.create_only_schemas import unknown_types
from tests.support.kubernetes_schemas import (
    containers,
    defined,
    findings,
    image_findings,
    is_core,
    published,
    token_findings,
)
from tests.support.node_overlay_crd import CRD as NODE_OVERLAYS
from ultrascale.catalog import addons, versions
from ultrascale_stacks.rules import violations

# Device plugins and the GPU exporter talk to the kubelet through sockets that belong to root; the
# Neuron monitor opens the devices themselves. A file system's root is opened by its owner, root.
# The DNS cache gives its node an interface, and listens on port 53.
ROOT_CONTAINERS = (
    "neuron-device-plugin",
    "neuron-monitor",
    "nvidia-device-plugin",
    "dcgm-exporter",
    "aws-efa-k8s-device-plugin",
    "access",
    "node-cache",
)
VOLCANO = ("batch.volcano.sh", "scheduling.volcano.sh", "topology.volcano.sh")
KARPENTER = ("karpenter.sh", "karpenter.k8s.aws")
# `tests/manifests/test_kueue.py` judges them.
KUEUE = ("kueue.x-k8s.io",)
AUTO_MODE = ("eks.amazonaws.com",)
Request = pytest.FixtureRequest
# Made by the certificate job in the cluster.
MADE_THERE = ("Secret", "volcano-system", "volcano-admission-secret")


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in cast("dict[str, object]", value).items():
            yield from strings([*pair])
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from strings(item)


@pytest.fixture(params=["trainium", "mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def assembly(request: pytest.FixtureRequest) -> Assembly:
    """Everything that each of the cluster files becomes."""
    return request.getfixturevalue(request.param)


def custom(assembly: Assembly, *groups: str) -> list[Document]:
    """Return the objects of custom kinds whose API group is among ``groups``."""
    return [d for d in assembly.documents if d["apiVersion"].partition("/")[0] in groups]


def test_the_api_server_of_the_files_version_accepts_every_core_object(assembly: Assembly) -> None:
    known = {MADE_THERE, *defined(assembly.documents)}
    for name, chart in assembly.charts.items():
        found = findings(
            chart, minors=(assembly.plan.control_plane.version,), known=known, root=ROOT_CONTAINERS
        )
        assert not found, name


def test_every_custom_object_is_judged_none_costs_more_by_node_and_pods_with_roles_have_tokens(
    assembly: Assembly,
) -> None:
    judged = custom(assembly, *VOLCANO, *KUEUE, *KARPENTER, *AUTO_MODE)

    assert len(judged) == sum(1 for d in assembly.documents if not is_core(d))
    # Of the API server or of a node.
    assert [*scale_findings(assembly.documents)] == []
    assert token_findings(assembly.documents) == []


@pytest.mark.parametrize(
    ("name", "selects"), [("mixed", True), ("llm", True), ("ultra", True), ("hybrid", False)]
)
def test_karpenter_leaves_open_reservations_alone_only_where_a_node_class_selects_one(
    name: str, selects: bool, request: Request
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    (values,) = (
        json.loads(body["Properties"]["Values"])
        for _, body in assembly.resources("Custom::AWSCDK-EKS-HelmChart")
        if body["Properties"]["Release"] == "karpenter"
    )
    classes = [each for each in assembly.documents if each["kind"] == "EC2NodeClass"]

    assert classes
    assert selects == any("capacityReservationSelectorTerms" in c["spec"] for c in classes)
    assert values["settings"]["featureGates"]["reservedCapacity"] is selects


@pytest.mark.parametrize("name", ["trainium", "mixed", "ultra"])
def test_volcano_accepts_every_object_of_its_own(name: str, request: Request) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    objects = custom(assembly, *VOLCANO)
    judges = [CrdSet.from_documents(assembly.charts["volcano-crds"])]
    folder = CRD_FOLDERS / "volcano-v1.15.1"
    if folder.is_dir():
        judges.append(CrdSet.from_folder(folder))

    assert objects or name != "trainium"
    assert [found for crds in judges for d in objects for found in crds.validate(d)] == []


# AWS's copy of the API on Auto Mode may lag behind.
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        *((name, KARPENTER_FOLDERS[-1]) for name in ("mixed", "auto", "hybrid", "ultra")),
        ("auto", KARPENTER_FOLDERS[0]),
    ],
)
def test_karpenter_accepts_every_object_of_its_own(
    name: str, folder: str, request: Request
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    crds = CrdSet.from_documents([*karpenter_documents(folder), NODE_OVERLAYS])
    objects = custom(assembly, *KARPENTER)

    assert objects
    assert [finding for document in objects for finding in crds.validate(document)] == []


def test_auto_mode_accepts_every_node_class(auto: Assembly) -> None:
    objects = custom(auto, *AUTO_MODE)

    assert len(objects) == len(auto.plan.nodes.classes)
    assert [finding for d in objects for finding in NODE_CLASSES.validate(d)] == []


def test_no_template_breaks_a_rule_of_ours(assembly: Assembly) -> None:
    for stack, template in assembly.templates.items():
        broken = {rule.name for rule, _ in violations(template)}
        # HyperPod's scripts are this project's, and a cache holds copies: who loses them loses
        # nothing.
        lost = stack in ("hyperpod-groups", "image-cache")
        assert broken <= ({"Retained"} if lost else set()), stack


def test_nothing_is_acknowledged_without_need_or_of_a_type_that_the_change_guard_does_not_know(
    assembly: Assembly,
) -> None:
    assert unneeded_acknowledgments(assembly.folder / "cdk.out") == set()
    assert unknown_types(assembly.templates.values()) == set()


def test_every_reference_leads_to_a_resource_of_its_own_stack(assembly: Assembly) -> None:
    """CloudFormation refuses any other; a parameter would change what is made, and no template."""
    for stack, template in assembly.templates.items():
        own = template["Resources"]
        assert {*named_in([own, template.get("Outputs", {})])} <= own.keys(), stack


def test_nothing_names_a_version_that_is_not_pinned(assembly: Assembly) -> None:
    minor = assembly.plan.control_plane.version
    pinned = {
        each.versions[minor].version
        for each in addons.known_addons().values()
        if minor in each.versions
    }
    for _, body in assembly.resources("AWS::EKS::Addon"):
        assert body["Properties"]["AddonVersion"] in pinned
    for _, body in assembly.resources("AWS::EKS::Nodegroup"):
        assert body["Properties"]["ReleaseVersion"] == versions.ami_release(minor).version
    for document in custom(assembly, "karpenter.k8s.aws"):
        terms = document["spec"]["amiSelectorTerms"]
        assert terms == [{"alias": versions.ami_release(minor).alias}]
    assert [f for document in assembly.documents for f in image_findings(document)] == []
    # An image may also stand inside another string: a script, a flag, a configuration.
    known = [image.reference for image in versions.images().values()]
    for text in {published(text) for d in assembly.documents for text in strings(d)}:
        for named in re.findall(r"[\w.-]+\.[a-z]+(?:/[\w.-]+)+:v?\d[\w.-]*", text):
            assert any(reference in text for reference in known), named


def test_there_are_images_to_pin_and_no_role_of_a_node_can_change_the_network(
    trainium: Assembly,
) -> None:
    assert sum(1 for d in trainium.documents for _ in containers(d)) >= 7
    for stack in ("system", "trn1"):
        assert "AmazonEKS_CNI_Policy" not in str(trainium.templates[stack])


def test_nothing_floats_with_the_latest_release(assembly: Assembly) -> None:
    everything = [*assembly.templates.values(), *assembly.documents]

    floating = [text for text in strings(everything) if re.search(r"[:@=]latest\b", text)]

    assert floating == []


@pytest.mark.parametrize("file", ["estate", "hybrid", "serving", "auto"])
def test_no_custom_resource_holds_up_a_stack_for_an_hour(request: Request, file: str) -> None:
    assembly: Assembly = request.getfixturevalue(file)
    without = [
        (kind, json.loads(body["Properties"]["Manifest"])[0])
        for template in assembly.templates.values()
        for body in template["Resources"].values()
        if (kind := body["Type"]).startswith("Custom::")
        if not 0 < int(body["Properties"].get("ServiceTimeout", 0)) <= 960
    ]

    # A seed applied again would set a running pool to no nodes.
    assert all("replicas" in manifest["spec"] for _, manifest in without)
    assert {kind for kind, _ in without} <= {"Custom::AWSCDK-EKS-KubernetesResource"}
