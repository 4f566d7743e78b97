"""Templates of jobs beside task governance: what it cannot hold back is refused in the file."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.jobs import HYBRID, IMAGE, refusals
from tests.support.pools import as_text, loads_own
from tests.support.verdicts import verdicts
from ultrascale import plan
from ultrascale.errors import ConfigError

JOB = {"name": "tune", "image": IMAGE, "script": "train.py"}


def hybrid_document(**changes: Any) -> dict[str, Any]:
    """Return the hybrid file with other templates or settings."""
    document: dict[str, Any] = yaml.load(HYBRID.read_text(), yaml.CSafeLoader)
    for key, value in changes.items():
        document[key] = {**document.get(key, {}), **value}
    return document


def mistakes_of(**changes: Any) -> list[str]:
    """Return the error lines for the hybrid file with other templates or settings."""
    try:
        plan.plan_cluster(loads_own(as_text(hybrid_document(**changes))))
    except ConfigError as error:
        return verdicts(error)
    return []


@pytest.mark.parametrize(
    ("templates", "line"),
    [
        (
            {"elastic": {"prefer": ["hyperpod"], "priority": "critical"}},
            "jobs.elastic.priority: templates_suit_the_teams",
        ),
        (
            {"elastic": {"prefer": ["hyperpod"]}, "production": {"pool": "hyperpod"}},
            "jobs.elastic.priority: templates_suit_the_teams",
        ),
        (
            {"nightly": {"pool": "hyperpod", "priority": "critical"}},
            "jobs.nightly.priority: templates_suit_the_teams",
        ),
        (
            {"research": {"prefer": ["hyperpod"], "priority": "low"}},
            "jobs.research.prefer: templates_suit_the_teams",
        ),
        (
            {"production": {"pool": "hyperpod", "namespace": "training", "priority": "high"}},
            "jobs.production.namespace: templates_suit_the_teams",
        ),
    ],
)
def test_a_template_that_task_governance_cannot_hold_is_refused(
    templates: dict[str, Any], line: str
) -> None:
    assert mistakes_of(jobs=templates) == [line]


@pytest.mark.parametrize(
    ("templates", "line"),
    [
        (
            {"production": {"pool": "hyperpod", "priority": "urgent"}},
            "jobs.production.priority: job_priority_exists",
        ),
        (
            {"chat": {"kind": "service", "pool": "hyperpod", "team": "research"}},
            "jobs.chat.team: templates_suit_the_teams",
        ),
    ],
)
def test_what_is_wrong_with_a_governed_template_is_not_told_of_others_too(
    tmp_path: Path, templates: dict[str, Any], line: str
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(hybrid_document(jobs=templates)))

    with pytest.raises(ConfigError) as refused:
        plan.load(file)

    assert verdicts(refused.value) == [line]


def test_a_governed_job_stays_above_a_template_that_takes_hyperpods_nodes_unasked(
    tmp_path: Path,
) -> None:
    template = {"pool": "hyperpod", "priority": "high"}
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(hybrid_document(jobs={"nightly": template})))

    assert refusals(file, JOB | {"team": "research", "priority": "medium"}) == [
        "priority: job_suits_its_team"
    ]


def test_an_elastic_job_without_any_priority_gives_way_to_all() -> None:
    assert mistakes_of(jobs={"elastic": {"prefer": ["hyperpod", "eks-spot"]}}) == []
