"""Rules that hold for everything a cluster file becomes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from stacks.rules import violations
from tests.assembly import ROOT, Assembly
from tests.crd_schemas import CRD_FOLDERS, CrdSet
from tests.kubernetes_schemas import (
    containers,
    defined,
    findings,
    image_findings,
    is_core,
    token_findings,
)
from ultrascale.catalog import addons, versions

# Device plugins talk to the kubelet through sockets that belong to root.
ROOT_CONTAINERS = ("neuron-device-plugin", "aws-efa-k8s-device-plugin")
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


def test_the_api_server_of_the_files_version_accepts_every_core_object(
    trainium: Assembly,
) -> None:
    known = {MADE_THERE, *defined(trainium.documents)}
    for name, chart in trainium.charts.items():
        found = findings(
            chart,
            minors=(trainium.plan.control_plane.version,),
            known=known,
            root=ROOT_CONTAINERS,
        )
        assert not found, name


def test_every_pod_with_a_role_gets_the_token_to_use_it(trainium: Assembly) -> None:
    assert token_findings(trainium.documents) == []


def test_volcano_accepts_every_custom_object_by_our_own_crds(trainium: Assembly) -> None:
    custom = [d for d in trainium.documents if not is_core(d)]
    own = CrdSet.from_documents(trainium.charts["volcano-crds"])

    assert custom
    assert [finding for document in custom for finding in own.validate(document)] == []


def test_volcano_accepts_every_custom_object_by_its_own_crds(trainium: Assembly) -> None:
    folder = CRD_FOLDERS / "volcano-v1.15.1"
    if not folder.is_dir():
        pytest.skip(f"the upstream CRDs are not at {folder}")
    upstream = CrdSet.from_folder(folder)
    custom = [d for d in trainium.documents if not is_core(d)]

    assert [finding for document in custom for finding in upstream.validate(document)] == []


def test_no_template_breaks_a_rule_of_ours(trainium: Assembly) -> None:
    for stack, template in trainium.templates.items():
        assert [rule.name for rule, _ in violations(template)] == [], stack


def test_nothing_names_a_version_that_is_not_pinned(trainium: Assembly) -> None:
    minor = trainium.plan.control_plane.version
    pinned = {addons.version(name, minor).version for name in addons.ADDONS}
    for _, body in trainium.resources("AWS::EKS::Addon"):
        assert body["Properties"]["AddonVersion"] in pinned
    for _, body in trainium.resources("AWS::EKS::Nodegroup"):
        assert body["Properties"]["ReleaseVersion"] == versions.ami_release(minor).version
    images = [c["image"] for document in trainium.documents for c in containers(document)]
    assert len(images) >= 7
    assert [f for document in trainium.documents for f in image_findings(document)] == []
    # An image may also stand inside another string: a script, a flag, a configuration.
    known = [image.reference for image in versions.IMAGES.values()]
    for text in {text for d in trainium.documents for text in strings(d)}:
        for named in re.findall(r"[\w.-]+\.[a-z]+(?:/[\w.-]+)+:v?\d[\w.-]*", text):
            assert any(reference in text for reference in known), named


def test_nothing_floats_with_the_latest_release(trainium: Assembly) -> None:
    everything = [*trainium.templates.values(), *trainium.documents]

    floating = [text for text in strings(everything) if re.search(r"[:@=]latest\b", text)]

    assert floating == []


def test_the_same_file_gives_the_same_bytes_in_another_process(
    trainium: Assembly, tmp_path: Path
) -> None:
    program = (
        "from pathlib import Path; from tests.assembly import synthesize;"
        f"synthesize(Path({str(ROOT / 'clusters' / 'trainium-bert.yaml')!r}),"
        f" Path({str(tmp_path)!r}))"
    )
    # Another seed orders sets and hashes differently.
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": f"{ROOT}:{ROOT}/constructs"}
    subprocess.run(
        [sys.executable, "-c", program], check=True, cwd=ROOT, env=environment, capture_output=True
    )

    compared = 0
    for pattern in ("cdk.out/*.template.json", "cdk.out/*.assets.json", "dist/*"):
        names = {path.name for path in trainium.folder.glob(pattern)}
        assert names == {path.name for path in tmp_path.glob(pattern)}
        for path in trainium.folder.glob(pattern):
            other = tmp_path / path.relative_to(trainium.folder)
            assert path.read_bytes() == other.read_bytes(), path.name
            compared += 1
    assert compared > 20


def test_manifests_are_numbered_in_the_order_they_are_applied(trainium: Assembly) -> None:
    assert list(trainium.charts) == [
        "namespaces",
        "priority-classes",
        "cluster-autoscaler",
        "neuron-device-plugin",
        "efa-device-plugin",
        "etcd",
        "lustre-volumes",
        "volcano-crds",
        "volcano",
        "queue-test",
        "volcano-webhooks",
    ]


def test_no_role_of_a_node_can_change_the_network(trainium: Assembly) -> None:
    for stack in ("system", "trn1"):
        for body in trainium.templates[stack]["Resources"].values():
            assert "AmazonEKS_CNI_Policy" not in str(body)
