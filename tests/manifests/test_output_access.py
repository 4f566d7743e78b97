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


def documents() -> list[dict[str, Any]]:
    claim = {"namespace": "research", "name": "data", "mount_path": "/data"}
    lustre = {"name": "fsx", "zone": "us-west-2b", "capacity_gib": 1200, "claim": claim}
    lustre["throughput_mbps_per_tib"] = 250
    storage = {"buckets": ["datasets", "checkpoints"], "lustre": [lustre]}
    plan = plan_cluster(make_cluster(storage=storage)).storage.output_access
    assert plan is not None
    return applied(output_access_objects(plan, plan.namespaces))


def test_every_namespace_of_jobs_has_the_account_and_the_names_that_s3_makes_up() -> None:
    found = documents()
    namespaces = ("training", "research")

    assert findings(found, known=[("Namespace", "", name) for name in namespaces]) == []
    names = ("training-output", "ultrascale-bucket-datasets", "ultrascale-bucket-checkpoints")
    assert {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in found} == {
        (namespace, name) for namespace in namespaces for name in names
    }
    for each in found:
        if each["kind"] == "ServiceAccount":
            assert each["automountServiceAccountToken"] is False
        else:
            bucket = each["metadata"]["name"].rpartition("-")[2]
            assert each["data"] == {"name": f"${{BUCKET_{bucket.upper()}}}"}
    # No kubelet watches the names of buckets. Nor does a bucket that is added to the file change
    # an object that nobody may change.
    assert [*scale_findings(found)] == []


def test_namespaces_of_teams_get_theirs_with_the_teams_own_objects() -> None:
    charts = define_charts(load(HYBRID))
    by_chart = {
        chart.name: {text(each, "metadata", "namespace") for each in chart.manifests}
        for chart in (*charts.platform, *charts.teams)
        if "output-access" in chart.name
    }

    assert by_chart["output-access"] == {"training"}
    assert all(each.startswith("hyperpod-ns-") for each in by_chart["team-output-access"])
