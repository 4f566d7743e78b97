"""The ledger's plan: what the function asks AWS, its bucket, its rights, and labels of pods."""

import json
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.assembly import synthesize
from tests.support.folders import ROOT
from tests.support.job_rules import pod_templates
from tests.support.jobs import (
    BATCH,
    CPU_POOL,
    DEV,
    SERVICE,
    having,
    job_cluster,
    make_job,
    prepared,
)
from tests.support.ledger_life import DOCUMENT, PLAN
from tests.support.observability_plans import HYBRID, of, planned
from tests.support.stub_api_server import Object
from ultrascale import config
from ultrascale.jobs import JobManifests
from ultrascale.lambdas.ledger import MEASURED
from ultrascale.ledger.showback import centers_of, fees_of
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.network.endpoints import calls_of, features_of

LEDGER: Object = {"observability": {"ledger": {}}}
READER = "arn:aws:iam::444455556666:role/Finance"
RESERVED = {
    *("gpu-reserved-block", "gpu-reserved-odcr", "gpu-block-mng", "trn-block-asg", "gpu-odcr-mng")
}
OWNER = [f"ultrascale.dev/{name}" for name in ("team", "queue", "cost-center")]


def test_the_dashboard_shows_what_idles_only_where_a_ledger_and_prices_do() -> None:
    cluster = planned(DOCUMENT | {"observability": {"dashboards": True, "ledger": {}}})
    lines = {
        graph.title: [line.metrics["m"] for line in graph.lines]
        for section in of(cluster).dashboard
        for graph in section.graphs
    }
    (found,) = (lines[title] for title in lines if "idles, by reason" in title)
    assert {(each.name, each.dimensions["Reason"]) for each in found} == {
        ("PaidIdlePerHour", name) for name in MEASURED
    }
    plain = planned(DOCUMENT | {"observability": {"dashboards": True}})
    assert "PaidIdle" not in str(of(plain).dashboard)


def ledger_input(cluster: ClusterPlan) -> Any:
    return json.loads(json.dumps(of(cluster).fleet_metrics.input))["ledger"]


def test_each_pool_that_is_paid_for_names_its_reservation() -> None:
    ledger = ledger_input(PLAN)
    found = {own["pool"]: own for own in ledger["reserved"]}
    assert {name: own["id"] or own["tags"] for name, own in found.items()} == {
        "gpu-reserved-block": "cr-0aaaaaaaaaaaaaaa1",
        "gpu-reserved-odcr": {"team": "inference"},
        "gpu-block-mng": "cr-0bbbbbbbbbbbbbbb2",
        "trn-block-asg": "cr-0ccccccccccccccc3",
        "gpu-odcr-mng": "cr-0ddddddddddddddd4",
    }
    # Drains 40 minutes before the end of a block; a reservation without a window has none.
    assert {own["lead"] for own in found.values()} == {2_400, None}
    assert found["trn-block-asg"]["types"] == {"trn2.48xlarge": 16}
    assert ledger["accelerators"]["trn2.48xlarge"] == 16
    assert "m7g.2xlarge" not in ledger["accelerators"]
    assert "ledger" in features_of(PLAN)


def test_a_resource_group_is_the_reservation_of_its_pool() -> None:
    group = "arn:aws:resource-groups:us-east-2:111122223333:group/odcr"
    document = deepcopy(DOCUMENT)
    (pool,) = (each for each in document["pools"] if each["name"] == "gpu-odcr-mng")
    del pool["purchase"]["reservation"]
    pool["purchase"]["resource_group"] = group

    ledger = ledger_input(planned(document))

    assert ledger["reservations"]["gpu-odcr-mng"] == group
    assert [own["id"] for own in ledger["reserved"] if own["pool"] == "gpu-odcr-mng"] == [group]


def test_a_training_plan_is_asked_from_sagemaker_and_nothing_from_ec2() -> None:
    cluster = planned({**HYBRID, "observability": {"ledger": {}}})
    ledger = of(cluster).ledger
    assert ledger is not None
    (own,) = ledger_input(cluster)["reserved"]
    assert own["id"] == ledger.training_plans[0]
    assert next(iter(own["types"])).startswith("ml.")
    assert own["lead"] == 3_600
    assert not ledger.reads_reservations
    # A closed network has to have the endpoints of all its calls.
    assert {"s3", "ec2", "sagemaker.api"} <= {*calls_of(features_of(cluster))}


def test_a_file_with_all_keys_of_the_ledger_says_who_pays_and_how_much() -> None:
    """The copy of `mixed-capacity.yaml` with the keys; the file itself has none of them."""
    document = deepcopy(DOCUMENT)
    document["observability"] = {"ledger": {"keep_days": 400, "readers": [READER]}}
    document["scheduling"] = QUEUES
    until = "2026-12-08T11:30:00Z"
    pools = {pool["name"]: pool["purchase"] for pool in document["pools"]}
    pools["gpu-block-mng"]["fee"] = 412_345.60
    pools["gpu-reserved-block"]["fee"] = [{"until": until, "usd": 300_000}, {"usd": 90_000.5}]

    cluster, stated = planned(document), config.loads(yaml.safe_dump(document))

    sums = {name: sum(fees.values()) for name, fees in fees_of(stated).items()}
    assert sums == {
        pools["gpu-block-mng"]["reservation"]: Decimal("412345.6"),
        pools["gpu-reserved-block"]["reservation"]: Decimal("390000.5"),
    }
    rates: Any = of(cluster).fleet_metrics.input["rates"]
    assert {"gpu-block-mng", "gpu-reserved-block"} <= {*rates}
    assert centers_of(stated) == {"applied": "4711"}
    ledger = of(cluster).ledger
    assert ledger is not None
    assert ledger.bucket.readers == (READER,)
    assert ledger.bucket.kept == (("ledger/day=", 400),)


