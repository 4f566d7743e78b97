"""Jobs name claims of their own namespace: for another's their pods would wait for good."""

from typing import Any

import pytest
import yaml

from tests.support.jobs import HYBRID, IMAGE
from tests.support.verdicts import verdicts
from ultrascale import config, plan
from ultrascale.errors import ConfigError
from ultrascale.jobs import prepare
from ultrascale.jobs.preparation import read_cluster


def mounting(claim: str, **more: Any) -> dict[str, Any]:
    return {"volumes": [{"claim": claim, "mount_path": "/mnt", **more}]}


def document(*, claimed_in: str, **templates: dict[str, Any]) -> str:
    """Return the hybrid file with a claim `scratch` of its file system, and changed templates."""
    found: dict[str, Any] = yaml.safe_load(HYBRID.read_text())
    claim = {"namespace": claimed_in, "name": "scratch", "mount_path": "/scratch"}
    found["storage"]["lustre"][0]["claim"] = claim
    for name, changes in templates.items():
        found["jobs"][name] |= changes
    return yaml.safe_dump(found)


def refusals(text: str) -> list[str]:
    try:
        plan.plan_cluster(config.loads(text))
    except ConfigError as error:
        return verdicts(error)
    return []


NONE_THERE = "jobs.production.volumes[0].claim: claims_of_templates_exist"


@pytest.mark.parametrize(
    ("claimed_in", "template", "claim", "lines"),
    [
        ("training", "development", "scratch", []),
        ("hyperpod-ns-production", "production", "scratch", []),
        # Another's than the team's, and what only nodes of other zones need.
        ("training", "production", "scratch", [NONE_THERE]),
        ("training", "production", "training-data-pvc-s3", [NONE_THERE]),
        ("training", "development", "training-data-pvc-s3", []),
    ],
)
def test_a_template_mounts_what_is_in_the_namespace_of_its_jobs(
    claimed_in: str, template: str, claim: str, lines: list[str]
) -> None:
    text = document(claimed_in=claimed_in, **{template: mounting(claim)})
    assert refusals(text) == lines


@pytest.mark.parametrize(
    ("storage", "todo"),
    [
        ({"default_claims": True, "buckets": ["checkpoints"]}, "known: model-checkpoints-pvc"),
        ({"default_claims": False, "buckets": ["datasets"]}, "add it first"),
    ],
)
def test_a_default_claim_is_there_only_with_something_behind_it(
    storage: dict[str, Any], todo: str
) -> None:
    found: dict[str, Any] = yaml.safe_load(HYBRID.read_text())
    found["storage"] = storage
    found["jobs"]["development"] |= mounting("data")

    text = yaml.safe_dump(found)
    assert refusals(text) == ["jobs.development.volumes[0].claim: claims_of_templates_exist"]
    with pytest.raises(ConfigError, match=todo):
        plan.plan_cluster(config.loads(text))


def test_a_job_that_names_a_team_mounts_the_teams_claims() -> None:
    cluster = read_cluster(HYBRID)
    job = {"name": "tune", "image": IMAGE, "script": "t.py", "team": "research", "priority": "high"}

    with pytest.raises(ConfigError, match="namespace hyperpod-ns-research, got 'scratch'"):
        prepare(cluster, job | mounting("scratch"))
    assert prepare(cluster, job | mounting("scratch", existing=True)).namespace.endswith("research")
