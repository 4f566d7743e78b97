"""Programs of several nodes that are not torchrun's know where the first of their pods is."""

from pathlib import Path
from typing import Any

import yaml

from tests.support.folders import ROOT
from tests.support.jobs import environment
from ultrascale.jobs import prepare

TRAINIUM = ROOT / "clusters" / "trainium-bert.yaml"


def variables(cluster: Path, **job: Any) -> dict[str, str]:
    image = "docker.io/library/python:3.12"
    stated = {"name": "run", "pool": "trn1", "image": image, "command": ["mpirun"], **job}
    return environment(prepare(cluster, stated))


def test_first_pod_has_the_name_that_volcano_or_an_indexed_job_gives_it(tmp_path: Path) -> None:
    stated = yaml.safe_load(TRAINIUM.read_text())
    stated["scheduling"] = {"queueing": "none"}
    stated["pools"][1]["nodes"] = {"static": 2}
    plain = tmp_path / "cluster.yaml"
    plain.write_text(yaml.safe_dump(stated))
    assert variables(TRAINIUM, nodes=2)["RANK_ZERO_HOST"] == "run-worker-0.run"
    assert variables(plain, nodes=2)["RANK_ZERO_HOST"] == "run-0.run"
    # Pods that need not find the first one are not told: it is alone, or torchrun's.
    by_torchrun: dict[str, Any] = {"nodes": 2, "command": [], "script": "train.py"}
    for job in ({"nodes": 1}, by_torchrun):
        assert "RANK_ZERO_HOST" not in variables(TRAINIUM, **job)