def test_a_cluster_without_accelerators_renders_no_ledger() -> None:
    cluster = planned(job_cluster(CPU_POOL, scheduling=None, **LEDGER))
    assert of(cluster).ledger is None
    assert ledger_input(cluster) is None
    assert of(planned(DOCUMENT | {"observability": {}})).ledger is None
    job = BATCH | {"pool": "cpu", "resources": {"cpu": "1", "memory": "1Gi"}}
    (labels,) = pods(prepared(job_cluster(CPU_POOL, scheduling=None, **LEDGER), job))
    assert not {*OWNER} & labels.keys()


def test_the_bucket_outlives_the_cluster_and_the_function_has_no_more_rights(
    tmp_path: Path,
) -> None:
    document = DOCUMENT | {"observability": {"ledger": {"readers": [READER]}, "alarms": EMAIL}}
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))
    template = synthesize(file, tmp_path, validated=False).templates["observability"]
    found = {name: body for name, body in template["Resources"].items()}
    (bucket,) = (body for body in found.values() if body["Type"] == "AWS::S3::Bucket")
    (policy,) = (body for body in found.values() if body["Type"] == "AWS::S3::BucketPolicy")
    assert {bucket["UpdateReplacePolicy"], policy["UpdateReplacePolicy"]} == {"Retain"}
    assert {bucket["DeletionPolicy"], policy["DeletionPolicy"]} == {"RetainExceptOnCreate"}
    assert bucket["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    # The state, which is written each minute, never expires.
    expiring = [
        (rule["Prefix"], rule["ExpirationInDays"])
        for rule in bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        if "ExpirationInDays" in rule
    ]
    assert expiring == [("ledger/day=", 400)]
    allowed = [
        (statement["Action"], statement["Principal"]["AWS"])
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]
    assert allowed == [(["s3:GetObject", "s3:ListBucket"], READER)]
    (rights,) = (
        body["Properties"]["PolicyDocument"]["Statement"]
        for name, body in found.items()
        if name.startswith("FleetMetricsRoleDefaultPolicy")
    )
    actions = {
        a for s in rights for a in ([s["Action"]] if isinstance(s["Action"], str) else s["Action"])
    }
    assert actions - {"eks:DescribeCluster", "logs:CreateLogStream", "logs:PutLogEvents"} == {
        "s3:ListBucket",
        "s3:GetObject",
        "s3:PutObject",
        "kms:Decrypt",
        "kms:GenerateDataKey",
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeCapacityBlockExtensionHistory",
        "ec2:GetGroupsForCapacityReservation",
    }
    alarms = [
        body["Properties"] for body in found.values() if body["Type"] == "AWS::CloudWatch::Alarm"
    ]
    (silent,) = (each for each in alarms if each["AlarmName"] == "mixed-capacity-ledger")
    assert (silent["MetricName"], silent["TreatMissingData"]) == ("LedgerRows", "breaching")
    ahead = {each["AlarmName"]: each for each in alarms if "unused-ahead" in each["AlarmName"]}
    assert {name.removeprefix("mixed-capacity-unused-ahead-") for name in ahead} == RESERVED
    block = ahead["mixed-capacity-unused-ahead-gpu-reserved-block"]
    assert (block["MetricName"], block["Period"], block["Threshold"]) == ("UnusedAhead", 86_400, 20)
    assert {"Name": "Pool", "Value": "gpu-reserved-block"} in block["Dimensions"]
    # It is written once a day, and a day without a forecast is no alarm.
    assert (block["Statistic"], block["TreatMissingData"]) == ("Maximum", "notBreaching")


EMAIL = {"email": "ana@example.com"}
QUEUES = {"queueing": "volcano", "queues": [{"name": "applied", "cost_center": "4711"}]}


def pods(manifests: JobManifests) -> list[dict[str, str]]:
    """Return the labels of all kinds of pods of a job."""
    return [template["metadata"]["labels"] for template in pod_templates(manifests)]


@pytest.mark.parametrize("job", [make_job(queue="applied"), SERVICE, DEV])
def test_pods_say_who_pays_for_their_nodes_only_with_a_ledger(job: Object) -> None:
    cluster = job_cluster(scheduling=QUEUES)
    labelled, plain = (
        prepared(having(each, job), job["name"]) for each in (cluster | LEDGER, cluster)
    )
    assert pods(labelled)
    for own in pods(labelled):
        named = [own.get(key) for key in OWNER]
        queue = ["applied", "4711"] if job is not SERVICE else [None, None]
        assert named == ["training", *queue]
    assert not any({*OWNER} & own.keys() for own in pods(plain))
    rolls = [note for note in labelled.notes if "observability.ledger" in note]
    assert bool(rolls) == (job is SERVICE)


def test_a_team_of_task_governance_pays_by_its_own_cost_center() -> None:
    document = yaml.safe_load((ROOT / "clusters" / "hybrid-hyperpod.yaml").read_text())
    governance = document["hyperpod"]["task_governance"]
    governance["teams"][0]["cost_center"] = "4711"
    team = governance["teams"][0]["name"]
    job = make_job(team=team, pool="hyperpod", priority="high")
    (own, *_) = pods(prepared(document | LEDGER, job))
    assert [own.get(key) for key in OWNER] == [team, f"hyperpod-ns-{team}-localqueue", "4711"]
