"""Checkpoints in `ultrascale plan`: what a place gives, and how often a fleet has to save."""

from typing import Any

import pytest

from tests.support.needs import KARPENTER, POD_RANGES, needs
from tests.support.pools import LUSTRE as FILE_SYSTEM
from tests.support.pools import pool_document
from ultrascale.plan.model import CheckpointNeeds

FLEET = {"option": "odcr", "reservation_tags": {"fleet": "train"}}
BUCKET: dict[str, Any] = {"buckets": ["checkpoints"]}
CLAIM = {"namespace": "training", "name": "data", "mount_path": "/data"}
LUSTRE: dict[str, Any] = {
    "lustre": [
        FILE_SYSTEM
        | {"name": "fast", "capacity_gib": 38_400, "throughput_mbps_per_tib": 500, "claim": CLAIM}
    ]
}
RECIPE: dict[str, Any] = {"recipe": "llama3-8b", "nodes": 4, "image": "train", "pool": "train"}


def rows(
    nodes: int, storage: dict[str, Any], instance_type: str = "p5en.48xlarge", **sections: Any
) -> tuple[CheckpointNeeds, ...]:
    pool = pool_document(
        name="train",
        instance_types=[instance_type],
        purchase=FLEET,
        provisioner="karpenter",
        role="reserved",
        nodes={"static": nodes},
    )
    found = needs(pool, karpenter=KARPENTER, network=POD_RANGES, storage=storage, **sections)
    return found.checkpoints


def values(row: CheckpointNeeds) -> dict[str, float | None]:
    return {key: figure.value for key, figure in row.figures.items()}


def test_more_nodes_fail_more_often_and_save_more_often() -> None:
    """At the published rate: 419 interruptions of 2,048 nodes in 54 days."""
    [few], [many] = rows(100, BUCKET), rows(4_000, BUCKET)

    assert few.subject == "all of train"
    assert values(few)["seconds_between_failures"] == pytest.approx(63.35 * 3600, rel=1e-3)
    assert values(many)["seconds_between_failures"] == pytest.approx(95 * 60, rel=1e-2)
    assert (values(many)["interval_seconds"] or 0) < (values(few)["interval_seconds"] or 0) / 5


def test_a_bucket_takes_no_more_the_more_nodes_write() -> None:
    """S3 takes 3,500 writes a second of one prefix, and our programs send 64 MiB in each."""
    [few], [many] = rows(100, BUCKET), rows(4_000, BUCKET)
    assert few.place == "s3://checkpoints"
    assert values(few)["gb_per_second"] == pytest.approx(3_500 * 64 * 2**20 / 1e9)
    assert values(many)["gb_per_second"] == values(few)["gb_per_second"]
    # A file system gives what was bought.
    [row] = rows(100, LUSTRE)
    assert row.place == "claim data"
    assert values(row)["gb_per_second"] == pytest.approx(37.5 * 500 / 1000)


def test_where_nothing_is_kept_no_number_is_made_up() -> None:
    [row] = rows(100, {})
    unknown = {key for key, value in values(row).items() if value is None}
    assert row.place == ""
    assert unknown == {
        *("gb_per_second", "save_seconds", "held_seconds", "interval_seconds", "lost_percent")
    }
    assert "bucket" in row.figures["save_seconds"].formula


@pytest.mark.parametrize(
    ("nodes", "instance_type", "models"),
    [
        (16, "p5en.48xlarge", ["Llama 3.1 405B"]),
        (8, "p5.48xlarge", ["Llama 3.1 70B"]),
        # No recipe of the largest model is for Trainium2, none at all for Trainium 1 or an L40S.
        (64, "trn2.48xlarge", ["Llama 3.1 70B"]),
        (64, "trn1.32xlarge", []),
        (64, "g6e.12xlarge", []),
    ],
)
def test_a_pool_is_reckoned_with_a_model_that_it_can_train(
    nodes: int, instance_type: str, models: list[str]
) -> None:
    found = rows(nodes, BUCKET, instance_type)

    assert [each.model for each in found] == models


def test_a_template_with_a_recipe_says_what_is_trained() -> None:
    rate = {"node_hours_between_failures": 100}
    [row] = rows(
        8, LUSTRE, images={"repositories": ["train"]}, jobs={"tune": RECIPE | {"restarts": rate}}
    )

    assert (row.subject, row.model) == ("job tune", "Llama 3.1 8B")
    assert values(row)["gigabytes"] == pytest.approx(96, rel=0.01)
    assert values(row)["seconds_between_failures"] == 25 * 3600


def test_each_rate_names_the_page_that_states_it() -> None:
    for storage in (BUCKET, LUSTRE):
        [row] = rows(100, storage)
        for key in ("gb_per_second", "seconds_between_failures", "interval_seconds"):
            assert row.figures[key].sources, key
