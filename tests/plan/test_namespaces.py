"""Namespaces: where jobs, claims and schedulers are before they are created."""

from typing import Any

import yaml

from tests.support.pools import POOL, SYSTEM_POOL, governed_document, make_cluster
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
    return {
        "name": name,
        "zone": zone,
        "capacity_gib": 1200,
        "throughput_mbps_per_tib": 250,
        "claim": {"namespace": namespace, "name": name, "mount_path": "/data"},
    }


def test_jobs_have_one_without_asking() -> None:
    assert plan_namespaces(cluster()) == (
        NamespacePlan(name="training", pod_security="baseline", training=True),
    )


def test_volcano_has_one_where_no_pod_may_do_more_than_it_must() -> None:
    namespaces = plan_namespaces(cluster(scheduling=VOLCANO))

    assert namespaces[-1] == NamespacePlan(
        name="volcano-system", pod_security="restricted", training=False
    )


def test_every_claim_has_the_namespace_it_lies_in() -> None:
    claims = [("scratch", "research"), ("data", "training"), ("other", "research")]
    lustre = [file_system(name, namespace) for name, namespace in claims]

    namespaces = plan_namespaces(cluster(storage={"lustre": lustre}))

    assert [namespace.name for namespace in namespaces] == ["research", "training"]
    assert all(namespace.training for namespace in namespaces)


def test_a_teams_namespace_is_left_to_task_governance_until_it_has_made_it() -> None:
    made = governed()

    assert [namespace.name for namespace in plan_namespaces(made)] == ["training"]
    assert plan_team_namespaces(made) == (
        NamespacePlan(name="hyperpod-ns-research", pod_security="baseline", training=True),
        NamespacePlan(name="hyperpod-ns-production", pod_security="baseline", training=True),
    )


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


def test_a_cluster_without_teams_has_none_of_their_namespaces() -> None:
    assert plan_team_namespaces(cluster()) == ()


def test_a_claim_of_a_bucket_has_the_namespace_it_lies_in() -> None:
    claim = {"namespace": "serving", "name": "models", "mount_path": "/models"}
    storage = {"buckets": [{"name": "models", "claim": claim}]}

    assert training_namespaces(cluster(storage=storage)) == ("serving", "training")
