"""Programs of several nodes that are not torchrun's know where the first of their pods is."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from ultrascale.jobs import prepare

TRAINIUM = ROOT / "clusters" / "trainium-bert.yaml"


def variables(cluster: Path, **job: Any) -> dict[str, str]:
    image = "docker.io/library/python:3.12"
    stated = {"name": "run", "pool": "trn1", "image": image, "command": ["mpirun"], **job}
    spec: Any = prepare(cluster, stated).objects[-1]["spec"]
    template = spec["template"] if "template" in spec else spec["tasks"][0]["template"]
    return {
        each["name"]: each.get("value", "") for each in template["spec"]["containers"][0]["env"]
    }


def without_volcano(folder: Path, *, nodes: int) -> Path:
    stated = yaml.safe_load(TRAINIUM.read_text())
    stated["scheduling"] = {"queueing": "none"}
    stated["pools"][1]["nodes"] = {"static": nodes}
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(stated))
    return path


def test_first_pod_has_the_name_that_volcano_gives_it() -> None:
    assert variables(TRAINIUM, nodes=2)["RANK_ZERO_HOST"] == "run-worker-0.run"


def test_first_pod_has_the_name_that_an_indexed_job_gives_it(tmp_path: Path) -> None:
    found = variables(without_volcano(tmp_path, nodes=2), nodes=2)

    assert found["RANK_ZERO_HOST"] == "run-0.run"


@pytest.mark.parametrize(
    "job",
    [{"nodes": 1}, {"nodes": 2, "command": [], "script": "train.py"}],
    ids=["alone", "torchrun"],
)
def test_pods_that_need_not_find_the_first_one_are_not_told(job: dict[str, Any]) -> None:
    assert "RANK_ZERO_HOST" not in variables(TRAINIUM, **job)
