"""Namespaces: where jobs, claims and schedulers are before they are created."""

from typing import Any

import yaml
from msgspec.structs import replace

from tests.support.pools import LUSTRE, POOL, SYSTEM_POOL, governed_document, make_cluster
from ultrascale import config
from ultrascale.config import loads
from ultrascale.plan.model import NamespacePlan
from ultrascale.plan.namespaces import plan_namespaces, plan_team_namespaces, training_namespaces

VOLCANO = {"queueing": "volcano"}
TEAMS = [{"name": name, "fair_share_weight": 1} for name in ("research", "production")]


def cluster(**changes: Any) -> config.Cluster:
    return make_cluster(pools=[SYSTEM_POOL, POOL], **changes)


def governed(**changes: Any) -> config.Cluster:
    return loads(yaml.safe_dump(governed_document(*TEAMS, **changes)))


def file_system(name: str, namespace: str, *, zone: str = "us-west-2b") -> dict[str, Any]:
    claim = {"namespace": namespace, "name": name, "mount_path": "/data"}
    return LUSTRE | {"name": name, "zone": zone, "claim": claim}


def test_jobs_have_one_without_asking() -> None:
    jobs = NamespacePlan(name="training", pod_security="baseline", training=True)
    # No pod of Volcano may do more than it must.
    volcano = NamespacePlan(name="volcano-system", pod_security="restricted", training=False)
    assert plan_namespaces(cluster()) == (jobs,)
    assert plan_namespaces(cluster(scheduling=VOLCANO))[-1] == volcano
    assert plan_team_namespaces(cluster()) == ()


def test_every_claim_has_the_namespace_it_lies_in() -> None:
    claims = [("scratch", "research"), ("data", "training"), ("other", "research")]
    lustre = [file_system(name, namespace) for name, namespace in claims]
    models = {"namespace": "serving", "name": "models", "mount_path": "/models"}
    storage = {"lustre": lustre, "buckets": [{"name": "models", "claim": models}]}
    namespaces = plan_namespaces(cluster(storage=storage))
    assert [each.name for each in namespaces] == ["research", "serving", "training"]
    assert all(namespace.training for namespace in namespaces)
    assert training_namespaces(cluster(storage=storage)) == ("research", "serving", "training")


def test_a_teams_namespace_is_left_to_task_governance_until_it_has_made_it() -> None:
    made = governed()

    assert [namespace.name for namespace in plan_namespaces(made)] == ["training"]
    (research, production) = plan_team_namespaces(made)
    assert research == NamespacePlan(
        name="hyperpod-ns-research", pod_security="baseline", training=True, hides_metadata=True
    )
    assert production == replace(research, name="hyperpod-ns-production")


def test_a_claim_in_a_teams_namespace_does_not_make_it_too_early() -> None:
    lustre = [file_system("scratch", "hyperpod-ns-research", zone="us-east-1b")]

    made = governed(storage={"lustre": lustre})

    assert [namespace.name for namespace in plan_namespaces(made)] == ["training"]
    assert len(plan_team_namespaces(made)) == 2
    assert training_namespaces(made) == (
        "training",
        "hyperpod-ns-research",
        "hyperpod-ns-production",
    )
