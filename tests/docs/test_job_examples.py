"""Jobs that the pages of Ray and post-training show: a reader copies them into a file of theirs."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from tests.support.folders import ROOT
from tests.support.jobs import refusals
from tests.support.pools import pool_document


def jobs_of(page: str) -> Mapping[str, dict[str, Any]]:
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    shown = [yaml.safe_load(block) for block in blocks]
    return {name: job for block in shown for name, job in block.get("jobs", block).items()}


JOBS = [*jobs_of("ray.md").items(), *jobs_of("post-training.md").items()]


@pytest.mark.parametrize(("name", "shown"), JOBS, ids=[name for name, _ in JOBS])
def test_a_job_of_a_page_is_accepted_on_the_pools_that_it_names(
    name: str, shown: Mapping[str, Any]
) -> None:
    ray = shown.get("kind") == "ray"
    file = "clusters/ray.yaml" if ray else "clusters/post-training.yaml"
    cluster = yaml.safe_load((ROOT / file).read_text())
    if not ray:
        zones = ["us-east-2a"]
        cluster["pools"].append(
            pool_document(name="trn", instance_types=["trn2.48xlarge"], zones=zones)
        )
        queue = {"name": "trainium", "guarantee": {"trn": 1}, "prefer": ["trn"]}
        cluster["scheduling"]["queues"].append(queue)

    assert refusals(cluster, {"name": name, **shown}) == []


def test_the_example_of_verl_uses_every_gpu_of_its_nodes() -> None:
    cluster = yaml.safe_load((ROOT / "clusters/ray.yaml").read_text())
    for job in (cluster["jobs"]["align"], jobs_of("ray.md")["align"]):
        stated = dict(word.partition("=")[::2] for word in job["command"])
        devices = sum(role["nodes"] for role in job["roles"].values()) * 8

        assert int(stated["trainer.nnodes"]) * int(stated["trainer.n_gpus_per_node"]) == devices
        assert devices % int(stated["actor_rollout_ref.rollout.tensor_model_parallel_size"]) == 0
        assert stated["trainer.default_local_dir"].startswith("/data/"), "lost with the pod"
