"""In which order the stacks of Karpenter and EKS Auto Mode come and go.

Nodes that come before what they need are paid for and never join. NodePools that outlive the
controller which launched their nodes leave instances that nobody ends.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.assembly import Assembly, stacks_before, synthesize
from tests.support.folders import ROOT
from ultrascale.deploy.cdk import read_assembly
from ultrascale.deploy.deployment import waits_for
from ultrascale.plan.names import stack_description
from ultrascale.plan.stacks import all_layers, planned_stacks, reserved_names, stack_names
from ultrascale.preflight.stacks import fixed_names
from ultrascale_stacks.builders import builder


@pytest.mark.parametrize(
    ("layer", "earlier"),
    [
        ("karpenter", {"cluster", "system", "addons", "platform"}),
        ("node-pools", {"karpenter", "platform"}),
        ("gpu-block-mng", {"platform", "scaling"}),
        ("trn-block-asg", {"platform", "scaling", "node-addons"}),
        ("system", {"scaling", "node-addons"}),
    ],
)
def test_a_stack_of_the_mixed_cluster_waits_for_what_it_cannot_work_without(
    mixed: Assembly, layer: str, earlier: set[str]
) -> None:
    assert earlier <= stacks_before(mixed, layer)


@pytest.mark.parametrize(
    ("layer", "earlier"),
    [
        ("nodes", {"cluster"}),
        ("system-node-pools", {"nodes"}),
        ("platform", {"system-node-pools", "storage"}),
        ("node-pools", {"nodes", "platform"}),
    ],
)
def test_a_stack_of_auto_mode_waits_for_what_it_cannot_work_without(
    auto: Assembly, layer: str, earlier: set[str]
) -> None:
    assert earlier <= stacks_before(auto, layer)


@pytest.mark.parametrize(
    ("layer", "earlier"),
    [
        ("hyperpod-chart", {"cluster", "system", "addons", "platform"}),
        ("hyperpod-groups", {"hyperpod-chart", "platform", "storage"}),
    ],
)
def test_a_stack_of_hyperpod_waits_for_what_it_cannot_work_without(
    hybrid: Assembly, layer: str, earlier: set[str]
) -> None:
    assert earlier <= stacks_before(hybrid, layer)


def test_no_stack_of_hyperpod_is_called_as_one_of_a_cluster_whose_name_ends_in_hyperpod() -> None:
    # `a-hyperpod-cluster` would be the EKS cluster of `a-hyperpod`, which a deploy of `a` replaces.
    own = {name.removeprefix("hyperpod-") for name in reserved_names() if "hyperpod-" in name}

    assert len(own) == 3
    assert not own & reserved_names()


@pytest.mark.parametrize("name", ["mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def test_every_stack_says_whose_it_is(name: str, request: pytest.FixtureRequest) -> None:
    assembly: Assembly = request.getfixturevalue(name)

    told = {template.get("Description") for template in assembly.templates.values()}

    assert told == {stack_description(assembly.plan.name)}


@pytest.mark.parametrize("name", ["mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def test_preflight_looks_for_every_stack_and_a_pipeline_counts_them(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    cluster = assembly.plan.name

    made = {f"{cluster}-{layer}" for layer in assembly.templates}
    assert made == planned_stacks(assembly.plan)
    assert made <= stack_names(assembly.plan.name, assembly.plan.all_pools)


@pytest.mark.parametrize("name", ["mixed", "auto", "hybrid"])
def test_nothing_waits_for_capacity_that_may_not_come(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    last = {"node-pools", *(pool.name for pool in assembly.plan.pools)}

    for layer in assembly.templates:
        assert not stacks_before(assembly, layer) & last


@pytest.mark.parametrize("name", ["mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def test_ultrascale_deploys_everything_else_before_nodes_that_are_paid_for(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    cluster = assembly.plan.name
    kinds = ("AWS::EKS::Nodegroup", "AWS::AutoScaling::AutoScalingGroup", "AWS::SageMaker::Cluster")
    launching = {f"{cluster}-{stack}" for kind in kinds for stack, _ in assembly.resources(kind)}
    launching -= {f"{cluster}-{pool.name}" for pool in assembly.plan.system_pools}
    launching.add(f"{cluster}-node-pools")

    order = waits_for(read_assembly(assembly.folder / "cdk.out"), assembly.plan)

    others = {stack for stack, earlier in order.items() if not earlier & launching} - launching
    assert launching <= order.keys()
    assert all(order[stack] == others for stack in launching)


def test_what_a_stack_takes_over_has_its_name_in_the_template_and_is_kept(
    trainium: Assembly,
) -> None:
    """CloudFormation imports nothing else, and the deployment would fail where it said it would."""
    importable = {each.name for each in fixed_names(trainium.plan) if each.importable}

    kept = {
        body["Properties"].get(key)
        for kind, key in (
            ("AWS::Logs::LogGroup", "LogGroupName"),
            ("AWS::ECR::Repository", "RepositoryName"),
        )
        for _, body in trainium.resources(kind)
        if body.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate")
        and isinstance(body["Properties"].get(key), str)
    }
    assert importable == kept != set()


def test_a_group_without_capacity_keeps_no_node_pool_from_being_deployed(mixed: Assembly) -> None:
    """The CDK deploys in the order of the assembly, and nothing after a stack that failed."""
    manifest = json.loads((mixed.folder / "cdk.out" / "manifest.json").read_text())
    order = [name.removeprefix("mixed-capacity-") for name in manifest["artifacts"]]

    for pool in mixed.plan.pools:
        if pool.is_node_group:
            assert order.index("node-pools") < order.index(pool.name)


def test_a_node_group_needs_no_karpenter(mixed: Assembly) -> None:
    assert "karpenter" not in stacks_before(mixed, "gpu-odcr-mng")


def test_nothing_of_a_node_group_is_installed_in_a_pure_auto_mode_cluster(auto: Assembly) -> None:
    assert not {"node-addons", "addons", "scaling", "karpenter"} & auto.templates.keys()
    kinds = {body["Type"] for _, body in auto.resources("AWS::EKS::Addon")}
    assert kinds == set()
    assert not any("device-plugin" in name for name in auto.charts)


def test_add_ons_of_auto_mode_find_nodes_to_run_on(tmp_path: Path) -> None:
    document: dict[str, Any] = yaml.safe_load((ROOT / "clusters" / "auto-mode.yaml").read_text())
    lustre = {"name": "a", "zone": "us-east-2b", "capacity_gib": 1200}
    document["storage"]["lustre"] = [lustre | {"throughput_mbps_per_tib": 250}]
    file = tmp_path / "lustre.yaml"
    file.write_text(yaml.safe_dump(document))

    assembly = synthesize(file, tmp_path)

    assert "system-node-pools" in stacks_before(assembly, "addons")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """The mixed cluster with its system pool alone."""
    folder = tmp_path_factory.mktemp("alone")
    document: dict[str, Any] = yaml.safe_load(
        (ROOT / "clusters" / "mixed-capacity.yaml").read_text()
    )
    document["pools"] = document["pools"][:1]
    file = folder / "alone.yaml"
    file.write_text(yaml.safe_dump(document))
    return synthesize(file, folder)


def test_the_last_node_pool_that_leaves_the_file_leaves_the_cluster(alone: Assembly) -> None:
    resources = alone.templates["node-pools"]["Resources"].values()
    assert not [
        body for body in resources if body["Type"] == "Custom::AWSCDK-EKS-KubernetesResource"
    ]


@pytest.mark.parametrize("layer", ["network", "cluster", "scaling", "storage", "karpenter"])
def test_no_export_leaves_with_the_pools_that_need_it(
    mixed: Assembly, alone: Assembly, layer: str
) -> None:
    """CloudFormation deletes no export before its importer is deployed, which comes later.

    Pools only ever add exports: those that are there without any pool are there with some.
    """
    assert exports(alone, layer) == exports(mixed, layer)


def test_no_export_leaves_with_the_images_that_need_it(trainium: Assembly, tmp_path: Path) -> None:
    """Nobody deletes the stack of a builder that left the file before the registry is deployed."""
    document: dict[str, Any] = yaml.safe_load(
        (ROOT / "clusters" / "trainium-bert.yaml").read_text()
    )
    repositories = document["images"]["repositories"]
    document["images"]["builds"] = dict.fromkeys(repositories, "none")
    file = tmp_path / "unbuilt.yaml"
    file.write_text(yaml.safe_dump(document))

    unbuilt = synthesize(file, tmp_path)

    assert "images" not in unbuilt.templates
    assert exports(unbuilt, "registry") == exports(trainium, "registry") != set()


def exports(assembly: Assembly, layer: str) -> set[str]:
    outputs = assembly.templates[layer].get("Outputs", {}).values()
    return {output["Export"]["Name"] for output in outputs if "Export" in output}


@pytest.mark.parametrize("layer", all_layers())
def test_each_layer_has_what_defines_its_stacks(layer: str) -> None:
    assert callable(builder(layer))
