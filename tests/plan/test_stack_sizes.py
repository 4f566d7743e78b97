"""Lists that no stack has room for are told before synthesis fails."""

import json
from typing import Any

import pytest

from tests.support.assembly import Assembly, synthesize
from tests.support.cases import for_each
from tests.support.pools import (
    LUSTRE,
    NEURON_POOL,
    SYSTEM_POOL,
    as_text,
    governed_document,
    loads_own,
    make_document,
)
from tests.support.verdicts import verdicts
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster, stack_sizes
from ultrascale.plan.stack_sizes import Size

VOLCANO, KUEUE = {"queueing": "volcano"}, {"queueing": "kueue"}
ROLE = "arn:aws:iam::111122223333:role/"


def file_systems(count: int) -> list[dict[str, Any]]:
    return [
        LUSTRE
        | {
            "name": f"fs{each}",
            "claim": {"namespace": f"team{each}", "name": "data", "mount_path": "/data"},
            "s3": {"bucket": "data", "prefix": f"part{each}"},
        }
        for each in range(count)
    ]


def shards(count: int, provisioner: str, **changes: Any) -> dict[str, Any]:
    pool = NEURON_POOL | {"provisioner": provisioner, "shards": count, "nodes": {"max": 1}}
    return make_document(pools=[SYSTEM_POOL, pool], **changes)


def lines(document: dict[str, Any]) -> list[str]:
    try:
        plan_cluster(loads_own(as_text(document)))
    except ConfigError as error:
        return verdicts(error)
    return []


LONG: dict[str, tuple[dict[str, Any], str]] = {
    "40 file systems": (
        make_document(storage={"lustre": file_systems(40), "buckets": ["data"]}),
        "storage.lustre: storage_fits",
    ),
    "200 repositories": (
        make_document(images={"repositories": [f"r{each}" for each in range(200)]}),
        "images.repositories: repositories_fit",
    ),
    "100 buckets": (
        make_document(storage={"buckets": [f"bucket{each}" for each in range(100)]}),
        "storage.buckets: storage_fits",
    ),
    "600 queues": (
        make_document(scheduling=VOLCANO | {"queues": [{"name": f"q{n}"} for n in range(600)]}),
        "scheduling.queues: scheduling_fits",
    ),
    "600 queues of Kueue": (
        make_document(scheduling=KUEUE | {"queues": [{"name": f"q{n}"} for n in range(600)]}),
        "scheduling.queues: scheduling_fits",
    ),
    "2,000 priority classes": (
        make_document(scheduling={"priority_classes": {f"p{each}": each for each in range(2000)}}),
        "scheduling.priority_classes: scheduling_fits",
    ),
    "500 administrators": (
        make_document(kubernetes={"admins": [f"{ROLE}A{each}" for each in range(500)]}),
        "kubernetes.admins: administrators_fit",
    ),
    "500 roles with access": (
        make_document(
            kubernetes={"access": [{"role": f"{ROLE}A{n}", "policy": "view"} for n in range(500)]}
        ),
        "kubernetes.access: administrators_fit",
    ),
    "200 NodePools": (
        shards(200, "auto-mode"),
        "pools: pools_fit",
    ),
    "3,000 Auto Scaling groups": (
        shards(3000, "self-managed"),
        "pools: pools_fit",
    ),
    "600 teams": (
        governed_document(*({"name": f"t{n}", "fair_share_weight": 1} for n in range(600))),
        "hyperpod.task_governance.teams: teams_fit",
    ),
}


@for_each(LONG)
def test_a_list_that_one_stack_has_no_room_for_is_refused(
    document: dict[str, Any], line: str
) -> None:
    assert line in lines(document)


def cluster_of(count: int) -> dict[str, Any]:
    """Return a cluster with ``count`` of each thing that is listed."""
    pools = [
        NEURON_POOL | {"name": f"p{each}", "provisioner": "karpenter", "nodes": {"max": 1}}
        for each in range(count)
    ]
    return make_document(
        pools=[SYSTEM_POOL, *pools],
        karpenter={"version": "1.15.2"},
        kubernetes={
            "admins": [f"{ROLE}A{each}" for each in range(count)],
            "access": [
                {"role": f"{ROLE}R{each}", "policy": level, **scope}
                for each in range(count)
                for level, scope in (("edit", {"namespaces": ["training"]}), ("view", {}))
            ],
        },
        images={"repositories": [f"r{each}" for each in range(count)]},
        storage={
            "lustre": file_systems(count),
            "buckets": ["data", *(f"bucket{each}" for each in range(count))],
        },
        scheduling=VOLCANO
        | {
            "queues": [{"name": f"q{each}"} for each in range(count)],
            "priority_classes": {f"p{each}": each for each in range(count)},
        },
        observability={"dashboards": True, "alarms": {"email": "ops@acme.dev"}},
    )


LAYERS: dict[str, tuple[stack_sizes.Listed, ...]] = {
    "storage": ("file system", "bucket"),
    "registry": ("repository",),
    "images": ("repository",),
    "access": ("administrator", "role with access"),
    "node-pools": ("NodePool",),
    "observability": ("pool",),
}


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Size]]:
    found: dict[int, dict[str, Size]] = {}
    for count in (1, 3):
        folder = tmp_path_factory.mktemp(f"sizes{count}")
        file = folder / "cluster.yaml"
        file.write_text(as_text(cluster_of(count)))
        found[count] = sizes_of(synthesize(file, folder))
    return found


def sizes_of(assembly: Assembly) -> dict[str, Size]:
    return {
        stack: Size(
            resources=len(template.get("Resources", {})),
            outputs=len(template.get("Outputs", {})),
            size_bytes=len(json.dumps(template)),
        )
        for stack, template in assembly.templates.items()
    }


def test_stacks_grow_no_faster_than_the_rules_count(sizes: dict[int, dict[str, Size]]) -> None:
    for layer, items in LAYERS.items():
        small, large = sizes[1][layer], sizes[3][layer]
        for key in ("resources", "outputs", "size_bytes"):
            grown = getattr(large, key) - getattr(small, key)
            counted = sum(getattr(stack_sizes.OF_ITEM[item], key) for item in items)
            assert grown <= 2 * counted, f"{layer}: {key} grow by {grown / 2}"


def test_the_platform_is_as_small_as_the_rules_count(sizes: dict[int, dict[str, Size]]) -> None:
    found = sizes[3]["platform"]

    assert found.resources <= stack_sizes.PLATFORM.resources
    assert found.size_bytes <= stack_sizes.PLATFORM.size_bytes
