"""Planted hosts are found by the reader, and no way leads to them.

`tests.support.planted_hosts` was written before its author had seen the reader. That the estate as
it is has no such host is in `test_closed_network`.
"""

from pathlib import Path

import pytest

from tests.support.assembly import Assembly
from tests.support.folders import ROOT
from tests.support.planted_hosts import PLAIN, PLANTS, Plant, planted
from ultrascale import yaml_writer
from ultrascale.hosts import read_hosts, ways_to
from ultrascale.jobs.preparation import prepare

CLUSTER = ROOT / "clusters" / "existing-estate.yaml"


@pytest.fixture(scope="module")
def job() -> str:
    """Return the objects of the job ``train``, as ``submit --dry-run`` prints them."""
    return yaml_writer.dump_all(prepare(CLUSTER, "train", account="111122223333").objects)


def test_each_kind_of_place_is_planted_plain_and_hidden() -> None:
    kinds = {plant.kind for plant in PLANTS}

    assert len(kinds) >= 9
    assert all({PLAIN} < {each.encoding for each in PLANTS if each.kind == kind} for kind in kinds)
    assert len({plant.host for plant in PLANTS}) == len(PLANTS)


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_planted_host_is_found_where_it_lies(
    plant: Plant, estate: Assembly, job: str, tmp_path: Path
) -> None:
    folder = planted(plant, estate.folder / "cdk.out", job, tmp_path)
    uses = (use for use in read_hosts(folder, estate.plan.region) if use.host == plant.host)

    places = [
        f"{found.use.file}:{found.use.place}"
        for found in ways_to(uses, estate.plan)
        if found.way == "none"
    ]

    assert [each for each in places if all(word in each for word in plant.place)], places
