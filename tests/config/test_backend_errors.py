"""Mistakes in the backend's section."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.pools import make_document

TEAMS = {"task_governance": {"teams": [{"name": "research", "fair_share_weight": 40}]}}
JOBS: dict[str, Any] = {"tune": {"node_selector": {"node-type": "train"}}}
DATABASE = {"version": "17"}


def backend(*, document: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a cluster file with a valid backend in which ``changes`` replace keys."""
    valid = {"database": DATABASE, "submits_to": ["tune"]}
    merged = {key: value for key, value in (valid | changes).items() if value is not None}
    return make_document(**{"jobs": JOBS, "backend": merged} | (document or {}))


ISSUER = "https://login.example.com"
OWN = "system:serviceaccounts:backend"
IMAGES = {"images": {"repositories": ["backend", "serving"]}}
RULES = {"job_keys": [], "rules": [{"name": "all", "types": ["tune"], "template": "tune"}]}
TAKEN = "backend_namespace_is_free"


def test_a_teams_namespace_is_not_the_backends() -> None:
    """Its own jobs could run under the backend's account there."""
    document = backend(document={"hyperpod": TEAMS}, namespace="hyperpod-ns-research")

    found = [line for line in mistakes_in(document) if line.startswith("backend.")]

    assert found == ["backend.namespace: backend_namespace_is_free"]


def test_every_mistake_is_named_at_once() -> None:
    document = backend(
        submits_to=["tunes"],
        namespace="kube-system",
        database={"version": "12", "service": "rds", "instance_type": "db.x.tiny"},
    )

    assert len(mistakes_in(document)) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"image": "backend", "rules": RULES},
        {"image": "serving:1.2.3"},
        {"image": "serving:1.2.3", "rules": {"of": "its own"}},
        {"image": "backend@sha256:" + 64 * "0"},
        {"image": "123456789012.dkr.ecr.us-west-2.amazonaws.com/acme/backend:1"},
        {"database": DATABASE | {"service": "rds", "login": "iam", "multi_az": False}},
        {"database": DATABASE | {"min_capacity_acu": 0, "max_capacity_acu": 1}},
        {"database": DATABASE | {"version": "17.9"}},
        {"database": None},
        {"identity": {"issuer": ISSUER, "admins": ["platform"], "rights": {"all users": {}}}},
        {"identity": {"issuer": f"{ISSUER}:8443/realms/x/", "audience": "0a-1b", "admins": ["a"]}},
        {"allow_from": ["web"], "identity": {"rights": {"system:serviceaccount:web:a.b": {}}}},
        {
            "identity": {
                "admins": [OWN],
                "rights": {OWN: {"priority": "high", "kinds": ["training"]}},
            }
        },
    ],
)
def test_what_a_backend_may_be(changes: dict[str, Any]) -> None:
    assert mistakes_in(backend(document=IMAGES, **changes)) == []
