"""Names of a cluster's images, and the sources they are built from."""

from typing import Any

import pytest

from tests.support.pools import POOL, SYSTEM_POOL, make_cluster
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.names import image_uri

Changes = dict[str, Any]

NEURON: Changes = {"name": "trn", "instance_types": ["trn1.32xlarge"]}
GPU: Changes = {"name": "gpu", "instance_types": ["p5.48xlarge"]}
CPU: Changes = {"name": "cpu", "instance_types": ["m7i.8xlarge"]}
ARM: Changes = {"name": "arm", "instance_types": ["m7g.8xlarge"]}


def planned(*pools: Changes, builds: Changes | None = None) -> ClusterPlan:
    images = {"repositories": ["bert-pretrain", "tensorboard"], "builds": builds or {}}
    return plan_cluster(
        make_cluster(pools=[SYSTEM_POOL, *(POOL | pool for pool in pools)], images=images)
    )


def dockerfiles(plan: ClusterPlan) -> dict[str, str]:
    return {build.repository: build.dockerfile for build in plan.images.builds}


@pytest.mark.parametrize(
    ("region", "suffix"),
    [("us-west-2", ""), ("us-gov-west-1", ""), ("cn-north-1", ".cn")],
)
def test_job_pulls_from_the_registry_of_its_cluster(region: str, suffix: str) -> None:
    names = {"cluster": "research", "repository": "bert-pretrain", "tag": "0123456789ab"}
    registry = f"111122223333.dkr.ecr.{region}.amazonaws.com{suffix}"
    uri = image_uri(account="111122223333", region=region, **names)
    assert uri == f"{registry}/research/bert-pretrain:0123456789ab"


@pytest.mark.parametrize(
    ("pools", "dockerfile"),
    [
        ((NEURON,), "neuron"),
        ((GPU,), "nvidia"),
        ((CPU,), "cpu"),
        ((NEURON, CPU), "neuron"),
        ((GPU, ARM), "nvidia"),
    ],
)
def test_a_repository_holds_the_image_of_the_pools(
    pools: tuple[Changes, ...], dockerfile: str
) -> None:
    plan = planned(*pools)
    assert dockerfiles(plan) == {"bert-pretrain": dockerfile, "tensorboard": "tensorboard"}
    assert not plan.images.unbuilt


@pytest.mark.parametrize(
    ("pools", "reason"),
    [((NEURON, GPU), "with Neuron devices and with NVIDIA GPUs"), ((ARM,), "no pool has x86-64")],
    ids=["two accelerators", "Graviton alone"],
)
def test_an_image_that_would_be_guessed_is_not_built_and_the_plan_says_why(
    pools: tuple[Changes, ...], reason: str
) -> None:
    plan = planned(*pools)

    assert dockerfiles(plan) == {"tensorboard": "tensorboard"}
    assert reason in plan.images.unbuilt["bert-pretrain"]
    assert "images.builds" in plan.images.unbuilt["bert-pretrain"]


@pytest.mark.parametrize(
    ("controllers", "architecture"), [("m7g.2xlarge", "arm64"), ("m7i.2xlarge", "amd64")]
)
def test_tensorboard_runs_on_nodes_that_stay_and_training_on_those_of_its_accelerator(
    controllers: str, architecture: str
) -> None:
    images = {"repositories": ["bert-pretrain", "tensorboard"]}
    system = SYSTEM_POOL | {"instance_types": [controllers]}

    plan = plan_cluster(make_cluster(pools=[system, POOL | NEURON], images=images))

    assert {build.repository: build.architecture for build in plan.images.builds} == {
        "bert-pretrain": "amd64",
        "tensorboard": architecture,
    }


def test_the_file_has_the_last_word() -> None:
    plan = planned(NEURON, GPU, builds={"bert-pretrain": "nvidia", "tensorboard": "none"})

    assert dockerfiles(plan) == {"bert-pretrain": "nvidia"}
    assert plan.images.unbuilt == {"tensorboard": "by images.builds"}
