"""Mistakes in pools, and in what they need of the cluster."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.config_documents import KARPENTER, TWO_ZONES, mistakes_in, with_pool
from tests.support.pools import (
    HYPERPOD_POOL,
    SYSTEM_POOL,
    make_document,
    make_pool,
    pool_document,
)
from ultrascale import catalog
from ultrascale.config import pool_rules

MANY = [name for name, spec in sorted(catalog.INSTANCE_TYPES.items()) if not spec.accelerator][:21]

BAD: dict[str, tuple[dict[str, Any], str]] = {
    # --- what the services take of Kubernetes' words
    "more taints than a group has": (
        with_pool(taints=[{"key": f"a{each}", "value": "x"} for each in range(48)]),
        "pools[train].taints: more taints than the 47 that a group has room for beside ours, "
        "got 48; "
        "keep 47",
    ),
    "label key that EKS does not take": (
        with_pool(labels={f"{'a' * 60}.example/a": "x"}),
        "pools[train].labels."
        + f"{'a' * 60}.example/a: a key of more than the 63 characters that EKS "
        f"takes, got {'a' * 60}.example/a; shorten it",
    ),
    "label without a value on a managed group": (
        with_pool(labels={"fast": ""}),
        "pools[train].labels.fast: a label without a value, which EKS does not take, got ''; "
        "write one, such as 'true'",
    ),
    "taint without a value on HyperPod": (
        with_pool(
            provisioner="hyperpod", nodes={"static": 2}, taints=[{"key": "fast", "value": ""}]
        ),
        "pools[train].taints[0].value: a taint without a value, which HyperPod does not take, "
        "got ''; "
        "write one, such as 'true'",
    ),
    "more types than a managed group has": (
        with_pool(instance_types=MANY),
        "pools[train].instance_types: more instance types than the 20 that a group of "
        "managed-node-group takes, got 21; leave some out",
    ),
    # --- karpenter
    "Karpenter's version with a v": (
        make_document(karpenter={"version": "v1.15.1"}),
        "karpenter.version: not a chart version, got 'v1.15.1'; "
        "write MAJOR.MINOR.PATCH, without a v",
    ),
    "Karpenter pool without Karpenter": (
        with_pool(provisioner="karpenter"),
        "pools[train].provisioner: Karpenter is not installed, got 'karpenter'; "
        "add karpenter: {version: …} to the cluster file",
    ),
    "Karpenter beside Auto Mode": (
        with_pool(provisioner="auto-mode") | {"karpenter": KARPENTER},
        "karpenter: EKS Auto Mode and self-managed Karpenter in one cluster (this product's "
        "limit: both own the karpenter.sh resources); remove it, or use a cluster for each",
    ),
    # --- pools
    "no pool": (make_document(pools=[]), "pools: no pool at all; add one named system"),
    "no system pool": (
        make_document(pools=[pool_document()]),
        "pools: no pool has role: system, so controllers and add-ons have no nodes; "
        "add a pool named system",
    ),
    "no system pool for Volcano": (
        make_document(
            pools=[pool_document(provisioner="auto-mode")],
            scheduling={"queueing": "volcano"},
        ),
        "pools: no pool has role: system, so controllers and add-ons have no nodes; "
        "add a pool named system",
    ),
    "system pool on Karpenter": (
        make_document(
            pools=[SYSTEM_POOL | {"provisioner": "karpenter", "nodes": {"max": 3}}],
            karpenter=KARPENTER,
        ),
        "pools[system].provisioner: a system pool that karpenter launches: its controllers run "
        "on that "
        "pool, got 'karpenter'; use managed-node-group",
    ),
    "system pool that may be empty": (
        make_document(pools=[SYSTEM_POOL | {"nodes": {"max": 3}}]),
        "pools[system].nodes: a system pool that may be empty: nothing would scale it up, got "
        "{max: 3}; "
        "set nodes.min to at least 1",
    ),
    "more labels than a NodePool takes": (
        make_document(
            pools=[
                SYSTEM_POOL,
                pool_document(
                    provisioner="auto-mode", labels={f"l{number}": "x" for number in range(81)}
                ),
            ]
        ),
        "pools[train].labels: more labels than the 80 that a NodePool has room for beside ours, "
        "got 81; keep 80",
    ),
    "two pools of one name": (
        make_document(pools=[SYSTEM_POOL, pool_document(), pool_document()]),
        "pools[2].name: the name of pools[1] too, got 'train'; choose another",
    ),
    "pool named as a shard": (
        make_document(pools=[SYSTEM_POOL, pool_document(shards=2), pool_document(name="train-1")]),
        "pools[train-1].name: the name of a shard of pool train, got 'train-1'; choose another",
    ),
    "misspelt instance type": (
        with_pool(instance_types=["p5.48xlrage"]),
        "pools[train].instance_types[0]: unknown instance type 'p5.48xlrage'; did you mean "
        "p5.48xlarge?",
    ),
    "instance type in SageMaker's words": (
        with_pool(instance_types=["ml.p5.48xlarge"]),
        "pools[train].instance_types[0]: an instance type with SageMaker's prefix, "
        "got 'ml.p5.48xlarge'; write p5.48xlarge",
    ),
    "no instance type": (
        with_pool(instance_types=[]),
        "pools[train].instance_types: empty, got []; write at least one",
    ),
    "instance type twice": (
        with_pool(instance_types=["p5.48xlarge", "p5.48xlarge"]),
        "pools[train].instance_types[1]: stands in the list twice, got 'p5.48xlarge'; keep one",
    ),
    "instance types as text": (
        with_pool(instance_types="p5.48xlarge"),
        "pools[train].instance_types: not a list, got 'p5.48xlarge'; write it in brackets, as "
        "[a, b]",
    ),
    "unlike accelerators": (
        with_pool(instance_types=["p5.48xlarge", "trn2.48xlarge"]),
        "pools[train].instance_types: types with unlike accelerators in one pool (neuron, nvidia), "
        "got [p5.48xlarge, trn2.48xlarge]; make a pool of each kind",
    ),
    "accelerated and plain types": (
        with_pool(instance_types=["p5.48xlarge", "m7i.48xlarge"]),
        "pools[train].instance_types: types with unlike accelerators in one pool (none, nvidia), "
        "got [p5.48xlarge, m7i.48xlarge]; make a pool of each kind",
    ),
    "unlike architectures": (
        with_pool(instance_types=["m7g.2xlarge", "m7i.2xlarge"]),
        "pools[train].instance_types: types of unlike architectures in one pool (amd64, arm64), "
        "got [m7g.2xlarge, m7i.2xlarge]; make a pool of each architecture",
    ),
    "pool outside the network's zones": (
        with_pool(zones=["us-west-2d"]),
        "pools[train].zones[0]: not one of network.zones, got 'us-west-2d'; "
        "use one of us-west-2a, us-west-2b, us-west-2c, or add it there",
    ),
    "misspelt provisioner": (
        with_pool(provisioner="karpentr"),
        "pools[train].provisioner: unknown value, got 'karpentr'; did you mean karpenter?",
    ),
    "more at least than at most": (
        with_pool(nodes={"min": 5, "max": 2}),
        "pools[train].nodes.min: more than max: 2, got 5; write at most 2",
    ),
    "at most no node": (
        with_pool(nodes={"max": 0}),
        "pools[train].nodes.max: a pool that never has a node, got 0; "
        "write at least 1; min: 0 lets the pool be empty",
    ),
    "static pool of no node": (
        with_pool(nodes={"static": 0}),
        "pools[train].nodes.static: a pool that never has a node, got 0; "
        "write at least 1; a pool that may be empty has a max instead",
    ),
    "more nodes than any cluster has": (
        with_pool(nodes={"max": 10**30}),
        f"pools[train].nodes.max: out of range, got {10**30}; write at most 100000",
    ),
    "more fixed nodes than any cluster has": (
        with_pool(nodes={"static": 100_001}),
        "pools[train].nodes.static: out of range, got 100001; write at most 100000",
    ),
    "static beside max": (
        with_pool(nodes={"static": 4, "max": 8}),
        "pools[train].nodes.max: a second count beside static, got 8; keep static, or min and max",
    ),
    "static beside a min of 0": (
        with_pool(nodes={"static": 4, "min": 0}),
        "pools[train].nodes.min: a second count beside static, got 0; keep static, or min and max",
    ),
    "no count": (
        with_pool(nodes={"min": 1}),
        "pools[train].nodes: no count of nodes, got {min: 1}; add max, or static for a fixed count",
    ),
    "count in words": (
        with_pool(nodes={"max": "many"}),
        "pools[train].nodes.max: not a whole number, got 'many'; write digits alone",
    ),
    "minimum of a NodePool": (
        with_pool(provisioner="auto-mode", nodes={"min": 1, "max": 2}),
        "pools[train].nodes.min: auto-mode pools that scale have no minimum, got 1; "
        "leave it out, or use static for a fixed count",
    ),
    "no shard": (
        with_pool(shards=0),
        "pools[train].shards: out of range, got 0; write at least 1",
    ),
    "placement group across zones": (
        with_pool(placement_group=True, zones=TWO_ZONES),
        "pools[train].zones: a cluster placement group lives in one zone, "
        "got [us-west-2a, us-west-2b]; keep one zone",
    ),
    "placement group across the network's zones": (
        with_pool(placement_group=True, zones=None),
        "pools[train].zones: a cluster placement group lives in one zone, "
        "got [us-west-2a, us-west-2b, us-west-2c]; keep one zone",
    ),
    "placement group of a type that none takes": (
        with_pool(placement_group=True, instance_types=["t3.large"]),
        "pools[train].instance_types[0]: a type that no cluster placement group takes, got "
        "'t3.large'; "
        "leave placement_group out",
    ),
    "placement group on HyperPod": (
        make_document(pools=[SYSTEM_POOL, HYPERPOD_POOL | {"placement_group": True}]),
        "pools[hp].placement_group: HyperPod places its instances itself, got true; leave it out",
    ),
    "EFA across zones": (
        with_pool(efa="all", zones=TWO_ZONES),
        "pools[train].zones: EFA does not reach from zone to zone, got [us-west-2a, us-west-2b]; "
        "keep one zone, or set efa: auto",
    ),
    "EFA layout for two types": (
        with_pool(efa="all", instance_types=["p5.48xlarge", "p5en.48xlarge"]),
        "pools[train].instance_types: the layout of EFA interfaces fits one instance type, "
        "got [p5.48xlarge, p5en.48xlarge]; make a pool of each type, or set efa: auto",
    ),
    "EFA on a type without it": (
        with_pool(efa="all", instance_types=["m7g.2xlarge"]),
        "pools[train].instance_types[0]: a type without EFA, got 'm7g.2xlarge'; set efa: none",
    ),
    "deep health checks on plain EKS": (
        with_pool(deep_health_checks=True),
        "pools[train].deep_health_checks: only HyperPod has deep health checks, got true; "
        "leave it out",
    ),
    "label of another owner": (
        with_pool(labels={"node.kubernetes.io/exclude": "x"}),
        "pools[train].labels.node.kubernetes.io/exclude: labels of kubernetes.io are not yours to "
        "set, got 'x'; use a domain of your own",
    ),
    "label value with a space": (
        with_pool(labels={"team": "a b"}),
        "pools[train].labels.team: not a Kubernetes label value, got 'a b'; "
        "use at most 63 letters, digits, '-', '_' and '.'",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)


@pytest.mark.parametrize(
    ("pools", "line"),
    [
        ({}, "pools: not a list, got {}; write it in brackets, as [a, b]"),
        (None, "pools: not a list, got null; write it in brackets, as [a, b]"),
        ([], "pools: no pool at all; add one named system"),
        ([5], "pools[0]: not a mapping, got 5; write it as key: value"),
    ],
)
def test_pools_that_are_none_are_one_mistake(pools: object, line: str) -> None:
    assert mistakes_in(make_document() | {"pools": pools}) == [line]


def test_a_file_without_the_key_pools_has_one_mistake() -> None:
    assert mistakes_in(make_document(pools=None)) == ["pools: missing; add it"]


def test_a_type_that_no_placement_group_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog has no such type so far."""
    spec = catalog.lookup("p5.48xlarge")
    barred = replace(spec, cells={**spec.cells, "placement_group": "no"})
    pool = make_pool(placement_group=True)
    monkeypatch.setattr(catalog, "lookup", {"p5.48xlarge": barred}.__getitem__)

    (mistake,) = pool_rules.placement_group_takes_the_types(pool)

    assert mistake.at == ("instance_types", 0)
    assert mistake.todo == "leave placement_group out"
