"""Namespaces of jobs."""

import pytest

from tests.support.folders import ROOT
from ultrascale import config
from ultrascale.parts.hyperpod.section import HyperPod
from ultrascale.plan.jobs.namespaces import namespace_of

_HYBRID = ROOT / "clusters" / "hybrid-hyperpod.yaml"


@pytest.fixture(scope="module")
def hybrid() -> config.Cluster:
    return config.load(_HYBRID)


@pytest.mark.parametrize(
    ("name", "job", "namespace"),
    [
        # A team is called as it is, no team is, its team before that, a namespace of its own.
        ("research", {}, "hyperpod-ns-research"),
        ("elastic", {}, "training"),
        ("nightly", {"team": "production"}, "hyperpod-ns-production"),
        ("research", {"team": "production"}, "hyperpod-ns-production"),
        ("nightly", {"namespace": "batch"}, "batch"),
    ],
)
def test_a_job_runs_where_its_team_has_a_quota_and_else_in_its_own_namespace(
    hybrid: config.Cluster, name: str, job: dict[str, str], namespace: str
) -> None:
    assert namespace_of(hybrid, name, config.TrainingJob.model_validate(job)) == namespace


def test_without_task_governance_no_name_is_a_teams(hybrid: config.Cluster) -> None:
    ungoverned = hybrid.model_copy(update={"hyperpod": HyperPod()})

    assert namespace_of(ungoverned, "research", config.TrainingJob()) == "training"
