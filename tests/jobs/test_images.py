"""The image of a job: named shortly, pulled exactly, and only by nodes that can run it."""

from typing import Any

import pytest

from tests.support.jobs import container, job_cluster, make_job, prepared, refusals, sentences
from tests.support.pools import NEURON_POOL
from ultrascale.plan.delivery.build_context import content_tag

ACCOUNT = "111122223333"
REGISTRY = f"{ACCOUNT}.dkr.ecr.us-west-2.amazonaws.com/research"


def cluster(**changes: Any) -> dict[str, Any]:
    images = {"repositories": ["bert", "tensorboard"]}
    return job_cluster(NEURON_POOL, **({"images": images, "account": ACCOUNT} | changes))


def image_of(job: dict[str, Any], **changes: Any) -> str:
    return container(prepared(cluster(**changes), job))["image"]


@pytest.mark.parametrize(
    ("named", "pulled"),
    [
        ("bert", f"{REGISTRY}/bert:{content_tag('neuron', 'amd64')}"),
        ("bert:mine", f"{REGISTRY}/bert:mine"),
        ("docker.io/example/train:1", "docker.io/example/train:1"),
        ("localhost:5000/train:1", "localhost:5000/train:1"),
    ],
)
def test_a_short_name_becomes_the_reference_that_nodes_pull(named: str, pulled: str) -> None:
    assert image_of(make_job(image=named)) == pulled


def test_without_an_account_nobody_knows_where_the_registry_is() -> None:
    found = refusals(cluster(account=None), make_job(image="bert"), account=None)

    assert found == ["image: image_can_be_pulled"]


def test_a_repository_that_nothing_is_built_for_needs_a_tag() -> None:
    images = {"repositories": ["bert"], "builds": {"bert": "none"}}

    assert refusals(cluster(images=images), make_job(image="bert")) == [
        "image: image_can_be_pulled"
    ]
    assert image_of(make_job(image="bert:1"), images=images) == f"{REGISTRY}/bert:1"


def test_an_image_for_other_processors_is_refused_before_it_fails_on_every_node() -> None:
    job = make_job(image="tensorboard", nodes=1)

    (mistake,) = refusals(cluster(), job)

    assert mistake == "image: image_suits_nodes"


@pytest.mark.parametrize(
    ("image", "wrong"),
    [
        ("docker.io/example/train", "an image without a tag"),
        ("docker.io/example/train:latest", "a tag that moves"),
        ("bert:latest", "a tag that moves"),
        ("bert:", "not an image"),
    ],
)
def test_an_image_that_may_change_between_two_pods_is_refused(image: str, wrong: str) -> None:
    (mistake,) = sentences(cluster(), make_job(image=image))

    assert mistake.startswith(f"job: image: {wrong}")
