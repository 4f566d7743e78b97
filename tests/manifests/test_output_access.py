"""Service accounts and bucket names by which training pods reach their bucket."""

from typing import Any

from tests.support.applied import applied
from tests.support.chart_rules import scale_findings
from tests.support.jobs import HYBRID
from tests.support.kubernetes_schemas import findings
from tests.support.pools import make_cluster
from ultrascale.documents import text
from ultrascale.plan import load, plan_cluster
from ultrascale_k8s.platform import define_charts
from ultrascale_k8s.volumes import output_access_objects

LUSTRE = {
    "name": "fsx",
    "zone": "us-west-2b",
    "capacity_gib": 1200,
    "throughput_mbps_per_tib": 250,
    "claim": {"namespace": "research", "name": "data", "mount_path": "/data"},
}


def documents() -> list[dict[str, Any]]:
    plan = plan_cluster(
        make_cluster(storage={"buckets": ["datasets", "checkpoints"], "lustre": [LUSTRE]})
    ).storage.output_access
    assert plan is not None
    return applied(output_access_objects(plan, plan.namespaces))


def test_every_namespace_of_jobs_has_them() -> None:
    found = documents()

    assert (
        findings(found, known=[("Namespace", "", name) for name in ("training", "research")]) == []
    )
    assert {
        (each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]) for each in found
    } == {
        (kind, namespace, name)
        for namespace in ("training", "research")
        for kind, name in (
            ("ServiceAccount", "training-output"),
            ("ConfigMap", "ultrascale-bucket-datasets"),
            ("ConfigMap", "ultrascale-bucket-checkpoints"),
        )
    }


def test_pods_get_no_token_of_the_api_server() -> None:
    accounts = [each for each in documents() if each["kind"] == "ServiceAccount"]

    assert {each["automountServiceAccountToken"] for each in accounts} == {False}


def test_each_name_is_replaced_by_that_which_s3_makes_up() -> None:
    found = {
        each["metadata"]["name"]: each["data"]
        for each in documents()
        if each["kind"] == "ConfigMap"
    }

    assert found == {
        "ultrascale-bucket-datasets": {"name": "${BUCKET_DATASETS}"},
        "ultrascale-bucket-checkpoints": {"name": "${BUCKET_CHECKPOINTS}"},
    }


def test_no_kubelet_watches_the_names_of_buckets() -> None:
    """Nor does a bucket that is added to the file change an object that nobody may change."""
    assert [*scale_findings(documents())] == []


def test_namespaces_of_teams_get_theirs_with_the_teams_own_objects() -> None:
    charts = define_charts(load(HYBRID))
    by_chart = {
        chart.name: {text(each, "metadata", "namespace") for each in chart.manifests}
        for chart in (*charts.platform, *charts.teams)
        if "output-access" in chart.name
    }

    assert by_chart["output-access"] == {"training"}
    assert all(each.startswith("hyperpod-ns-") for each in by_chart["team-output-access"])
