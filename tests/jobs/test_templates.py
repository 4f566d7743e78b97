"""A template of which no job could be made is found by `check`, not by a backend that starts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.jobs import HYBRID
from ultrascale.errors import ConfigError
from ultrascale.jobs.preparation import check_templates, read_cluster


def refusals(folder: Path, *, sections: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    """Return the mistakes in the hybrid file's templates, with ``changes`` to some of them."""
    document: dict[str, Any] = yaml.safe_load(HYBRID.read_text()) | (sections or {})
    for name, changed in changes.items():
        document["jobs"][name] = document["jobs"].get(name, {}) | changed
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    try:
        check_templates(read_cluster(file))
    except ConfigError as error:
        return [each.keyed for each in error.diagnostics]
    return []


@pytest.mark.parametrize(
    ("template", "line"),
    [
        pytest.param(
            {"development": {"team": "research"}},
            "jobs.development.team: a team's job on eks-on-demand: teams share only the nodes "
            "of HyperPod, got 'research'; choose a pool of provisioner hyperpod",
            id="a team's job on nodes that no team has",
        ),
        pytest.param(
            {"production": {"nodes": 6}},
            "jobs.production.nodes: more than team production may ever use: 5 nodes, of which it "
            "owns 5, got 6; ask for less, or raise hyperpod.task_governance.teams",
            id="more than its team may use",
        ),
        pytest.param(
            {"production": {"nodes": 2, "min_nodes": 1}},
            "jobs.production.min_nodes: a job on HyperPod ends when all of its pods have ended, "
            "got 1; leave it out: HyperPod replaces the node",
            id="fewer nodes on HyperPod",
        ),
        pytest.param(
            {"research": {"resources": {"gpu": 2, "efa": 4}}},
            "jobs.research.resources.efa: more EFA interfaces than such a pod can have on "
            "eks-spot: 0, got 4; ask for a whole node, or leave it out",
            id="EFA where there is none",
        ),
        pytest.param(
            {"production": {"patch": {"JobSet": {"spec": {"suspend": True}}}}},
            "jobs.production.patch.JobSet: no kind of object that this job consists of; "
            "it has PyTorchJob",
            id="patch of another engine's object",
        ),
    ],
)
def test_a_template_that_every_job_would_be_refused_for_is_a_mistake_of_the_file(
    tmp_path: Path, template: dict[str, Any], line: str
) -> None:
    assert refusals(tmp_path, **template) == [line]


def test_mistakes_of_all_templates_are_told_at_once(tmp_path: Path) -> None:
    production = {"nodes": 6, "role": "trainer"}
    elastic = {"resources": {"gpu": 8, "efa": 4}}
    lines = refusals(tmp_path, production=production, elastic=elastic)

    assert [line.partition(": ")[0] for line in lines] == [
        "jobs.production.nodes",
        "jobs.production.role",
        "jobs.elastic.resources.efa",
    ]


# Its nodes, which of its pools, its program, CPU and memory, whose registry.
@pytest.mark.parametrize(
    "template",
    [
        {"priority": "low"},
        {"node_selector": {"ultrascale.dev/role": "burst"}},
        {"kind": "batch", "pool": "eks-spot"},
        {"kind": "service", "pool": "eks-spot", "resources": {"gpu": 0}},
        {"pool": "eks-spot", "image": "tune:1"},
    ],
)
def test_what_a_template_leaves_to_its_jobs_is_no_mistake(
    tmp_path: Path, template: dict[str, Any]
) -> None:
    images = {"images": {"repositories": ["tune"]}}
    assert refusals(tmp_path, sections=images, tune=template) == []
