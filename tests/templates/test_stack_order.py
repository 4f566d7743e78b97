"""In which order the stacks of Karpenter and EKS Auto Mode come and go.

Nodes that come before what they need are paid for and never join. NodePools that outlive the
controller which launched their nodes leave instances that nobody ends.
"""

import json
from collections.abc import Callable
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
    ("file", "layer", "earlier"),
    [
        ("mixed", "karpenter", "cluster system addons platform"),
        ("mixed", "node-pools", "karpenter platform"),
        ("mixed", "gpu-block-mng", "platform scaling"),
        ("mixed", "trn-block-asg", "platform scaling node-addons"),
        ("mixed", "system", "scaling node-addons"),
        ("auto", "nodes", "cluster"),
        ("auto", "system-node-pools", "nodes"),
        ("auto", "platform", "system-node-pools storage"),
        ("auto", "node-pools", "nodes platform"),
        ("hybrid", "hyperpod-chart", "cluster system addons platform"),
        ("hybrid", "hyperpod-groups", "hyperpod-chart platform storage"),
        # Pods have credentials only where their account had a role before them, and the manifests
        # name the database.
        ("hybrid", "platform", "backend"),
        # A Role needs its namespace, which task governance makes.
        ("hybrid", "teams", "governance"),
        ("trainium", "cluster", "network"),
        ("trainium", "access", "cluster"),
        ("trainium", "node-addons", "cluster"),
        ("trainium", "scaling", "cluster"),
        ("trainium", "system", "node-addons scaling"),
        ("trainium", "addons", "system"),
        ("trainium", "images", "registry"),
        ("trainium", "platform", "addons storage scaling"),
        ("trainium", "trn1", "platform addons node-addons"),
    ],
)
def test_a_stack_waits_for_what_it_cannot_work_without(
    file: str, layer: str, earlier: str, request: pytest.FixtureRequest
) -> None:
    assert {*earlier.split()} <= stacks_before(request.getfixturevalue(file), layer)


def test_no_stack_of_hyperpod_is_called_as_one_of_a_cluster_whose_name_ends_in_hyperpod() -> None:
    # `a-hyperpod-cluster` would be the EKS cluster of `a-hyperpod`, which a deploy of `a` replaces.
    own = {name.removeprefix("hyperpod-") for name in reserved_names() if "hyperpod-" in name}

    assert len(own) == 3
    assert not own & reserved_names()


@pytest.mark.parametrize("name", ["mixed", "auto", "hybrid", "ultra", "llm", "estate"])
def test_every_stack_says_whose_it_is_and_preflight_looks_for_it(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    cluster = assembly.plan.name
    told = {template.get("Description") for template in assembly.templates.values()}
    made = {f"{cluster}-{layer}" for layer in assembly.templates}

    assert told == {stack_description(cluster)}
    # A pipeline counts them.
    assert made == planned_stacks(assembly.plan)
    assert made <= stack_names(cluster, assembly.plan.all_pools)


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


@pytest.mark.parametrize("name", ["trainium", "mixed", "auto", "hybrid"])
def test_nothing_waits_for_capacity_that_may_not_come(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(name)
    last = {"node-pools", *(pool.name for pool in assembly.plan.pools)}

    for layer in assembly.templates:
        assert not stacks_before(assembly, layer) & last


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
            assert "karpenter" not in stacks_before(mixed, pool.name)


def test_nothing_of_a_node_group_is_installed_in_a_pure_auto_mode_cluster(auto: Assembly) -> None:
    assert not {"node-addons", "addons", "scaling", "karpenter"} & auto.templates.keys()
    kinds = {body["Type"] for _, body in auto.resources("AWS::EKS::Addon")}
    assert kinds == set()
    assert not any("device-plugin" in name for name in auto.charts)


def changed(name: str, folder: Path, change: Callable[[dict[str, Any]], object]) -> Assembly:
    """Return what a cluster file becomes with a change."""
    document: dict[str, Any] = yaml.safe_load((ROOT / "clusters" / f"{name}.yaml").read_text())
    change(document)
    file = folder / "changed.yaml"
    file.write_text(yaml.safe_dump(document))
    return synthesize(file, folder)


def test_add_ons_of_auto_mode_find_nodes_to_run_on(tmp_path: Path) -> None:
    lustre = {"name": "a", "zone": "us-east-2b", "capacity_gib": 1200}
    lustre |= {"throughput_mbps_per_tib": 250}

    assembly = changed("auto-mode", tmp_path, lambda it: it["storage"].update(lustre=[lustre]))

    assert "system-node-pools" in stacks_before(assembly, "addons")


def test_the_last_node_pool_that_leaves_the_file_leaves_the_cluster_and_no_export_does(
    mixed: Assembly, tmp_path: Path
) -> None:
    """CloudFormation deletes no export before its importer is deployed, which comes later.

    Pools only ever add exports: those that are there without any pool are there with some.
    """
    alone = changed("mixed-capacity", tmp_path, lambda it: it.update(pools=it["pools"][:1]))
    kinds = {body["Type"] for body in alone.templates["node-pools"]["Resources"].values()}

    assert "Custom::AWSCDK-EKS-KubernetesResource" not in kinds
    for layer in ("network", "cluster", "scaling", "storage", "karpenter"):
        assert exports(alone, layer) == exports(mixed, layer), layer


def test_no_export_leaves_with_the_images_or_the_claim_that_need_it(
    trainium: Assembly, tmp_path: Path
) -> None:
    """Nobody deletes the stack of a builder that left the file before the registry is deployed."""

    def reduce(document: dict[str, Any]) -> None:
        images = document["images"]
        images["builds"] = dict.fromkeys(images["repositories"], "none")
        del document["storage"]["lustre"][0]["claim"]

    reduced = changed("trainium-bert", tmp_path, reduce)

    assert "images" not in reduced.templates
    assert exports(reduced, "registry") == exports(trainium, "registry") != set()
    outputs = reduced.templates["storage"]["Outputs"].values()
    assert sum("Export" in output for output in outputs) == 3


def exports(assembly: Assembly, layer: str) -> set[str]:
    outputs = assembly.templates[layer].get("Outputs", {}).values()
    return {output["Export"]["Name"] for output in outputs if "Export" in output}


def test_each_layer_has_what_defines_its_stacks() -> None:
    assert all(callable(builder(layer)) for layer in all_layers())
