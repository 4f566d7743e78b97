"""Rules for all charts: they render a plan and leave alone what a person's shell would replace."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.pools import SYSTEM_POOL, make_cluster, pool_document
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale_k8s import define_charts, write_manifests

MODULES = sorted((ROOT / "k8s").rglob("*.py"))
NEURON = pool_document(name="neuron", instance_types=["trn1.32xlarge"], nodes={"static": 4})
FILE_SYSTEMS = ("data-sets", "scratch")
PLACEHOLDER = re.compile(r"\$\{?FSX_")


def imported(module: Path) -> Iterator[str]:
    """Yield the full name of everything that the module imports."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    """A plan of which every chart is made."""
    lustre = [
        {"name": name, "zone": "us-west-2b", "capacity_gib": 1200, "throughput_mbps_per_tib": 250}
        | {"claim": {"namespace": "training", "name": name, "mount_path": f"/{name}"}}
        for name in FILE_SYSTEMS
    ]
    scheduling = {
        "queueing": "volcano",
        "queues": [{"name": "research", "weight": 1}],
        "neuron_scheduler_extension": True,
        "rendezvous": {"backend": "etcd-v2", "replicas": 3},
    }
    storage = {"lustre": lustre}
    pools = [SYSTEM_POOL, NEURON]
    return plan_cluster(make_cluster(pools=pools, storage=storage, scheduling=scheduling))


@pytest.fixture(scope="module")
def charts(plan: ClusterPlan) -> Mapping[str, str]:
    """The text of each chart's file, by the chart's name."""
    return {
        chart.name: yaml.safe_dump_all(chart.manifests) for chart in define_charts(plan).platform
    }


@for_each({str(module.relative_to(ROOT)): module for module in MODULES})
def test_a_chart_renders_what_was_decided_and_looks_nothing_up(module: Path) -> None:
    assert [name for name in imported(module) if name.startswith("ultrascale.catalog")] == []


def test_a_cluster_of_plain_objects_needs_no_cdk8s_plus() -> None:
    """Its import takes as long as that of the CDK."""
    typed = {
        str(module.relative_to(ROOT / "k8s" / "ultrascale_k8s"))
        for module in MODULES
        if any(name.startswith("cdk8s_plus_27") for name in imported(module))
    }
    own = {"_typed_pods.py", "etcd.py", "neuron.py"}
    platform = ast.parse((ROOT / "k8s" / "ultrascale_k8s" / "platform.py").read_text())
    at_once = {node.module for node in platform.body if isinstance(node, ast.ImportFrom)}

    assert {name for name in typed if not name.startswith("volcano/")} == own
    assert not [name for name in at_once if name and name.endswith((".etcd", ".neuron"))]
    assert not [name for name in at_once if name and ".volcano" in name]


def test_only_the_file_systems_chart_waits_for_what_gets_replaced_later(
    plan: ClusterPlan, charts: Mapping[str, str]
) -> None:
    text = charts["lustre-volumes"]
    replaced = {
        placeholder
        for lustre in plan.storage.lustre
        for placeholder in (lustre.file_system_id, lustre.dns_name, lustre.mount_name)
    }

    assert len(charts) == 15
    waiting = [name for name, each in charts.items() if PLACEHOLDER.search(each)]
    assert waiting == ["lustre-volumes"]
    assert {*re.findall(r"\$\{[^}]*\}", text)} == replaced
    assert len(replaced) == 3 * len(FILE_SYSTEMS)
    assert not re.search(r"\$[^{]", text)


def test_manifests_of_another_cluster_are_not_left_beside_these(
    plan: ClusterPlan, tmp_path: Path
) -> None:
    left, own = tmp_path / "0007-node-pool-other.k8s.yaml", tmp_path / "kustomization.yaml"
    for file in (left, own):
        file.touch()

    write_manifests(define_charts(plan), tmp_path)

    assert not left.exists()
    assert own.exists()
    assert [*tmp_path.glob("0000-*.k8s.yaml")]
