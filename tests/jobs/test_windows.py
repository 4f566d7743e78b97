"""Jobs and Capacity Blocks: nobody waits for nodes that are gone, or is surprised by their end."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests.support.jobs import job_cluster, make_job
from tests.support.pools import CAPACITY_BLOCK, pool_document
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests, prepare

POOL = pool_document(purchase=CAPACITY_BLOCK, nodes={"max": 16})


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(job_cluster(POOL)))
    return file


def sent_at(cluster: Path, day: int, hour: int = 12, minute: int = 0) -> JobManifests:
    now = datetime(2026, 12, day, hour, minute, tzinfo=UTC)
    return prepare(cluster, make_job(), now=now)


def test_a_job_is_told_of_the_ends_of_its_block_and_not_sent_to_nodes_that_are_gone(
    cluster: Path,
) -> None:
    (note,) = sent_at(cluster, 1, 11).notes
    assert note == (
        "Nodes of train come at 2026-12-01 11:30 UTC and are drained from 2026-12-08 10:50 UTC on, "
        "as their Capacity Block ends."
    )
    (note,) = sent_at(cluster, 8, 10, 49).notes
    assert note.startswith("Nodes of train are drained from 2026-12-08 10:50 UTC on")
    with pytest.raises(ConfigError) as told:
        sent_at(cluster, 8, 10, 50)
    assert str(told.value) == (
        "job: pool: a Capacity Block whose nodes are gone since 2026-12-08 10:50 UTC; "
        "choose another pool"
    )
    assert prepare(cluster, make_job()).notes == ()
